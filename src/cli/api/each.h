/* each.h - a verb that does the same with each of several sandboxes.
 *
 * Continues after a failure; the exit code is that of the first one. */
#ifndef COVE_CLI_API_EACH_H
#define COVE_CLI_API_EACH_H

#include "cli/common.h"

#include <jansson.h>

/* sandbox: as it was named, or the id of one that was listed. state: of one that was listed, as GET /v1/sandboxes has it;
 * NULL: it was named. */
typedef int each_step(const char *sandbox, json_t *state, void *context, struct err *err);

/* Those that are named, or all that the server lists. Returns the exit code. */
int each_sandbox(const struct verb *verb, bool all, char **names, int count, each_step *step,
                 void *context);

#endif
