/* private.h - private networks: which sandboxes of a tenant reach each other, by which names and on which ports.
 *
 * A network has a number among its tenant's, a member one in its network; together they are the member's address
 * (egress/peer.h). Numbers are given out in turn, so that one rests before another sandbox gets it.
 *
 * Owns:    the tables private_networks, private_members and private_changes. A member goes with its sandbox's record, a
 *          network with its tenant.
 * Callers: api (private.c, ops_private.c) and the verb network of cli. As store.h, from any thread. */
#ifndef COVE_STORE_PRIVATE_H
#define COVE_STORE_PRIVATE_H

#include "store/store.h"

#define PRIVATE_SUFFIX      "internal" /* alias.network.internal */
#define PRIVATE_LABEL_MAX   64         /* with the NUL: names and aliases are labels of DNS */
#define PRIVATE_NETWORKS    64         /* of a tenant */
#define PRIVATE_MEMBERS     200        /* of a network; the rest of its numbers are at rest */
#define PRIVATE_JOINS       8          /* of a sandbox */
#define PRIVATE_PORTS       32         /* of a member */
#define PRIVATE_NUMBER_MOST 254        /* of networks from 0, of members from 1 */

struct private_network {
    char name[PRIVATE_LABEL_MAX];
    uint64_t created_ms, members;
    unsigned number;
};

struct private_member {
    char network[PRIVATE_LABEL_MAX];
    char sandbox[ID_LEN + 1];
    char alias[PRIVATE_LABEL_MAX]; /* for joins: "" means the sandbox's name, or its id */
    size_t port_count;
    uint16_t ports[PRIVATE_PORTS];
    unsigned network_number, number;
    uint64_t joined_ms, seq; /* seq: the order of joins */
};

/* 1 to 63 of [a-z0-9-], neither beginning nor ending with '-'. */
bool private_label_ok(const char *text);
/* "80,443"; "": no port. ERR_INVALID; ERR_TOO_BIG past PRIVATE_PORTS. Ports that are named twice count once. */
int private_ports_parse(const char *text, struct private_member *ret, struct err *err);
#define PRIVATE_PORTS_TEXT (PRIVATE_PORTS * 6)
void private_ports_print(const struct private_member *member, char out[PRIVATE_PORTS_TEXT]);
int private_port_add(struct private_member *member, uint64_t port, struct err *err);

/* Making one that is there is no error: *ret_made says whether it was made now. ERR_TOO_MANY past PRIVATE_NETWORKS. */
int store_private_make(struct store *store, const char *tenant, const char *name, bool *ret_made,
                       struct err *err);
/* With its members. ERR_NO_PATH "there is no network '…'", here and below. */
int store_private_remove(struct store *store, const char *tenant, const char *name,
                         struct err *err);
int store_private_get(struct store *store, const char *tenant, const char *name,
                      struct private_network *ret, struct err *err);
typedef int store_private_each(void *arg, const struct private_network *network, struct err *err);
int store_private_list(struct store *store, const char *tenant, store_private_each *each, void *arg,
                       struct err *err);

/* In, or in with another alias or other ports; *ret is what there is then. ERR_NO_SANDBOX for one that is not this
 * tenant's; ERR_NAME_TAKEN for an alias that another member has; ERR_TOO_MANY past PRIVATE_MEMBERS or PRIVATE_JOINS. */
int store_private_join(struct store *store, const char *tenant, const struct private_member *join,
                       struct private_member *ret, struct err *err);
/* ERR_NO_PATH also for one that is no member. */
int store_private_leave(struct store *store, const char *tenant, const char *network,
                        const char *sandbox, struct err *err);
typedef int store_private_member_each(void *arg, const struct private_member *member,
                                      struct err *err);
/* network NULL: of all the tenant's, network by network. As of one moment. */
int store_private_members(struct store *store, const char *tenant, const char *network,
                          store_private_member_each *each, void *arg, struct err *err);

/* Tenants whose networks have changed since *seq, which moves on; also by other programs. From 0: all that ever had any. */
typedef int store_private_tenant_each(void *arg, const char *tenant, struct err *err);
int store_private_changed(struct store *store, uint64_t *seq, store_private_tenant_each *each,
                          void *arg, struct err *err);

#endif
