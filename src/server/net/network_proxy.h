/* network_proxy.h - the proxy in a network policy: as a caller writes it, as it is shown, as it is kept.
 *
 *   {"type": "socks5", "address": "proxy.example.com:1080", "username": "…", "password": "…"}
 *
 * What is shown has no login; what is kept has, sealed, and whether the operator named it.
 *
 * Callers: network_rules.c, ops.c, and dialects that have a word of their own for it. */
#ifndef COVE_SERVER_NET_NETWORK_PROXY_H
#define COVE_SERVER_NET_NETWORK_PROXY_H

#include "egress/upstream.h"
#include "server/guard/caller.h"
#include "store/store.h"

#include <jansson.h>

extern const struct form network_proxy_form;

/* `kind`: without a "type" (NONE: then one is needed). JSON null: no proxy. Blames what is below `field`. */
int network_proxy_read(struct caller *caller, const char *field, json_t *value,
                       enum upstream_kind kind, struct upstream *ret, struct err *err);
/* The same for a proxy that the operator names: it may be anywhere. */
int network_proxy_read_trusted(struct caller *caller, const char *field, json_t *value,
                               enum upstream_kind kind, struct upstream *ret, struct err *err);
/* NULL without a proxy. */
json_t *network_proxy_json(const struct upstream *upstream);
/* The same, with a mark of the login by which two requests can be compared, and nothing can be guessed. */
int network_proxy_mark(struct store *store, const struct upstream *upstream, json_t **ret,
                       struct err *err);
/* The same; the login is sealed for this proxy alone. */
int network_proxy_keep(struct store *store, const struct upstream *upstream, json_t **ret,
                       struct err *err);
/* What network_proxy_keep made, or NULL. ERR_UNAVAILABLE: the key of the store is not the one it was sealed with. */
int network_proxy_kept(struct store *store, const json_t *kept, struct upstream *ret,
                       struct err *err);

#endif
