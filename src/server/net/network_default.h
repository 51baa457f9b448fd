/* network_default.h - the rules of a sandbox whose create says none, and the proxy of one that names none.
 *
 *   rules:  what the create asked for, else the template's, else the tenant's, else the surface's own default, else off
 *   proxy:  that of the rules, else the template's, else the tenant's
 *
 * A default is no bound: who may make a sandbox may ask for other rules.
 *
 * Callers: ops*.c. Code that makes sandboxes from something else than templates (snapshots) asks network_settle with the
 * rules that were saved as `asked`. */
#ifndef COVE_SERVER_NET_NETWORK_DEFAULT_H
#define COVE_SERVER_NET_NETWORK_DEFAULT_H

#include "egress/reach.h"
#include "server/app/app.h"
#include "store/store.h"

/* *ret_found: there is one. */
int network_default_get(struct app *app, enum store_network_kind kind, const char *name,
                        struct reach *ret, bool *ret_found, struct err *err);
/* Rules as the store keeps them, and the login of their proxy apart. rules NULL: text is NULL. Behind it, network_default_wipe. */
struct network_default_text {
    char *text;
    char login[UPSTREAM_JOINED_MAX];
};
int network_default_text(struct app *app, const struct reach *rules,
                         struct network_default_text *ret, struct err *err);
void network_default_wipe(struct network_default_text *text);
/* rules NULL: none any more. */
int network_default_set(struct app *app, enum store_network_kind kind, const char *name,
                        const struct reach *rules, struct err *err);

/* What a sandbox gets. asked: NULL: nothing was said; `implied`: by the surface, not by the request, so that a default comes before it. *ret: on the heap,
 * or NULL for nothing at all. */
int network_settle(struct app *app, const char *tenant, const char *template,
                   const struct reach *asked, bool implied, struct reach **ret, struct err *err);

#endif
