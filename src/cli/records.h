/* records.h - what the server's store says of this host, for verbs about this host.
 *
 * The store has one writer. While coved runs, it is asked over its socket (/v1/host). While it is down, root writes the store
 * itself, with coved's lock, so that coved cannot start meanwhile; a state directory without a store has nothing to record.
 *
 * Callers: template*.c, backup.c, gc.c. Nothing else of the command line opens the store. */
#ifndef COVE_CLI_RECORDS_H
#define COVE_CLI_RECORDS_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

/* The server of this host is asked from now on, whatever context is in use. ERR_UNAVAILABLE: it is down. */
int records_server(struct err *err);

/* The template was made, or rebuilt: how ("build", "import", "pull", "update") and from what, or NULL. Its memory image goes;
 * *ret_cooled: it had one. With the template's lock. */
int records_made(const char *name, const char *how, const char *from, bool *ret_cooled,
                 struct err *err);
/* Its files are gone. */
int records_gone(const char *name, bool *ret_cooled, struct err *err);

/* What GET /v1/host/templates has, as an array; the caller's to decref. Only of a server that runs. */
int records_templates(json_t **ret, struct err *err);
/* Of such an array; NULL: it is not there, or the array is NULL. */
json_t *records_find(json_t *templates, const char *name);

/* A copy of the store, open for reading; its name is gone already. *ret_fd -1: there is no store. */
int records_copy(int state_fd, int *ret_fd, struct err *err);

#endif
