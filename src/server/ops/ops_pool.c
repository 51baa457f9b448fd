/* What waits belongs to no tenant, and who took how many concerns all tenants: so only the tenant of the host itself may look, and
 * change how many there are. */
#include "base/own.h"
#include "server/guard/audit.h"
#include "server/life/pool.h"
#include "server/ops/ops_own.h"

#include <string.h>

static int only_local(struct ops *ops, const char *action, struct err *err)
{
    if (strcmp(ops->caller->tenant, STORE_LOCAL_TENANT) == 0)
        return 0;
    err_set(err, ERR_DENIED, "pools can be changed only by the tenant '" STORE_LOCAL_TENANT "'");
    ops_audit(ops, action, NULL, err);
    return -1;
}

int ops_pool_look(struct ops *ops, struct pool_report *ret, struct err *err)
{
    if (only_local(ops, "pool.look", err) < 0)
        return -1;
    pool_look(ret);
    return 0;
}

int ops_pool_rules(struct ops *ops,
                   int (*each)(void *, const struct store_pool_rule *, struct err *), void *arg,
                   struct err *err)
{
    return only_local(ops, "pool.look", err) < 0
               ? -1
               : store_pool_rules(ops->app->store, each, arg, err);
}

int ops_pool_set(struct ops *ops, const struct store_pool_rule *rule, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;

    if (only_local(ops, "pool.set", err) < 0 || store_pool_rule_set(ops->app->store, rule, err) < 0)
        return -1;
    pool_changed();
    facts.detail = rule->template;
    return audit_durable(ops->caller, "pool.set", NULL, &facts, err);
}

int ops_pool_drain(struct ops *ops, uint64_t *ret_count, struct err *err)
{
    auto_free struct keeper_sandbox *list = NULL;
    struct audit_facts facts = AUDIT_FACTS;
    size_t waiting = 0;
    struct link link;
    int r;

    *ret_count = 0;
    if (only_local(ops, "pool.drain", err) < 0 || app_link_take(ops->app, &link, err) < 0)
        return -1;
    r = sandbox_list_pool(&link, &list, &waiting, err);
    for (size_t i = 0; i < waiting && r == 0; i++) {
        r = sandbox_destroy(&link, list[i].id, err);
        *ret_count += r == 0;
        if (r < 0 && err->kind == ERR_NO_SANDBOX)
            r = 0; /* taken meanwhile */
    }
    ops_box_close(ops, &link, r, err);
    return r < 0 ? -1 : audit_durable(ops->caller, "pool.drain", NULL, &facts, err);
}

int ops_pool_unset(struct ops *ops, const char *template, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;

    if (only_local(ops, "pool.unset", err) < 0 ||
        store_pool_rule_remove(ops->app->store, template, err) < 0)
        return -1;
    pool_changed();
    facts.detail = template;
    return audit_durable(ops->caller, "pool.unset", NULL, &facts, err);
}
