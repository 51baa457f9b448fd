/* network_proxy.h - the proxy in a network policy: as a caller writes it, as it is shown, as it is kept.
 *
 *   {"type": "socks5", "address": "proxy.example.com:1080", "username": "…", "password": "…"}
 *
 * What is shown has no login; what is kept has, and whether the operator named it.
 *
 * Callers: network.c, and dialects that have a word of their own for it. */
#ifndef COVE_API_NETWORK_PROXY_H
#define COVE_API_NETWORK_PROXY_H

#include "api/exchange.h"
#include "egress/upstream.h"

#include <jansson.h>

/* `kind`: without a "type" (NONE: then one is needed). JSON null is none. Blames what is below `field`. */
int network_proxy_read(struct exchange *x, const char *field, json_t *value,
                       enum upstream_kind kind, struct upstream *ret, struct err *err);
/* Both NULL without a proxy. */
json_t *network_proxy_json(const struct upstream *upstream);
json_t *network_proxy_keep(const struct upstream *upstream);
/* What network_proxy_keep made, or NULL. */
int network_proxy_kept(const json_t *kept, struct upstream *ret, struct err *err);

#endif
