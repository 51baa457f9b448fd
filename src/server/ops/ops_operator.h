/* ops_operator.h - what the operator of the server asks for: tenants, their keys, the audit log of all of them.
 *
 * Each operation refuses a caller below SCOPE_OPERATOR, whatever its route says. Answers are JSON as /v1 has it; the
 * reference is the caller's to give back.
 *
 * Callers: surface/v1. */
#ifndef COVE_SERVER_OPS_OPS_OPERATOR_H
#define COVE_SERVER_OPS_OPS_OPERATOR_H

#include "server/ops/ops.h"

struct audit_page; /* server/guard/audit.h */

/* ---- tenants ---- */

extern const struct form ops_quotas_form;

/* Of an add or a change; what is absent stays as it is. */
struct ops_tenant_change {
    const char *isolation; /* the least of its sandboxes, by name; NULL: absent */
    json_t *quotas; /* NULL: absent. An object with fields such as "sandboxes", "memory_bytes" */
    bool network_given;          /* whether `network` counts */
    const struct reach *network; /* the default network policy; NULL: none any more */
};

int ops_tenant_list(struct ops *ops, json_t **ret, struct err *err);
int ops_tenant_get(struct ops *ops, const char *name, json_t **ret, struct err *err);
int ops_tenant_add(struct ops *ops, const char *name, const struct ops_tenant_change *change,
                   json_t **ret, struct err *err);
int ops_tenant_change(struct ops *ops, const char *name, const struct ops_tenant_change *change,
                      json_t **ret, struct err *err);
int ops_tenant_remove(struct ops *ops, const char *name, struct err *err);

/* ---- keys ---- */

struct ops_key {
    const char *tenant, *scope, *label; /* scope NULL: run; label NULL: "" */
    uint64_t expires_ms;                /* from now on; 0: never */
};

/* The answer has the key itself, as "key": this once. */
int ops_key_create(struct ops *ops, const struct ops_key *key, json_t **ret, struct err *err);
/* tenant NULL: of all. */
int ops_key_list(struct ops *ops, const char *tenant, json_t **ret, struct err *err);
int ops_key_revoke(struct ops *ops, const char *id, struct err *err);

/* ---- the audit log ---- */

/* One page of records, with every field as the chain hashes it. */
int ops_audit_page(struct ops *ops, const struct audit_filter *filter, struct audit_page *ret,
                   struct err *err);
/* Computes the chain again. head NULL: no record has to be found. */
int ops_audit_verify(struct ops *ops, const char *head, json_t **ret, struct err *err);
int ops_audit_prune(struct ops *ops, uint64_t older_ms, uint64_t *ret_count, struct err *err);

#endif
