/* Private networks, as their tenant asks for them. */
#include "base/own.h"
#include "server/guard/audit.h"
#include "server/net/network.h"
#include "server/net/private.h"
#include "server/ops/ops_own.h"
#include "store/private.h"

#include <string.h>

static int ready(struct ops *ops, struct err *err)
{
    return ops->app->network ? 0 : network_unsupported(err);
}

/* Which field a refusal of the store is about. */
static int blame(struct ops *ops, const struct err *err)
{
    static const struct {
        enum err_kind kind;
        const char *field, *layer;
    } rows[] = {
        { ERR_NAME_TAKEN, "alias", NULL },
        { ERR_TOO_MANY, NULL, "quota" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].kind == err->kind)
            return caller_blame(ops->caller, rows[i].field, NULL, rows[i].layer);
    return -1;
}

/* Done or refused, it is noted; what was done counts for the gateway before it is answered. */
static int finish(struct ops *ops, const char *action, const char *sandbox, const char *detail,
                  int r, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;

    if (r == 0)
        r = private_sync(ops->app, ops->caller->tenant, err);
    if (r < 0) {
        ops_audit(ops, action, sandbox, err);
        return blame(ops, err);
    }
    facts.detail = detail;
    return audit_durable(ops->caller, action, sandbox, &facts, err);
}

int ops_private_make(struct ops *ops, const char *name, struct private_network *ret, bool *ret_made,
                     struct err *err)
{
    const char *tenant = ops->caller->tenant;
    int r;

    if (ready(ops, err) < 0)
        return -1;
    r = store_private_make(ops->app->store, tenant, name, ret_made, err);
    if (r < 0 && err->kind == ERR_INVALID)
        (void) caller_blame(ops->caller, "name", NULL, NULL);
    if ((r < 0 || *ret_made) && finish(ops, "network.make", NULL, name, r, err) < 0)
        return -1;
    return store_private_get(ops->app->store, tenant, name, ret, err);
}

int ops_private_remove(struct ops *ops, const char *name, struct err *err)
{
    return ready(ops, err) < 0
               ? -1
               : finish(ops, "network.remove", NULL, name,
                        store_private_remove(ops->app->store, ops->caller->tenant, name, err), err);
}

int ops_private_get(struct ops *ops, const char *name, struct private_network *ret, struct err *err)
{
    return store_private_get(ops->app->store, ops->caller->tenant, name, ret, err);
}

int ops_private_list(struct ops *ops,
                     int (*each)(void *, const struct private_network *, struct err *), void *arg,
                     struct err *err)
{
    return store_private_list(ops->app->store, ops->caller->tenant, each, arg, err);
}

int ops_private_members(struct ops *ops, const char *name,
                        int (*each)(void *, const struct private_member *, struct err *), void *arg,
                        struct err *err)
{
    return store_private_members(ops->app->store, ops->caller->tenant, name, each, arg, err);
}

static void describe(const struct private_member *member, char *out, size_t size)
{
    char ports[PRIVATE_PORTS_TEXT];

    private_ports_print(member, ports);
    (void) snprintf(out, size, "%s as %s, ports %.60s", member->network, member->alias,
                    ports[0] ? ports : "none");
}

int ops_private_join(struct ops *ops, const struct private_member *join, struct private_member *ret,
                     struct err *err)
{
    char detail[240] = "";
    int r;

    if (ready(ops, err) < 0)
        return -1;
    r = store_private_join(ops->app->store, ops->caller->tenant, join, ret, err);
    if (r == 0)
        describe(ret, detail, sizeof detail);
    return finish(ops, "network.join", join->sandbox, detail, r, err);
}

int ops_private_leave(struct ops *ops, const char *network, const char *sandbox, struct err *err)
{
    return ready(ops, err) < 0 ? -1
                               : finish(ops, "network.leave", sandbox, network,
                                        store_private_leave(ops->app->store, ops->caller->tenant,
                                                            network, sandbox, err),
                                        err);
}

/* ---- at a create ---- */

json_t *ops_private_joins_json(const struct ops_create *create)
{
    json_t *list = create->join_count > 0 ? json_array() : NULL;

    for (size_t i = 0; i < create->join_count; i++) {
        char ports[PRIVATE_PORTS_TEXT];

        private_ports_print(&create->joins[i], ports);
        (void) json_array_append_new(
            list, json_pack("[s, s, s]", create->joins[i].network, create->joins[i].alias, ports));
    }
    return list;
}

int ops_private_made(struct ops *ops, const struct ops_create *create, const char *sandbox,
                     struct err *err)
{
    for (size_t i = 0; i < create->join_count; i++) {
        struct audit_facts facts = AUDIT_FACTS;
        char detail[240];

        describe(&create->joins[i], detail, sizeof detail);
        facts.detail = detail;
        audit_note(ops->caller, "network.join", sandbox, &facts);
    }
    return private_sync(ops->app, ops->caller->tenant, err);
}
