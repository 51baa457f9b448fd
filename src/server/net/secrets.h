/* secrets.h - secrets of tenants, and what sandboxes have of them: placeholders, and an authority that they trust.
 *
 * A sandbox that was made with secrets has, sealed in the store: the names of its secrets with their placeholders, headers
 * that are set for it, and its certificate authority. Values are not among it: they are read from the tenant's secrets
 * whenever the gateway is told, so that a change counts for sandboxes that run.
 *
 * Callers: ops*.c and network.c.
 * Never:   gives a value or a key to anybody but the gateway. */
#ifndef COVE_SERVER_NET_SECRETS_H
#define COVE_SERVER_NET_SECRETS_H

#include "egress/message.h"
#include "server/app/app.h"
#include "server/guard/caller.h"

#include <jansson.h>

#define SECRETS_OF_SANDBOX 32
#define SECRETS_RULE_HOSTS 10   /* the next three as E2B has them */
#define SECRETS_RULE_MOST  20   /* headers for one host */
#define SECRETS_RULE_VALUE 2048 /* bytes */

/* Every item of the array is a host that a secret can be bound to; ret_bad: which is not. */
int secrets_check_hosts(const json_t *hosts, size_t *ret_bad, struct err *err);

/* What is put into requests of a sandbox on their way (docs/network.md); each may be NULL. */
struct secrets_want {
    const json_t *names; /* of the tenant's secrets, an array of texts */
    const json_t *rules; /* {host: {header: value}} */
};
bool secrets_wanted(const struct secrets_want *want);

struct secrets_plan {
    char *hidden; /* for the record */
    char **env;   /* K=V, beside those that were asked for */
    size_t env_count;
    bool as_before; /* its certificates are inside already */
};
/* For a sandbox that is to be made. Blames the fields of `network`. kept: what the sandbox had that it is made of (of its
 * snapshot), NULL: nothing; its processes have those placeholders and trust that authority, so the new one has them too,
 * beside what it wants. Headers that it wants are in the place of those that were. */
int secrets_plan(struct caller *caller, const struct secrets_want *want, bool root,
                 const char *kept, struct secrets_plan *ret, struct err *err);
/* Of a sandbox without secrets: it trusts the operator's authorities (sandbox_ca), and that is all. */
int secrets_plan_trust(bool root, struct secrets_plan *ret, struct err *err);
/* What is sealed with a sandbox or a snapshot, to be sealed with another; NULL: nothing. The caller's to seal_wipe. */
int secrets_kept(struct app *app, const char *id, char **ret, struct err *err);
void secrets_plan_done(struct secrets_plan *plan);
/* Where a sandbox has its certificates. */
#define SECRETS_BUNDLE    "ca.pem"
#define SECRETS_AUTHORITY "sandbox-ca.pem"
const char *secrets_place(bool root);
/* Certificates in the file that a setting names, the caller's to free; NULL: the setting is empty. A file with a private key
 * in it is refused: what is read here is given away. */
int secrets_authorities(const char *setting, const char *path, char **ret, struct err *err);
/* Reads sandbox_ca. Before the first request. */
int secrets_start(struct app *app, struct err *err);
/* The certificates, into a sandbox that was just made: its own authority, and those of sandbox_ca. */
int secrets_install(struct app *app, struct link *link, const char *sandbox, bool root,
                    struct err *err);

/* For the gateway; *ret NULL: the sandbox has none. */
int secrets_load(struct app *app, const char *sandbox, struct message_secrets **ret,
                 struct err *err);
/* Names of a sandbox's secrets, an array; NULL: none. */
json_t *secrets_names(struct app *app, const char *sandbox);
/* Headers that are set, {host: {name: value}} as they were asked for; NULL: none. */
json_t *secrets_rules(struct app *app, const char *sandbox);
/* Others in their place. ERR_STATE for a sandbox that was made without secrets and headers. */
int secrets_set_rules(struct caller *caller, const char *sandbox, const json_t *rules,
                      struct err *err);

#endif
