/* The egress of a sandbox, as its tenant asks for it. */
#include "server/guard/audit.h"
#include "server/net/network.h"
#include "server/net/network_default.h"
#include "server/net/network_events.h"
#include "server/ops/ops_own.h"

#include "base/own.h"

int ops_network_get(struct ops *ops, const char *sandbox, struct reach *ret, struct err *err)
{
    struct store_sandbox record;

    return ops_find(ops, sandbox, &record, err) < 0 ? -1 : network_get(ops->app, sandbox, ret, err);
}

int ops_network_set(struct ops *ops, const char *sandbox, struct reach *rules, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    auto_free struct reach *settled = NULL;
    struct ops_sandbox box;

    /* On disk there is nothing to apply rules to. What names no proxy has its template's or its tenant's. */
    if (ops_sandbox_get(ops, sandbox, &box, err) < 0 ||
        (box.tier == STORE_DISK && ops_wake(ops, sandbox, err) < 0) ||
        network_settle(ops->app, ops->caller->tenant, box.template, rules, false, &settled, err) <
            0)
        return -1;
    if (settled)
        rules->upstream = settled->upstream;
    if (network_apply(ops->app, sandbox, rules, err) < 0) {
        ops_audit(ops, "sandbox.network", sandbox, err);
        return -1;
    }
    facts.detail = reach_mode_name(rules->mode);
    return audit_durable(ops->caller, "sandbox.network", sandbox, &facts, err);
}

int ops_network_settle(struct ops *ops, const struct ops_create *create, struct reach **ret,
                       struct err *err)
{
    const char *named = create->base ? create->base : create->template;
    const char *template = named ? named : create->default_template;

    return network_settle(ops->app, ops->caller->tenant, template, create->network,
                          create->network_implied, ret, err);
}

int ops_network_settle_again(struct ops *ops, const struct ops_create *create, const char *sandbox,
                             const char *template, struct err *err)
{
    auto_free struct reach *network = NULL;

    if (network_settle(ops->app, ops->caller->tenant, template, create->network,
                       create->network_implied, &network, err) < 0)
        return -1;
    return network ? network_apply(ops->app, sandbox, network, err) : 0;
}

int ops_network_default_get(struct ops *ops, struct reach *ret, bool *ret_found, struct err *err)
{
    return network_default_get(ops->app, STORE_NETWORK_TENANT, ops->caller->tenant, ret, ret_found,
                               err);
}

int ops_network_default_set(struct ops *ops, const struct reach *rules, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;

    if (network_default_set(ops->app, STORE_NETWORK_TENANT, ops->caller->tenant, rules, err) < 0) {
        ops_audit(ops, "tenant.network", NULL, err);
        return -1;
    }
    facts.detail = rules ? reach_mode_name(rules->mode) : "none";
    return audit_durable(ops->caller, "tenant.network", NULL, &facts, err);
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
    return audit_durable(ops->caller, "sandbox.network", sandbox, &facts, err);
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
