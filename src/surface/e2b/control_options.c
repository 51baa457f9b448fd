/* What a create can ask for. An option that this server cannot keep is refused by its name: one that was passed over
 * would look as if it held. Unknown fields are passed over, as E2B does, since later SDKs may send them; but
 * not inside "network", where each is a restriction or a permission. */
#include "surface/e2b/control.h"

#include "base/own.h"

#include <string.h>

#define V1_DEFAULT_MS 15000
#define V2_DEFAULT_MS 300000
#define AT(field)     offsetof(struct body, field)

struct body {
    const char *template;
    json_t *timeout, *metadata, *env, *network, *auto_resume, *internet, *mcp, *iam, *mounts;
    bool secure, auto_pause, auto_pause_memory, memory;
};

/* clang-format off */
static const struct form_field fields[] = {
    { "templateID",            FORM_TEXT,   AT(template), .needed = true },
    { "timeout",               FORM_ANY,    AT(timeout) },
    { "metadata",              FORM_OBJECT, AT(metadata) },
    { "envVars",               FORM_OBJECT, AT(env) },
    { "allow_internet_access", FORM_ANY,    AT(internet) },
    { "network",               FORM_OBJECT, AT(network) },
    { "autoPause",             FORM_BOOL,   AT(auto_pause) },
    { "autoPauseMemory",       FORM_BOOL,   AT(auto_pause_memory), .fallback = "true" },
    { "memory",                FORM_BOOL,   AT(memory),            .fallback = "true" },
    { "autoResume",            FORM_OBJECT, AT(auto_resume) },
    { "mcp",                   FORM_OBJECT, AT(mcp) }, /* the SDK's own work, with a template for it */
    { "iam",                   FORM_OBJECT, AT(iam) },
    { "volumeMounts",          FORM_ARRAY,  AT(mounts) },
    { "secure",                FORM_BOOL,   AT(secure) }, /* last: not of a create of the second version */
};
/* clang-format on */
static const struct form first_form = FORM_OF(fields, .open = true);
static const struct form second_form = { .rows = fields,
                                         .count = ARRAY_LEN(fields) - 1,
                                         .open = true };

static int unsupported(struct exchange *x, const char *field, const char *why, struct err *err)
{
    err_set(err, ERR_UNSUPPORTED, "%s: %s", field, why);
    return exchange_blame(x, field, NULL, NULL);
}

bool control_says(const json_t *value)
{
    if (json_is_array(value))
        return json_array_size(value) > 0;
    if (json_is_object(value))
        return json_object_size(value) > 0;
    return value && !json_is_null(value);
}

static int read_lifecycle(struct exchange *x, const struct body *body, struct control_create *ret,
                          struct err *err)
{
    const json_t *enabled = json_object_get(body->auto_resume, "enabled");

    if (body->auto_resume && !json_is_boolean(enabled))
        return form_bad(exchange_caller(x), err, "autoResume",
                        "an object with 'enabled' is needed: true or false");
    ret->notes.auto_resume = ret->ops.auto_resume = json_is_true(enabled);
    ret->ops.on_timeout = body->auto_pause ? ON_TIMEOUT_PAUSE : ON_TIMEOUT_KILL;
    if (body->auto_pause_memory)
        return 0;
    if (!body->auto_pause)
        return form_bad(exchange_caller(x), err, "autoPauseMemory", "needs autoPause");
    if (ret->notes.auto_resume)
        return form_bad(exchange_caller(x), err, "autoPauseMemory",
                        "without memory there is no autoResume");
    ret->ops.forgets = true;
    return 0;
}

static int read_network(struct exchange *x, const struct body *body, struct control_create *ret,
                        struct reach *reach, struct err *err)
{
    if (control_internet(x, body->internet, &ret->notes, err) < 0 ||
        control_rules(x, body->network, &ret->ops.secrets.rules, err) < 0 ||
        control_network(x, body->network, &ret->notes, reach, err) < 0)
        return -1;
    ret->ops.network = control_reach(x, reach);
    /* SDKs say "true" for their users, who said nothing. */
    ret->ops.network_implied = ret->notes.internet != 0 && !control_says_reach(body->network);
    if (!ret->notes.public_traffic && !ret->notes.secure)
        return form_bad(exchange_caller(x), err, "network.allowPublicTraffic",
                        "cannot be false for a sandbox that is not secure");
    return 0;
}

static int check_metadata(struct exchange *x, json_t *metadata, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
            return form_bad(exchange_caller(x), err, "metadata", "'%.40s' is not a text", key);
        if (strncmp(key, "cove.", 5) == 0 && strcmp(key, E2B_ISOLATION) != 0)
            return form_bad(exchange_caller(x), err, "metadata",
                            "names that begin with 'cove.' are reserved");
    }
    return 0;
}

static int check_unknown_features(struct exchange *x, const struct body *body, struct err *err)
{
    if (control_says(body->iam))
        return unsupported(x, "iam", "identity tokens are not offered by this server", err);
    return 0;
}

int control_options(struct exchange *x, json_t *json, bool v2, struct control_create *ret,
                    struct reach *reach, struct err *err)
{
    struct body body = { .secure = v2 };
    struct ops_template_ref ref;

    *ret = (struct control_create){ .notes = E2B_NOTES };
    if (form_read(exchange_caller(x), json, v2 ? &second_form : &first_form, &body, err) < 0 ||
        ops_mounts_read(exchange_caller(x), "volumeMounts", body.mounts, ret->volumes,
                        &ret->ops.volume_count, err) < 0)
        return -1;
    ret->notes.secure = body.secure;
    ret->metadata = body.metadata;
    ret->ops.isolation = json_string_value(json_object_get(body.metadata, E2B_ISOLATION));
    ret->env = body.env;
    if (control_template_ref(body.template, &ref, err) < 0 ||
        control_timeout(x, body.timeout, 1, v2 ? V2_DEFAULT_MS : V1_DEFAULT_MS,
                        &ret->ops.timeout_ms, err) < 0 ||
        check_metadata(x, body.metadata, err) < 0 || read_lifecycle(x, &body, ret, err) < 0 ||
        read_network(x, &body, ret, reach, err) < 0 || check_unknown_features(x, &body, err) < 0)
        return -1;
    ret->notes.timeout_s = ret->ops.timeout_ms / 1000;
    (void) snprintf(ret->template, sizeof ret->template, "%s%s%s", ref.name,
                    strcmp(ref.tag, "default") == 0 ? "" : ":",
                    strcmp(ref.tag, "default") == 0 ? "" : ref.tag);
    if (strcmp(ref.tag, "default") == 0 && control_is_snapshot(x, ret->template)) {
        ret->ops.snapshot = ret->template;
        ret->ops.files_only = !body.memory;
    } else {
        ret->ops.template = ret->template;
        ret->ops.or_default = control_template_standard(ret->template); /* not with a tag */
    }
    ret->ops.e2b = true;
    ret->ops.root = true;  /* sudo works without a password: what SDKs' users expect */
    if (ret->ops.snapshot) /* its own */
        return 0;
    limits_default(&ret->ops.limits);
    ret->ops.limits.cpu_milli = LIMITS_E2B_CPU_MILLI;
    return 0;
}
