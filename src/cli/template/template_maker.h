/* template_maker.h - templates made by the command line: progress, notes and records.
 *
 * Callers: the template verb, up.c. */
#ifndef COVE_CLI_TEMPLATE_MAKER_H
#define COVE_CLI_TEMPLATE_MAKER_H

#include "base/err.h"
#include "cli/progress.h"
#include "template/maker.h"

#include <limits.h>

struct maker {
    struct template_maker way; /* for src/template */
    struct progress progress;
    char agent[PATH_MAX];
    const char *how,
        *from; /* for the server's records (records.h); how is "build" unless it is set */
    struct err unrecorded; /* kind ERR_NONE: what was made is in the records */
};

/* `title` is borrowed. Not to be moved: way points into it. */
void maker_init(struct maker *maker, const char *title);
void maker_done(struct maker *maker);
/* -1: the template is there, and not in the server's records. */
int maker_recorded(const struct maker *maker, struct err *err);

#endif
