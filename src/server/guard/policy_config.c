#include "server/guard/policy_config.h"

#include "base/own.h"

#include <string.h>

static int add_list(struct policy *policy, enum policy_list list, json_t *value, struct err *err)
{
    size_t i;
    json_t *item;

    if (!json_is_array(value))
        return err_set(err, ERR_INVALID, "security.%s: must be an array", policy_list_name(list));
    json_array_foreach(value, i, item)
    {
        if (!json_is_string(item))
            return err_set(err, ERR_INVALID, "security.%s: item %zu must be a string",
                           policy_list_name(list), i);
        if (policy_add(policy, list, json_string_value(item), err) < 0)
            return err_wrap(err, "security.%s", policy_list_name(list));
    }
    return 0;
}

static int set_bool(const char *key, json_t *value, bool *out, struct err *err)
{
    if (!json_is_boolean(value))
        return err_set(err, ERR_INVALID, "security.%s: must be true or false", key);
    *out = json_is_true(value);
    return 0;
}

static int set_risk(struct policy *policy, json_t *value, struct err *err)
{
    enum policy_risk risk =
        json_is_string(value) ? policy_risk_find(json_string_value(value)) : POLICY_RISK_COUNT;

    if (risk == POLICY_RISK_COUNT)
        return err_set(err, ERR_INVALID,
                       "security.max_risk: must be none, low, medium, high or critical");
    policy->max_risk = risk;
    return 0;
}

static int set_member(struct policy *policy, const char *key, json_t *value, struct err *err)
{
    bool audit = true;

    for (int list = 0; list < POLICY_LIST_COUNT; list++)
        if (strcmp(key, policy_list_name((enum policy_list) list)) == 0)
            return add_list(policy, (enum policy_list) list, value, err);
    if (strcmp(key, "allow_root") == 0)
        return set_bool(key, value, &policy->allow_root, err);
    if (strcmp(key, "network") == 0)
        return set_bool(key, value, &policy->network, err);
    if (strcmp(key, "max_risk") == 0)
        return set_risk(policy, value, err);
    if (strcmp(key, "enable_audit_log") == 0) {
        if (set_bool(key, value, &audit, err) < 0)
            return -1;
        return audit ? 0
                     : err_set(err, ERR_UNSUPPORTED,
                               "security.enable_audit_log: the audit log is always on");
    }
    return err_set(err, ERR_INVALID, "security.%s: unknown field", key);
}

int policy_from_json(struct policy *ret, json_t *security, const char *preset,
                     const char **ret_field, struct err *err)
{
    json_t *named = json_object_get(security, "preset");
    const char *key = "preset";
    json_t *value;

    policy_init(ret);
    if (named && !json_is_string(named)) {
        err_set(err, ERR_INVALID, "security.preset: must be a string");
        goto undo;
    }
    if (named)
        preset = json_string_value(named);
    if (policy_preset(ret, preset ? preset : "standard", err) < 0)
        goto undo;
    json_object_foreach(security, key, value)
    {
        if (strcmp(key, "preset") != 0 && !json_is_null(value) &&
            set_member(ret, key, value, err) < 0)
            goto undo;
    }
    key = NULL; /* the error names list and pattern */
    if (policy_compile(ret, err) < 0)
        goto undo;
    return 0;

undo:
    if (ret_field)
        *ret_field = key;
    policy_done(ret);
    return -1;
}
