/* warm.h - creates from templates that carry a memory image (client/warm.h), as the store knows them.
 *
 * Owns:    nothing; `cove template warm` writes the records.
 * Callers: ops.c. */
#ifndef COVE_SERVER_LIFE_WARM_H
#define COVE_SERVER_LIFE_WARM_H

#include "client/warm.h"
#include "server/app/app.h"

/* As sandbox_create. An image that cannot be loaded is the log's affair, not the client's. *ret_loaded: it was made
 * of one. */
int warm_make(struct app *app, struct link *link, const struct sandbox_spec *spec,
              struct keeper_sandbox *ret, bool *ret_loaded, struct err *err);

#endif
