/* What a create can ask for. An option that this server cannot keep is refused by its name: one that was passed over
 * would look as if it held. Fields that nobody knows are passed over, as E2B does, since later SDKs may send them; but
 * not inside "network", where each is a restriction or a permission. */
#include "e2b/control.h"

#include "base/own.h"

#include <arpa/inet.h>
#include <string.h>

#define PRESET_V1_MS 15000
#define PRESET_V2_MS 300000
#define CPU_MILLI    2000 /* E2B's own preset: two cores */
#define AT(field)    offsetof(struct body, field)

struct body {
    const char *template;
    json_t *timeout, *metadata, *env, *network, *auto_resume, *internet, *mcp, *iam, *mounts;
    bool secure, auto_pause, auto_pause_memory;
};

/* clang-format off */
static const struct v1_field fields[] = {
    { "templateID",            V1_TEXT,   AT(template), 0, 0 },
    { "timeout",               V1_ANY,    AT(timeout), 0, 0 },
    { "metadata",              V1_OBJECT, AT(metadata), 0, 0 },
    { "envVars",               V1_OBJECT, AT(env), 0, 0 },
    { "allow_internet_access", V1_ANY,    AT(internet), 0, 0 },
    { "network",               V1_OBJECT, AT(network), 0, 0 },
    { "autoPause",             V1_BOOL,   AT(auto_pause), 0, 0 },
    { "autoPauseMemory",       V1_BOOL,   AT(auto_pause_memory), 0, 0 },
    { "autoResume",            V1_OBJECT, AT(auto_resume), 0, 0 },
    { "mcp",                   V1_OBJECT, AT(mcp), 0, 0 }, /* the SDK's own work, with a template for it */
    { "iam",                   V1_OBJECT, AT(iam), 0, 0 },
    { "volumeMounts",          V1_ARRAY,  AT(mounts), 0, 0 },
};
static const struct v1_field field_secure = { "secure", V1_BOOL, AT(secure), 0, 0 };
/* clang-format on */

static int unsupported(struct exchange *x, const char *field, const char *why, struct err *err)
{
    err_set(err, ERR_UNSUPPORTED, "%s: %s", field, why);
    return exchange_blame(x, field, NULL, NULL);
}

/* ---- network ---- */

static bool is_range(const char *text)
{
    struct slice rest = slice_of(text), address;
    char name[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    uint64_t bits = 0;
    bool v4;

    if (slice_cut(&rest, '/', &address)) {
        if (!slice_number(rest, &bits))
            return false;
    } else {
        address = rest;
    }
    if (!slice_copy(address, name, sizeof name))
        return false;
    v4 = inet_pton(AF_INET, name, bytes) == 1;
    return (v4 || inet_pton(AF_INET6, name, bytes) == 1) && bits <= (v4 ? 32 : 128);
}

/* There is no way out of a sandbox, so whatever is denied is denied. Kept, to be shown. */
static int read_deny(struct exchange *x, json_t *list, struct e2b_notes *notes, struct err *err)
{
    json_t *item;
    size_t i, len;

    json_array_foreach(list, i, item)
    {
        if (!json_is_string(item) || !is_range(json_string_value(item)))
            return v1_bad(x, err, "network.denyOut", "item %zu is no address and no CIDR", i);
    }
    len = list ? json_dumpb(list, notes->deny_out, sizeof notes->deny_out - 1, JSON_COMPACT) : 0;
    if (len >= sizeof notes->deny_out)
        return v1_bad(x, err, "network.denyOut", "more than %zu bytes", sizeof notes->deny_out - 1);
    notes->deny_out[len] = '\0';
    return 0;
}

/* What would need a way out, or a proxy's help that there is not. */
static const struct {
    const char *field, *why;
} network_refused[] = {
    { "allowOut", "sandboxes have no way out on this server" },
    { "egressProxy", "sandboxes have no way out on this server" },
    { "rules", "sandboxes have no way out on this server" },
    { "maskRequestHost", "requests reach a sandbox with the Host that they have" },
    { "httpsPorts", "ports of a sandbox are spoken to in plain HTTP" },
};

static bool says_something(const json_t *value)
{
    if (json_is_array(value))
        return json_array_size(value) > 0;
    if (json_is_object(value))
        return json_object_size(value) > 0;
    return value && !json_is_null(value);
}

struct network {
    json_t *deny_out, *allow_out, *proxy, *rules, *mask, *https;
    bool public_traffic;
};

int control_network(struct exchange *x, json_t *network, struct e2b_notes *notes, struct err *err)
{
    static const struct v1_field rows[] = {
        { "denyOut", V1_ARRAY, offsetof(struct network, deny_out), 0, 0 },
        { "allowPublicTraffic", V1_BOOL, offsetof(struct network, public_traffic), 0, 0 },
        { "allowOut", V1_ANY, offsetof(struct network, allow_out), 0, 0 },
        { "egressProxy", V1_ANY, offsetof(struct network, proxy), 0, 0 },
        { "rules", V1_ANY, offsetof(struct network, rules), 0, 0 },
        { "maskRequestHost", V1_ANY, offsetof(struct network, mask), 0, 0 },
        { "httpsPorts", V1_ANY, offsetof(struct network, https), 0, 0 },
    };
    struct network got = { .public_traffic = notes->public_traffic };
    char field[64];

    if (v1_read(x, network, rows, ARRAY_LEN(rows), &got, err) < 0)
        return err_wrap(err, "network");
    for (size_t i = 0; i < ARRAY_LEN(network_refused); i++) {
        (void) snprintf(field, sizeof field, "network.%s", network_refused[i].field);
        if (says_something(json_object_get(network, network_refused[i].field)))
            return unsupported(x, field, network_refused[i].why, err);
    }
    notes->public_traffic = got.public_traffic;
    return read_deny(x, got.deny_out, notes, err);
}

/* ---- the rest ---- */

static int read_lifecycle(struct exchange *x, const struct body *body, struct control_create *ret,
                          struct err *err)
{
    const json_t *enabled = json_object_get(body->auto_resume, "enabled");

    if (body->auto_resume && !json_is_boolean(enabled))
        return v1_bad(x, err, "autoResume", "an object with 'enabled' is needed: true or false");
    ret->notes.auto_resume = json_is_true(enabled);
    ret->ops.on_timeout = body->auto_pause ? ON_TIMEOUT_PAUSE : ON_TIMEOUT_KILL;
    if (body->auto_pause_memory)
        return 0;
    if (!body->auto_pause)
        return v1_bad(x, err, "autoPauseMemory", "means nothing without autoPause");
    if (ret->notes.auto_resume)
        return v1_bad(x, err, "autoPauseMemory", "without memory there is no autoResume");
    return unsupported(x, "autoPauseMemory", "a pause without memory is not offered by this server",
                       err);
}

static int read_network(struct exchange *x, const struct body *body, struct e2b_notes *notes,
                        struct err *err)
{
    if (body->internet && !json_is_boolean(body->internet))
        return v1_bad(x, err, "allow_internet_access", "true or false is needed");
    if (body->internet)
        notes->internet = json_is_true(body->internet);
    if (body->network && control_network(x, body->network, notes, err) < 0)
        return -1;
    if (!notes->public_traffic && !notes->secure)
        return v1_bad(x, err, "network.allowPublicTraffic",
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
            return v1_bad(x, err, "metadata", "'%.40s' is not a text", key);
        if (strncmp(key, "cove.", 5) == 0)
            return v1_bad(x, err, "metadata", "names that begin with 'cove.' are taken");
    }
    return 0;
}

static int check_unknown_features(struct exchange *x, const struct body *body, struct err *err)
{
    if (says_something(body->iam))
        return unsupported(x, "iam", "identity tokens are not offered by this server", err);
    if (says_something(body->mounts))
        return unsupported(x, "volumeMounts", "volumes are not offered by this server", err);
    return 0;
}

int control_options(struct exchange *x, json_t *json, bool v2, struct control_create *ret,
                    struct err *err)
{
    struct body body = { .auto_pause_memory = true, .secure = v2 };

    *ret = (struct control_create){ .notes = E2B_NOTES };
    if (v1_read_known(x, json, fields, ARRAY_LEN(fields), &body, err) < 0 ||
        (!v2 && v1_read_known(x, json, &field_secure, 1, &body, err) < 0))
        return -1;
    if (!body.template)
        return v1_bad(x, err, "templateID", "a template's name is needed");
    ret->notes.secure = body.secure;
    ret->metadata = body.metadata;
    ret->env = body.env;
    if (control_template_name(body.template, ret->template, err) < 0 ||
        control_timeout(x, body.timeout, 1, v2 ? PRESET_V2_MS : PRESET_V1_MS, &ret->ops.timeout_ms,
                        err) < 0 ||
        check_metadata(x, body.metadata, err) < 0 || read_lifecycle(x, &body, ret, err) < 0 ||
        read_network(x, &body, &ret->notes, err) < 0 || check_unknown_features(x, &body, err) < 0)
        return -1;
    ret->notes.timeout_s = ret->ops.timeout_ms / 1000;
    ret->ops.template = ret->template;
    ret->ops.or_default = control_template_standard(ret->template);
    ret->ops.e2b = true;
    ret->ops.root = true; /* sudo works without a password: what SDKs' users expect */
    limits_preset(&ret->ops.limits);
    ret->ops.limits.cpu_milli = CPU_MILLI;
    return 0;
}

/* ---- later ---- */

static int change_network(struct exchange *x, json_t *body, struct ops_sandbox *sandbox,
                          struct err *err)
{
    json_t *internet = json_object_get(body, "allow_internet_access");
    struct ops ops = ops_of(x);
    struct e2b_notes notes;
    char text[OPS_NOTES_MAX];

    e2b_notes_read(sandbox->notes, &notes);
    notes.internet = -1; /* what is not said is cleared */
    if (internet && !json_is_boolean(internet))
        return v1_bad(x, err, "allow_internet_access", "true or false is needed");
    if (internet)
        notes.internet = json_is_true(internet);
    (void) json_object_del(body, "allow_internet_access");
    if (json_object_get(body, "allowPublicTraffic"))
        return v1_bad(x, err, "allowPublicTraffic", "can only be said at the create");
    if (control_network(x, body, &notes, err) < 0 ||
        e2b_notes_print(&notes, text, sizeof text, err) < 0)
        return -1;
    return ops_sandbox_set_notes(&ops, sandbox->id, text, err);
}

int control_network_put(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(x);
    struct ops_sandbox sandbox;
    char buffer[ID_LEN + 1];
    json_t *body;
    int r;

    if (exchange_json(x, &body, err) < 0)
        return -1;
    r = ops_sandbox_get(&ops, control_id(x, buffer), &sandbox, err);
    if (r == 0)
        r = change_network(x, body, &sandbox, err);
    json_decref(body);
    return r < 0 ? -1 : exchange_reply_json(x, 204, NULL, err);
}
