/* network_rules.h - the egress rules of a sandbox: as a caller writes them, as they are shown, as they are kept.
 *
 * What is shown and what is kept differ by the login of a proxy, which is kept sealed and never shown.
 *
 * Callers: network.c, network_default.c, ops*.c and the dialects. */
#ifndef COVE_SERVER_NET_NETWORK_RULES_H
#define COVE_SERVER_NET_NETWORK_RULES_H

#include "egress/reach.h"
#include "server/guard/caller.h"
#include "store/store.h"

#include <jansson.h>

/* What a caller writes; a create may also have secrets and private networks to join, which its surface takes out first. */
extern const struct form network_form, network_create_form;

/* A private network to join; of network_member_form, the path of the request names the network. */
struct network_join {
    const char *network, *alias;
    json_t *ports;
};
extern const struct form network_join_form, network_member_form;
#define NETWORK_LABEL_PATTERN "{\"pattern\": \"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$\"}"

/* {"mode": "off" | "public" | "list", "allow": […], "deny": […], "proxy": {…}}; without a mode it is "list" if something is allowed,
 * else "public". Blames `field`, or what is below it. */
int network_read(struct caller *caller, const char *field, json_t *object, struct reach *ret,
                 struct err *err);
/* The same for rules that the operator gives a tenant: they may name every range, and the proxy may be anywhere. */
int network_read_trusted(struct caller *caller, const char *field, json_t *object,
                         struct reach *ret, struct err *err);
/* A rule that a tenant wants to add to its rules: ERR_INVALID if it leads where no tenant may (egress/may_name.h). */
int network_may_name(struct caller *caller, const struct reach_rule *rule, struct err *err);
/* reach_add, for what a tenant wrote. */
int network_add(struct caller *caller, struct reach *rules, bool deny, const char *text,
                struct err *err);
json_t *network_json(const struct reach *rules);

/* As they are kept in the store: the caller's to free. A text may be kept again, for another sandbox. */
int network_text(struct store *store, const struct reach *rules, char **ret, struct err *err);
int network_from_text(struct store *store, const char *text, struct reach *ret, struct err *err);

#endif
