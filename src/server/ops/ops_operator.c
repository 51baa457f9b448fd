/* Tenants and their keys, as the operator asks for them. */
#include "server/ops/ops_operator.h"

#include "base/own.h"
#include "server/form/form.h"
#include "server/guard/audit.h"
#include "server/guard/keys.h"
#include "server/guard/live.h"
#include "server/guard/quota.h"
#include "server/life/uploads.h"
#include "server/net/network_default.h"
#include "server/net/network_rules.h"
#include "server/ops/ops_own.h"
#include "server/ops/ops_pull.h"

#include <string.h>

int ops_operator_only(struct ops *ops, const char *action, struct err *err)
{
    if (ops->caller->scope >= SCOPE_OPERATOR)
        return 0;
    err_set(err, ERR_DENIED,
            "only the operator may do that: over the unix socket, or with a key of scope operator");
    ops_audit(ops, action, NULL, err);
    return -1;
}

/* The record says which tenant it is about, and who asked. */
static int note(struct ops *ops, const char *tenant, const char *action, const char *detail,
                struct err *err)
{
    struct caller about = *ops->caller;
    struct audit_facts facts = AUDIT_FACTS;

    if (!about.home[0])
        memcpy(about.home, about.tenant, sizeof about.home);
    (void) snprintf(about.tenant, sizeof about.tenant, "%s", tenant);
    facts.detail = detail;
    return audit_durable(&about, action, NULL, &facts, err);
}

/* ---- tenants ---- */

#define AT(field) offsetof(struct store_quotas, field)
/* clang-format off */
static const struct form_field quota_fields[] = {
    { "sandboxes", FORM_COUNT, .at = AT(sandboxes), 0, INT64_MAX, "sandboxes at once" },
    { "cpu_milli", FORM_COUNT, .at = AT(cpu_milli), 0, INT64_MAX, "thousandths of a core, of all sandboxes together" },
    { "memory_bytes", FORM_COUNT, .at = AT(memory_bytes), 0, INT64_MAX, "memory of all sandboxes together" },
    { "disk_bytes", FORM_COUNT, .at = AT(disk_bytes), 0, INT64_MAX, "disk of all sandboxes together" },
    { "creates_per_s", FORM_COUNT, .at = AT(creates_per_s), 0, INT64_MAX, "sandboxes created in a second" },
    { "requests_per_s", FORM_COUNT, .at = AT(requests_per_s), 0, INT64_MAX, "requests in a second" },
    { "streams", FORM_COUNT, .at = AT(streams), 0, INT64_MAX, "streams at once" },
    { "stored_bytes", FORM_COUNT, .at = AT(stored_bytes), 0, INT64_MAX, "snapshots, paused sandboxes and volumes together" },
    { "images", FORM_COUNT, .at = AT(images), 0, INT64_MAX, "snapshots and paused sandboxes" },
};
/* clang-format on */
const struct form ops_quotas_form = FORM_OF(quota_fields);
/* The least isolation is a name, beside the numbers. */
_Static_assert((ARRAY_LEN(quota_fields) + 1) * sizeof(uint64_t) == sizeof(struct store_quotas),
               "every quota has a row");

static json_t *quotas_json(const struct store_quotas *quotas)
{
    json_t *json = json_object();

    for (size_t i = 0; i < ARRAY_LEN(quota_fields); i++) {
        const uint64_t *value = (const uint64_t *) ((const char *) quotas + quota_fields[i].at);

        (void) json_object_set_new(json, quota_fields[i].name, json_integer((json_int_t) *value));
    }
    return json;
}

static int tenant_json(struct ops *ops, const struct store_tenant *tenant, json_t **ret,
                       struct err *err)
{
    auto_free struct reach *network = malloc(sizeof *network);
    struct store_usage used;
    bool found = false;

    if (!network)
        return err_set(err, ERR_NO_MEMORY, "no memory for a tenant");
    if (store_usage(ops->app->store, tenant->name, &used, err) < 0 ||
        network_default_get(ops->app, STORE_NETWORK_TENANT, tenant->name, network, &found, err) < 0)
        return -1;
    *ret = json_pack("{s:s, s:o, s:s, s:o, s:{s:I, s:I, s:I, s:I}, s:o}", "name", tenant->name,
                     "created_at", form_time(tenant->created_ms), "isolation",
                     isolation_name((uint32_t) tenant->quotas.isolation), "quotas",
                     quotas_json(&tenant->quotas), "used", "sandboxes", (json_int_t) used.sandboxes,
                     "cpu_milli", (json_int_t) used.cpu_milli, "memory_bytes",
                     (json_int_t) used.memory_bytes, "disk_bytes", (json_int_t) used.disk_bytes,
                     "network", found ? network_json(network) : json_null());
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a tenant");
}

struct tenants {
    struct ops *ops;
    json_t *list;
};

static int add_tenant(void *arg, const struct store_tenant *tenant, struct err *err)
{
    struct tenants *t = arg;
    json_t *json = NULL;

    if (tenant_json(t->ops, tenant, &json, err) < 0)
        return -1;
    return json_array_append_new(t->list, json) < 0
               ? err_set(err, ERR_NO_MEMORY, "no memory for the list")
               : 0;
}

int ops_tenant_list(struct ops *ops, json_t **ret, struct err *err)
{
    struct tenants t = { ops, NULL };

    if (ops_operator_only(ops, "tenant.list", err) < 0)
        return -1;
    t.list = json_array();
    if (store_tenant_list(ops->app->store, add_tenant, &t, err) < 0) {
        json_decref(t.list);
        return -1;
    }
    *ret = t.list;
    return 0;
}

int ops_tenant_get(struct ops *ops, const char *name, json_t **ret, struct err *err)
{
    struct store_tenant tenant;

    return ops_operator_only(ops, "tenant.get", err) < 0 ||
                   store_tenant_get(ops->app->store, name, &tenant, err) < 0
               ? -1
               : tenant_json(ops, &tenant, ret, err);
}

static int read_isolation(struct ops *ops, const char *name, uint64_t *ret, struct err *err)
{
    uint32_t least;

    if (isolation_parse(name, &least, err) == 0) {
        if (isolation_level(least) == least) {
            *ret = least;
            return 0;
        }
        err_set(err, ERR_INVALID, "isolation: '%s' is no level, use jail, gvisor or vm", name);
    }
    return caller_blame(ops->caller, "isolation", NULL, NULL);
}

static int read_quotas(struct ops *ops, const struct ops_tenant_change *change,
                       struct store_quotas *quotas, struct err *err)
{
    if (change->isolation && read_isolation(ops, change->isolation, &quotas->isolation, err) < 0)
        return -1;
    return change->quotas ? form_read_within(ops->caller, "quotas.", change->quotas,
                                             &ops_quotas_form, quotas, err)
                          : 0;
}

/* Quotas and network, as far as they are given, in one transaction. */
static int write_tenant(struct ops *ops, bool add, const char *name,
                        const struct ops_tenant_change *change, struct err *err)
{
    struct network_default_text text;
    struct store_network_new network;
    struct store_quotas quotas;
    int r;

    memset(&quotas, 0xff, sizeof quotas); /* STORE_QUOTA_KEEP, each */
    if (read_quotas(ops, change, &quotas, err) < 0 ||
        network_default_text(ops->app, change->network, &text, err) < 0)
        return -1;
    network = (struct store_network_new){ text.text, text.login };
    r = store_tenant_write(ops->app->store, add, name, &quotas,
                           change->network_given ? &network : NULL, err);
    network_default_wipe(&text);
    quota_changed(ops->app, name);
    if (r < 0)
        ops_audit(ops, add ? "tenant.add" : "tenant.set", NULL, err);
    return r < 0 && add ? caller_blame(ops->caller, "name", NULL, NULL) : r;
}

static int finish(struct ops *ops, const char *name, const struct ops_tenant_change *change,
                  const char *action, json_t **ret, struct err *err)
{
    if (note(ops, name, action, change->network_given ? "with its network" : "", err) < 0)
        return -1;
    return ops_tenant_get(ops, name, ret, err);
}

int ops_tenant_add(struct ops *ops, const char *name, const struct ops_tenant_change *change,
                   json_t **ret, struct err *err)
{
    return ops_operator_only(ops, "tenant.add", err) < 0 ||
                   write_tenant(ops, true, name, change, err) < 0
               ? -1
               : finish(ops, name, change, "tenant.add", ret, err);
}

int ops_tenant_change(struct ops *ops, const char *name, const struct ops_tenant_change *change,
                      json_t **ret, struct err *err)
{
    return ops_operator_only(ops, "tenant.set", err) < 0 ||
                   write_tenant(ops, false, name, change, err) < 0
               ? -1
               : finish(ops, name, change, "tenant.set", ret, err);
}

int ops_tenant_remove(struct ops *ops, const char *name, struct err *err)
{
    if (ops_operator_only(ops, "tenant.rm", err) < 0)
        return -1;
    if (store_tenant_remove(ops->app->store, name, err) < 0) {
        ops_audit(ops, "tenant.rm", NULL, err);
        return -1;
    }
    uploads_drop(ops->app, name);
    ops_pull_settle(ops->app, name);
    return note(ops, name, "tenant.rm", "", err);
}

/* ---- keys ---- */

static const char *key_state(const struct store_key *key)
{
    if (key->revoked_ms)
        return "revoked";
    return key->expires_ms && key->expires_ms <= store_now_ms() ? "expired" : "valid";
}

static json_t *key_json(const struct store_key *key)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "id", key->id, "tenant",
                     key->tenant, "scope", scope_name((enum scope) key->scope), "label", key->label,
                     "state", key_state(key), "created_at", form_time(key->created_ms),
                     "expires_at", form_time(key->expires_ms), "revoked_at",
                     form_time(key->revoked_ms), "last_used_at", form_time(key->last_used_ms));
}

int ops_key_create(struct ops *ops, const struct ops_key *key, json_t **ret, struct err *err)
{
    uint64_t until = key->expires_ms ? store_now_ms() + key->expires_ms : 0;
    char text[STORE_KEY_TEXT_MAX] = "";
    struct store_key made;
    int scope = 0, r;

    if (ops_operator_only(ops, "key.create", err) < 0)
        return -1;
    if (store_scope_parse(key->scope ? key->scope : "run", &scope, err) < 0)
        return caller_blame(ops->caller, "scope", NULL, NULL);
    r = store_key_create(ops->app->store, key->tenant, scope, key->label, until, &made, text, err);
    if (r < 0)
        ops_audit(ops, "key.create", NULL, err);
    else
        r = note(ops, made.tenant, "key.create", made.id, err);
    if (r == 0) {
        *ret = key_json(&made);
        (void) json_object_set_new(*ret, "key", json_string(text));
    }
    explicit_bzero(text, sizeof text);
    return r;
}

static int add_key(void *arg, const struct store_key *key, struct err *err)
{
    return json_array_append_new(arg, key_json(key)) < 0
               ? err_set(err, ERR_NO_MEMORY, "no memory for the list")
               : 0;
}

int ops_key_list(struct ops *ops, const char *tenant, json_t **ret, struct err *err)
{
    json_t *list;

    if (ops_operator_only(ops, "key.list", err) < 0)
        return -1;
    list = json_array();
    if (store_key_list(ops->app->store, tenant, add_key, list, err) < 0) {
        json_decref(list);
        return -1;
    }
    *ret = list;
    return 0;
}

int ops_key_revoke(struct ops *ops, const char *id, struct err *err)
{
    struct store_key key = { 0 };

    if (ops_operator_only(ops, "key.revoke", err) < 0)
        return -1;
    if (store_key_revoke(ops->app->store, id, &key, err) < 0) {
        ops_audit(ops, "key.revoke", NULL, err);
        return -1;
    }
    live_cut(key.id, ops->caller->fd);
    return note(ops, key.tenant, "key.revoke", id, err);
}
