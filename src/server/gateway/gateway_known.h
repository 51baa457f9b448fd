/* gateway_known.h - what coved knows of its own about the gateway: sandboxes that have one, and private networks.
 *
 * What the gateway asks for is checked against this, never against its own word. Pure, but for memory; the caller has a
 * lock. */
#ifndef COVE_SERVER_GATEWAY_GATEWAY_KNOWN_H
#define COVE_SERVER_GATEWAY_GATEWAY_KNOWN_H

#include "egress/egress.h"

struct known;

struct known *known_new(void);
void known_free(struct known *known);

bool known_has(const struct known *known, const char *sandbox);
/* False: no memory. */
bool known_add(struct known *known, const char *sandbox);
void known_remove(struct known *known, const char *sandbox);
/* All sandboxes; networks stay. */
void known_clear(struct known *known);

/* Copied. None: the tenant has no networks. */
int known_nets_set(struct known *known, const char *tenant, const struct egress_net *nets,
                   size_t count, struct err *err);
/* Those that have no gateway, each once, of a tenant or (NULL) of all. *ret: the caller's to free. */
int known_nets_without(const struct known *known, const char *tenant, char (**ret)[EGRESS_ID_MAX],
                       size_t *ret_count, struct err *err);
bool known_nets_member(const struct known *known, const char *sandbox);
/* Whether one may dial the port of the other; the tenant of both into the dial. */
bool known_nets_allow(const struct known *known, struct egress_dial *dial);

/* One tenant after the other: NULL first. */
struct known_tenant {
    char name[EGRESS_ID_MAX];
    struct egress_net *nets;
    size_t count;
    struct known_tenant *next;
};
const struct known_tenant *known_tenants(const struct known *known);

#endif
