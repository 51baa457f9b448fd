/* The way out of a sandbox, as its tenant asks for it. */
#include "api/audit.h"
#include "api/network.h"
#include "api/ops_own.h"

#include "base/own.h"

int ops_network_get(struct ops *ops, const char *sandbox, struct reach *ret, struct err *err)
{
    struct store_sandbox record;

    return ops_find(ops, sandbox, &record, err) < 0 ? -1 : network_get(ops->app, sandbox, ret, err);
}

int ops_network_set(struct ops *ops, const char *sandbox, const struct reach *rules,
                    struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    struct store_sandbox record;

    if (ops_find(ops, sandbox, &record, err) < 0)
        return -1;
    if (network_apply(ops->app, sandbox, rules, err) < 0) {
        ops_audit(ops, "sandbox.network", sandbox, err);
        return -1;
    }
    facts.detail = reach_mode_name(rules->mode);
    return audit_durable(ops->x, "sandbox.network", sandbox, &facts, err);
}

int ops_network_allow(struct ops *ops, const char *sandbox, const char *rule, struct reach *ret,
                      struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    struct store_sandbox record;

    if (ops_find(ops, sandbox, &record, err) < 0)
        return -1;
    if (network_allow(ops->app, sandbox, rule, ret, err) < 0) {
        ops_audit(ops, "sandbox.network", sandbox, err);
        return -1;
    }
    facts.detail = reach_mode_name(ret->mode);
    return audit_durable(ops->x, "sandbox.network", sandbox, &facts, err);
}

int ops_network_events(struct ops *ops, const char *sandbox, uint64_t after,
                       struct network_event *out, size_t most, size_t *ret_count, struct err *err)
{
    struct store_sandbox record;

    if (ops_find(ops, sandbox, &record, err) < 0)
        return -1;
    *ret_count = network_events(ops->app, sandbox, after, out, most);
    return 0;
}
