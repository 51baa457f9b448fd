#include "surface/v1/v1.h"

#include "base/own.h"
#include "server/net/network_events.h"
#include "server/net/network_rules.h"

#include <stdlib.h>

#define EVENTS_MOST 200

static int reply_rules(struct exchange *x, const struct reach *rules, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *json = network_json(rules),
           *secrets = ops_network_secrets(&ops, exchange_param(x, "id"));

    if (secrets)
        (void) json_object_set_new(json, "secrets", secrets);
    return exchange_reply_json(x, 200, json, err);
}

int v1_network_get(struct exchange *x, struct err *err)
{
    auto_free struct reach *rules = malloc(sizeof *rules);
    struct ops ops = ops_of(exchange_caller(x));

    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (ops_network_get(&ops, exchange_param(x, "id"), rules, err) < 0)
        return -1;
    return reply_rules(x, rules, err);
}

int v1_network_put(struct exchange *x, struct err *err)
{
    auto_free struct reach *rules = malloc(sizeof *rules);
    struct ops ops = ops_of(exchange_caller(x));
    json_t *json;
    int r;

    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = network_read(exchange_caller(x), "network", json, rules, err);
    json_decref(json);
    if (r < 0 || ops_network_set(&ops, exchange_param(x, "id"), rules, err) < 0)
        return -1;
    return reply_rules(x, rules, err);
}

static const struct form_field allow_fields[] = {
    { "rule", FORM_TEXT, .help = "a host or an address that it may reach", .needed = true,
      .schema = "{\"examples\": [\"api.example.com\", \"10.0.0.5:5432\"]}" },
};
const struct form v1_allow_form = FORM_OF(allow_fields);

/* One rule more: what an agent's owner says after it read why something was refused. */
static int allow(struct exchange *x, json_t *json, struct reach *rules, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct reach_rule checked;
    const char *rule = NULL;

    if (form_read(exchange_caller(x), json, &v1_allow_form, &rule, err) < 0)
        return -1;
    if (reach_rule_parse(rule, &checked, err) < 0 ||
        network_may_name(exchange_caller(x), &checked, err) < 0)
        return exchange_blame(x, "rule", NULL, NULL);
    return ops_network_allow(&ops, exchange_param(x, "id"), rule, rules, err);
}

int v1_network_allow(struct exchange *x, struct err *err)
{
    auto_free struct reach *rules = malloc(sizeof *rules);
    json_t *json;
    int r;

    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = allow(x, json, rules, err);
    json_decref(json);
    return r < 0 ? -1 : reply_rules(x, rules, err);
}

int v1_network_events(struct exchange *x, struct err *err)
{
    auto_free struct network_event *events = calloc(EVENTS_MOST, sizeof *events);
    struct ops ops = ops_of(exchange_caller(x));
    json_t *list;
    uint64_t after = 0;
    size_t count;

    if (!events)
        return err_set(err, ERR_NO_MEMORY, "no memory for events");
    if (query_count(x, "after", 0, INT64_MAX, &after, err) < 0 ||
        ops_network_events(&ops, exchange_param(x, "id"), after, events, EVENTS_MOST, &count, err) <
            0)
        return -1;
    list = json_array();
    for (size_t i = 0; i < count; i++)
        (void) json_array_append_new(list, network_event_json(&events[i]));
    return exchange_reply_json(x, 200,
                               json_pack("{s:o, s:o}", "events", list, "next",
                                         count == EVENTS_MOST
                                             ? json_integer((json_int_t) events[count - 1].seq)
                                             : json_null()),
                               err);
}

/* ---- the default of the tenant ---- */

static int reply_default(struct exchange *x, const struct reach *rules, struct err *err)
{
    return exchange_reply_json(
        x, 200, json_pack("{s:o}", "network", rules ? network_json(rules) : json_null()), err);
}

int v1_network_default_get(struct exchange *x, struct err *err)
{
    auto_free struct reach *rules = malloc(sizeof *rules);
    struct ops ops = ops_of(exchange_caller(x));
    bool found;

    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (ops_network_default_get(&ops, rules, &found, err) < 0)
        return -1;
    return reply_default(x, found ? rules : NULL, err);
}

int v1_network_default_put(struct exchange *x, struct err *err)
{
    auto_free struct reach *rules = malloc(sizeof *rules);
    struct ops ops = ops_of(exchange_caller(x));
    json_t *json;
    int r;

    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = network_read(exchange_caller(x), "network", json, rules, err);
    json_decref(json);
    if (r < 0 || ops_network_default_set(&ops, rules, err) < 0)
        return -1;
    return reply_default(x, rules, err);
}

int v1_network_default_delete(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    return ops_network_default_set(&ops, NULL, err) < 0 ? -1 : reply_default(x, NULL, err);
}
