/* contexts.h - servers that `cove login` knows: a file of the user's own, mode 0600, since keys are in it.
 *
 * Owns:    $XDG_CONFIG_HOME/cove/servers.json, or ~/.config/cove/servers.json:
 *          {"current": NAME or null, "servers": {NAME: {"url", "key", "cacert"?}}}
 * Callers: server.c, the verbs login and context. */
#ifndef COVE_CLI_API_CONTEXTS_H
#define COVE_CLI_API_CONTEXTS_H

#include "base/err.h"

#include <jansson.h>

/* No file: no contexts. A file that others may read is refused. */
int contexts_read(json_t **ret, struct err *err);
int contexts_write(json_t *contexts, struct err *err);

#endif
