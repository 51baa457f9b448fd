/* Secrets of a tenant, as it asks for them. Their values come in, and never go out. */
#include "server/form/form.h"
#include "server/guard/audit.h"
#include "server/net/network.h"
#include "server/net/secrets.h"
#include "server/ops/ops_own.h"

#include "base/own.h"

#include <stdlib.h>
#include <string.h>

/* Noted with its name; then the gateways are told, which is not worth a refusal: they are told again. */
static int changed(struct ops *ops, const char *action, const char *name, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    struct err ignored;

    (void) network_secrets_changed(ops->app, ops->caller->tenant, &ignored);
    facts.detail = name;
    return audit_durable(ops->caller, action, NULL, &facts, err);
}

static int check(struct ops *ops, const char *name, const struct ops_secret *secret,
                 struct err *err)
{
    char field[32];
    size_t bad;

    if (!store_vault_name_ok(name))
        return form_bad(ops->caller, err, "name",
                        "1 to 63 letters, digits and '_', and no digit first, are needed");
    if (secret->len > STORE_VALUE_MAX) {
        err_set(err, ERR_TOO_BIG, "value: more than %d bytes", STORE_VALUE_MAX);
        return caller_blame(ops->caller, "value", NULL, "quota");
    }
    if (!store_vault_value_ok(secret->value, secret->len))
        return form_bad(
            ops->caller, err, "value",
            "a text of one line is needed, without control characters and without blanks "
            "at its ends");
    if (secrets_check_hosts(secret->hosts, &bad, err) == 0)
        return 0;
    (void) snprintf(field, sizeof field, "hosts[%zu]", bad);
    (void) err_wrap(err, "%s", field);
    return caller_blame(ops->caller, field, NULL, NULL);
}

int ops_secret_set(struct ops *ops, const char *name, const struct ops_secret *secret,
                   struct err *err)
{
    auto_free char *hosts = json_dumps(secret->hosts, JSON_COMPACT);
    int r = check(ops, name, secret, err);

    if (r == 0 && !hosts)
        r = err_set(err, ERR_NO_MEMORY, "no memory for hosts");
    if (r == 0) {
        r = store_vault_set(ops->app->store, ops->caller->tenant, name, hosts, secret->value,
                            secret->len, err);
        if (r < 0 && err->kind == ERR_TOO_MANY)
            (void) caller_blame(ops->caller, NULL, NULL, "quota");
    }
    if (r < 0) {
        ops_audit(ops, "secret.set", NULL, err);
        return -1;
    }
    return changed(ops, "secret.set", name, err);
}

int ops_secret_remove(struct ops *ops, const char *name, struct err *err)
{
    if (store_vault_remove(ops->app->store, ops->caller->tenant, name, err) < 0) {
        ops_audit(ops, "secret.remove", NULL, err);
        return -1;
    }
    return changed(ops, "secret.remove", name, err);
}

static int add_one(void *arg, const struct store_vault *secret, struct err *err)
{
    json_t *hosts = json_loads(secret->hosts, 0, NULL), *one;

    one = json_pack("{s:s, s:o, s:o, s:o}", "name", secret->name, "hosts",
                    hosts ? hosts : json_array(), "created", form_time(secret->created_ms),
                    "updated", form_time(secret->updated_ms));
    return json_array_append_new(arg, one) < 0
               ? err_set(err, ERR_NO_MEMORY, "no memory for the list")
               : 0;
}

int ops_secret_list(struct ops *ops, json_t **ret, struct err *err)
{
    json_t *list = json_array();

    if (store_vault_list(ops->app->store, ops->caller->tenant, add_one, list, err) < 0) {
        json_decref(list);
        return -1;
    }
    *ret = list;
    return 0;
}

json_t *ops_network_secrets(struct ops *ops, const char *sandbox)
{
    struct store_sandbox record;
    struct err ignored;

    return ops_find(ops, sandbox, &record, &ignored) < 0 ? NULL : secrets_names(ops->app, sandbox);
}

json_t *ops_network_rules(struct ops *ops, const char *sandbox)
{
    struct store_sandbox record;
    struct err ignored;

    return ops_find(ops, sandbox, &record, &ignored) < 0 ? NULL : secrets_rules(ops->app, sandbox);
}

int ops_network_set_rules(struct ops *ops, const char *sandbox, const json_t *rules,
                          struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    struct store_sandbox record;

    if (ops_find(ops, sandbox, &record, err) < 0)
        return -1;
    if (secrets_set_rules(ops->caller, sandbox, rules, err) < 0 ||
        network_secrets_of(ops->app, sandbox, err) < 0) {
        ops_audit(ops, "sandbox.headers", sandbox, err);
        return -1;
    }
    return audit_durable(ops->caller, "sandbox.headers", sandbox, &facts, err);
}
