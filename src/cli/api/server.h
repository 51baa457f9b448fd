/* server.h - which server the verbs ask: this host's, or another one.
 *
 *   cove --server URL, COVE_SERVER      that one, with the key in COVE_KEY or of `cove login URL`
 *   cove --state DIR, COVE_STATE        this host's, of that state directory
 *   cove context use NAME               the one of `cove login`
 *   otherwise                           this host's
 *
 * A verb asks in one line, and every failure is a struct err with the server's own kind and sentence:
 *
 *   json_t *answer;
 *   if (server_ask("POST", json_pack("{s:s}", "tier", "hot"), &answer, &err, "/v1/sandboxes/%s/pause", name) < 0) …
 *
 * Callers: the verbs of this folder. */
#ifndef COVE_CLI_API_SERVER_H
#define COVE_CLI_API_SERVER_H

#include "remote/ask.h"

/* The server in force; found once. */
int server_find(const struct remote **ret, struct err *err);
/* Whether --server, COVE_SERVER or a context names another host's. For verbs that are about this host alone. */
bool server_is_elsewhere(void);

/* This host's, whatever context is in use: for verbs that are about this host alone. */
void server_use_here(void);

/* Requests are for that tenant from now on: what --tenant says. NULL: for the caller's own. */
int server_act_for(const char *tenant, struct err *err);

/* fmt as ask_path has it. take_body and ret as ask has them. */
int server_ask(const char *method, json_t *take_body, json_t **ret, struct err *err,
               const char *fmt, ...);

/* Every item of a list that comes in pages: `path` may have a query; `name` is the field with the items. The array is the
 * caller's to decref. */
int server_list(const char *path, const char *name, json_t **ret, struct err *err);

#endif
