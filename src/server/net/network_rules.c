#include "server/net/network_rules.h"

#include "base/own.h"
#include "egress/may_name.h"
#include "server/app/app.h"
#include "server/form/form.h"
#include "server/net/network_proxy.h"

#include <stdlib.h>
#include <string.h>

/* ---- as JSON ---- */

struct body {
    const char *mode;
    json_t *allow, *deny, *proxy;
};

#define AT(field)      offsetof(struct body, field)
#define JOIN_AT(field) offsetof(struct network_join, field)
static const char *const modes[] = { "off", "public", "list", NULL };

/* clang-format off */
static const struct form_field rules_fields[] = {
    { "mode", FORM_TEXT, .at = AT(mode), .help = "default: list if something is allowed, else public", .choices = modes },
    { "allow", FORM_ARRAY, .at = AT(allow), .help = "hosts and addresses that it may reach", .schema = "{\"maxItems\": 128}" },
    { "deny", FORM_ARRAY, .at = AT(deny), .help = "hosts and addresses that it may not reach", .schema = "{\"maxItems\": 128}" },
    { "proxy", FORM_OBJECT, .at = AT(proxy), .help = "what connections go through; answers have no username and no password",
      .items = &network_proxy_form },
};
const struct form network_form = FORM_OF(rules_fields, .help = "docs/network.md");

static const struct form_field join_fields[] = {
    { "network", FORM_TEXT, .at = JOIN_AT(network), .help = "its name", .needed = true, .schema = NETWORK_LABEL_PATTERN },
    { "alias", FORM_TEXT, .at = JOIN_AT(alias), .help = "what the others call it; default: the sandbox's name, or else its id",
      .schema = NETWORK_LABEL_PATTERN },
    { "ports", FORM_ARRAY, .at = JOIN_AT(ports), .help = "that the others may reach; default: none",
      .schema = "{\"maxItems\": 32, \"items\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 65535}}" },
};
const struct form network_join_form = FORM_OF(join_fields);
const struct form network_member_form = { .rows = join_fields + 1, .count = ARRAY_LEN(join_fields) - 1 };

static const struct form_field create_fields[] = {
    { "secrets", FORM_ARRAY, .help = "names of secrets that it gets placeholders for; only at the create. docs/secrets.md",
      .schema = "{\"maxItems\": 32}" },
    { "join", FORM_ARRAY,
      .help = "at a create only: private networks that it is in from the start; with nothing beside it the mode is off",
      .items = &network_join_form, .schema = "{\"maxItems\": 8}" },
};
const struct form network_create_form = FORM_OF(create_fields, .beside = &network_form);
/* clang-format on */

int network_may_name(struct caller *caller, const struct reach_rule *rule, struct err *err)
{
    return may_name_rule(rule, app_config(caller->app)->network_ranges, "network_ranges", err);
}

/* A deny takes away, whatever it names. */
int network_add(struct caller *caller, struct reach *rules, bool deny, const char *text,
                struct err *err)
{
    if (reach_add(rules, deny, text, err) < 0)
        return -1;
    return deny ? 0 : network_may_name(caller, &rules->allow[rules->allow_count - 1], err);
}

static int add_rules(struct caller *caller, const char *field, json_t *list, bool deny,
                     bool trusted, struct reach *rules, struct err *err)
{
    char name[64];
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        (void) snprintf(name, sizeof name, "%s.%s[%zu]", field, deny ? "deny" : "allow", i);
        if (!json_is_string(item))
            return form_bad(caller, err, name, "must be a string");
        if (trusted ? reach_add(rules, deny, json_string_value(item), err) < 0
                    : network_add(caller, rules, deny, json_string_value(item), err) < 0) {
            (void) err_wrap(err, "%s", name);
            return caller_blame(caller, name, NULL, NULL);
        }
    }
    return 0;
}

static int read_rules(struct caller *caller, const char *field, json_t *object, bool trusted,
                      struct reach *ret, struct err *err)
{
    struct body body = { .mode = NULL };
    char name[64];

    (void) snprintf(name, sizeof name, "%s.", field);
    if (form_read_within(caller, name, object, &network_form, &body, err) < 0)
        return -1;
    *ret = (struct reach){ .mode = json_array_size(body.allow) > 0 ? REACH_LIST : REACH_PUBLIC };
    if (body.mode && reach_mode_parse(body.mode, &ret->mode, err) < 0) {
        (void) snprintf(name, sizeof name, "%s.mode", field);
        (void) err_wrap(err, "%s", name);
        return caller_blame(caller, name, NULL, NULL);
    }
    (void) snprintf(name, sizeof name, "%s.proxy", field);
    return add_rules(caller, field, body.allow, false, trusted, ret, err) < 0 ||
                   add_rules(caller, field, body.deny, true, trusted, ret, err) < 0 ||
                   (trusted ? network_proxy_read_trusted : network_proxy_read)(
                       caller, name, body.proxy, UPSTREAM_NONE, &ret->upstream, err) < 0
               ? -1
               : 0;
}

int network_read(struct caller *caller, const char *field, json_t *object, struct reach *ret,
                 struct err *err)
{
    return read_rules(caller, field, object, false, ret, err);
}

int network_read_trusted(struct caller *caller, const char *field, json_t *object,
                         struct reach *ret, struct err *err)
{
    return read_rules(caller, field, object, true, ret, err);
}

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

json_t *network_json(const struct reach *rules)
{
    return json_pack("{s:s, s:o, s:o, s:o*}", "mode", reach_mode_name(rules->mode), "allow",
                     list_json(rules->allow, rules->allow_count), "deny",
                     list_json(rules->deny, rules->deny_count), "proxy",
                     network_proxy_json(&rules->upstream));
}

/* ---- as they are kept ---- */

#define KEPT_ALLOW_WINS "allow_wins"

int network_text(struct store *store, const struct reach *rules, char **ret, struct err *err)
{
    json_t *proxy, *json;
    char *text;

    if (network_proxy_keep(store, &rules->upstream, &proxy, err) < 0)
        return -1;
    json = network_json(rules);
    if (rules->allow_wins)
        (void) json_object_set_new(json, KEPT_ALLOW_WINS, json_true());
    if (proxy)
        (void) json_object_set_new(json, "proxy", proxy);
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    *ret = text;
    return 0;
}

/* What we wrote ourselves; what cannot be read lets nothing out. */
int network_from_text(struct store *store, const char *text, struct reach *ret, struct err *err)
{
    json_t *json = json_loads(text, 0, NULL), *list[2], *item;
    const char *mode = json_string_value(json_object_get(json, "mode"));
    int r = -1;
    size_t i;

    *ret = (struct reach){ .mode = REACH_OFF };
    err->kind = ERR_INTERNAL;
    list[0] = json_object_get(json, "allow");
    list[1] = json_object_get(json, "deny");
    if (!mode || reach_mode_parse(mode, &ret->mode, err) < 0 ||
        network_proxy_kept(store, json_object_get(json, "proxy"), &ret->upstream, err) < 0)
        goto bad;
    ret->allow_wins = json_is_true(json_object_get(json, KEPT_ALLOW_WINS));
    for (int deny = 0; deny < 2; deny++)
        json_array_foreach(list[deny], i, item)
        {
            const char *rule = json_string_value(item);

            if (!rule || reach_add(ret, deny, rule, err) < 0)
                goto bad;
        }
    r = 0;
bad:
    json_decref(json);
    if (r == 0)
        return 0;
    ret->mode = REACH_OFF;
    return err->kind == ERR_UNAVAILABLE
               ? -1
               : err_set(err, ERR_INTERNAL, "the network rules that were kept cannot be read");
}
