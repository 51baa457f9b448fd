/* E2B's words for what a sandbox may reach, and ours (egress/reach.h):
 *
 *   nothing said                         public
 *   denyOut                              public, but for these
 *   denyOut of everything, or
 *   allow_internet_access false          a list: what allowOut names, if it names anything
 *
 * What is allowed beats what is denied. Names in allowOut mean something only where everything else is denied; E2B
 * refuses them elsewhere, and so do we. */
#include "surface/e2b/control.h"

#include "base/own.h"
#include "server/net/network_proxy.h"
#include "server/net/network_rules.h"
#include "server/preview/preview.h"

#include <stdlib.h>
#include <string.h>

#define EVERYTHING "0.0.0.0/0"

/* What would need more than a gateway of bytes. */
static const struct {
    const char *field, *why;
} refused[] = {
    { "httpsPorts", "ports of a sandbox are reached in plain HTTP" },
};

struct network {
    json_t *deny_out, *allow_out, *proxy, *rules, *https;
    const char *mask;
    bool public_traffic;
};

static bool is_everything(const struct reach_rule *rule)
{
    return !rule->is_name && rule->range.bits == 0;
}

static bool denies_everything(const struct reach *reach)
{
    for (size_t i = 0; i < reach->deny_count; i++)
        if (is_everything(&reach->deny[i]))
            return true;
    return false;
}

static int add_all(struct exchange *x, const char *field, json_t *list, bool deny,
                   struct reach *reach, struct err *err)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);

        if (!text)
            return form_bad(exchange_caller(x), err, field, "item %zu is not a text", i);
        if (network_add(exchange_caller(x), reach, deny, text, err) < 0) {
            err->kind = ERR_INVALID;
            (void) err_wrap(err, "%s: item %zu", field, i);
            return exchange_blame(x, field, NULL, NULL);
        }
        if (deny && reach->deny[reach->deny_count - 1].is_name)
            return form_bad(exchange_caller(x), err, field,
                            "item %zu is neither an address nor a CIDR", i);
    }
    return 0;
}

static int check_names(struct exchange *x, const struct reach *reach, struct err *err)
{
    for (size_t i = 0; i < reach->allow_count; i++)
        if (reach->allow[i].is_name && reach->mode != REACH_LIST)
            return form_bad(exchange_caller(x), err, "network.allowOut",
                            "a name is allowed only where all else is denied: put '" EVERYTHING
                            "' into denyOut");
    return 0;
}

/* Fields of a network as they were read, into rules. */
static int to_reach(struct exchange *x, const struct network *got, int internet,
                    struct reach *reach, struct err *err)
{
    *reach = (struct reach){ .allow_wins = true };
    if (add_all(x, "network.allowOut", got->allow_out, false, reach, err) < 0 ||
        add_all(x, "network.denyOut", got->deny_out, true, reach, err) < 0)
        return -1;
    if (internet == 0 && !denies_everything(reach) && reach_add(reach, true, EVERYTHING, err) < 0)
        return -1;
    reach->mode = !denies_everything(reach) ? REACH_PUBLIC
                  : reach->allow_count == 0 ? REACH_OFF
                                            : REACH_LIST;
    return check_names(x, reach, err);
}

bool control_says_reach(const json_t *network)
{
    return control_says(json_object_get(network, "allowOut")) ||
           control_says(json_object_get(network, "denyOut"));
}

int control_network(struct exchange *x, json_t *network, struct e2b_notes *notes,
                    struct reach *reach, struct err *err)
{
    static const struct form_field rows[] = {
        { "denyOut", FORM_ARRAY, offsetof(struct network, deny_out) },
        { "allowOut", FORM_ARRAY, offsetof(struct network, allow_out) },
        { "allowPublicTraffic", FORM_BOOL, offsetof(struct network, public_traffic) },
        { "egressProxy", FORM_ANY, offsetof(struct network, proxy) },
        { "rules", FORM_ANY, offsetof(struct network, rules) },
        { "maskRequestHost", FORM_TEXT, offsetof(struct network, mask) },
        { "httpsPorts", FORM_ANY, offsetof(struct network, https) },
    };
    static const struct form form = FORM_OF(rows);
    struct network got = { .public_traffic = notes->public_traffic };
    char field[64];

    if (network && form_read_within(exchange_caller(x), "network.", network, &form, &got, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        if (!control_says(json_object_get(network, refused[i].field)))
            continue;
        (void) snprintf(field, sizeof field, "network.%s", refused[i].field);
        err_set(err, ERR_UNSUPPORTED, "%s: %s", field, refused[i].why);
        return exchange_blame(x, field, NULL, NULL);
    }
    if (got.mask && !preview_mask_ok(got.mask))
        return form_bad(exchange_caller(x), err, "network.maskRequestHost",
                        "must be a host, perhaps with a port: localhost:${PORT}");
    if (got.mask)
        (void) snprintf(notes->mask_host, sizeof notes->mask_host, "%s", got.mask);
    notes->public_traffic = got.public_traffic;
    return to_reach(x, &got, notes->internet, reach, err) < 0
               ? -1
               : network_proxy_read(exchange_caller(x), "network.egressProxy", got.proxy,
                                    UPSTREAM_SOCKS5, &reach->upstream, err);
}

/* Where the operator gave sandboxes no network, only what was asked for in words is refused. */
const struct reach *control_reach(struct exchange *x, const struct reach *reach)
{
    return exchange_app(x)->network || reach->mode == REACH_LIST ? reach : NULL;
}

int control_internet(struct exchange *x, const json_t *value, struct e2b_notes *notes,
                     struct err *err)
{
    if (value && !json_is_boolean(value))
        return form_bad(exchange_caller(x), err, "allow_internet_access", "must be true or false");
    notes->internet = value ? json_is_true(value) : -1;
    return 0;
}

/* ---- showing ---- */

static json_t *list_json(const struct reach_rule *rules, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        char text[REACH_TEXT_MAX];

        reach_rule_print(&rules[i], text);
        (void) json_array_append_new(list, json_string(text));
    }
    return list;
}

json_t *control_network_json(struct exchange *x, const char *sandbox, const struct e2b_notes *notes)
{
    auto_free struct reach *reach = malloc(sizeof *reach);
    json_t *json = json_pack("{s:b}", "allowPublicTraffic", notes->public_traffic), *rules;
    struct ops ops = ops_of(exchange_caller(x));
    struct err ignored;

    if (notes->mask_host[0])
        (void) json_object_set_new(json, "maskRequestHost", json_string(notes->mask_host));
    if (!reach || ops_network_get(&ops, sandbox, reach, &ignored) < 0)
        return json;
    if (reach->allow_count > 0)
        (void) json_object_set_new(json, "allowOut", list_json(reach->allow, reach->allow_count));
    if (reach->deny_count > 0)
        (void) json_object_set_new(json, "denyOut", list_json(reach->deny, reach->deny_count));
    if (reach->upstream.kind != UPSTREAM_NONE) {
        char address[UPSTREAM_ADDRESS_MAX];

        upstream_address(&reach->upstream, address);
        (void) json_object_set_new(json, "egressProxy", json_pack("{s:s}", "address", address));
    }
    rules = control_rules_json(x, sandbox);
    if (json_object_size(rules) > 0)
        (void) json_object_set(json, "rules", rules);
    json_decref(rules);
    return json;
}

/* ---- later ---- */

static int change_mask(struct exchange *x, const char *sandbox, const struct e2b_notes *notes,
                       struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct preview_rules rules = { .is_public = notes->public_traffic,
                                   .auto_resume = notes->auto_resume };

    if (preview_rules_load(ops.app, sandbox, &rules, err) < 0)
        return -1;
    memcpy(rules.mask_host, notes->mask_host, sizeof rules.mask_host);
    return ops_preview_set(&ops, sandbox, &rules, err);
}

/* What is not said is cleared. */
static int change_rules(struct ops *ops, const char *sandbox, const json_t *rules, struct err *err)
{
    json_t *old = ops_network_rules(ops, sandbox);
    bool none = !old && json_object_size(rules) == 0;

    json_decref(old);
    return none ? 0 : ops_network_set_rules(ops, sandbox, rules, err);
}

static int change(struct exchange *x, json_t *body, struct ops_sandbox *sandbox, struct err *err)
{
    auto_free struct reach *reach = malloc(sizeof *reach);
    json_t *internet = json_object_get(body, "allow_internet_access");
    struct ops ops = ops_of(exchange_caller(x));
    const json_t *rules;
    struct e2b_notes notes;
    char text[OPS_NOTES_MAX];

    if (!reach)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    e2b_notes_read(sandbox->notes, &notes);
    if (control_internet(x, internet, &notes, err) < 0) /* what is not said is cleared */
        return -1;
    (void) json_object_del(body, "allow_internet_access");
    if (json_object_get(body, "allowPublicTraffic"))
        return form_bad(exchange_caller(x), err, "allowPublicTraffic",
                        "can only be said at the create");
    if (control_rules(x, body, &rules, err) < 0 ||
        control_network(x, body, &notes, reach, err) < 0 ||
        e2b_notes_print(&notes, text, sizeof text, err) < 0)
        return -1;
    if (change_rules(&ops, sandbox->id, rules, err) < 0 ||
        (control_reach(x, reach) && ops_network_set(&ops, sandbox->id, reach, err) < 0) ||
        ops_sandbox_set_notes(&ops, sandbox->id, text, err) < 0)
        return -1;
    return json_object_get(body, "maskRequestHost") ? change_mask(x, sandbox->id, &notes, err) : 0;
}

int control_network_put(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;
    char buffer[ID_LEN + 1];
    json_t *body;
    int r;

    if (exchange_json(x, &body, err) < 0)
        return -1;
    r = ops_sandbox_get(&ops, control_id(x, buffer), &sandbox, err);
    if (r == 0)
        r = change(x, body, &sandbox, err);
    json_decref(body);
    return r < 0 ? -1 : exchange_reply_json(x, 204, NULL, err);
}
