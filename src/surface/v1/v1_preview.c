/* /v1/sandboxes/:id/preview and …/ports/:port/link: who may look at its ports, and links for those who may. */
#include "base/own.h"
#include "server/guard/keys.h"
#include "server/preview/preview.h"
#include "server/serve/port_host.h"
#include "surface/v1/v1.h"

#include <stdlib.h>

static int reply_rules(struct exchange *x, const struct preview_rules *rules, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    char token[TOKEN_MAX];
    json_t *json;

    if (ops_preview_token(&ops, exchange_param(x, "id"), token, sizeof token, err) < 0)
        return -1;
    json = preview_rules_json(rules);
    (void) json_object_set_new(json, "token", json_string(token));
    return exchange_reply_json(x, 200, json, err);
}

int v1_preview_get(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct preview_rules rules;

    if (ops_preview_get(&ops, exchange_param(x, "id"), &rules, err) < 0)
        return -1;
    return reply_rules(x, &rules, err);
}

int v1_preview_put(struct exchange *x, struct err *err)
{
    struct preview_rules rules = { .is_public = false };
    struct ops ops = ops_of(exchange_caller(x));
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = preview_rules_read(exchange_caller(x), "", json, &rules, err);
    json_decref(json);
    if (r < 0 || ops_preview_set(&ops, exchange_param(x, "id"), &rules, err) < 0)
        return -1;
    return reply_rules(x, &rules, err);
}

int v1_preview_roll(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_preview_roll(&ops, exchange_param(x, "id"), err) < 0)
        return -1;
    return v1_preview_get(x, err);
}

static int link_for(struct exchange *x, uint64_t seconds, struct err *err)
{
    const char *sandbox = exchange_param(x, "id");
    struct ops ops = ops_of(exchange_caller(x));
    char token[STORE_LINK_MAX];
    auto_free char *url = NULL;
    uint64_t expires;
    uint16_t port;

    if (!port_parse(slice_of(exchange_param(x, "port")), &port))
        return form_bad(exchange_caller(x), err, "port", "a port is a number from 1 to 65535");
    if (ops_preview_link(&ops, sandbox, port, seconds, token, sizeof token, &expires, err) < 0 ||
        preview_url(x, sandbox, port, token, &url, err) < 0)
        return -1;
    return exchange_reply_json(x, 200,
                               json_pack("{s:s, s:s, s:i, s:o}", "url", url, "token", token, "port",
                                         (int) port, "expires_at", form_time(expires * 1000)),
                               err);
}

static const struct form_field link_fields[] = {
    { "expires_seconds", FORM_COUNT, 0, 1, OPS_LINK_SECONDS_MOST, "how long the link can be used",
      .fallback = "3600" },
};
const struct form v1_link_form = FORM_OF(link_fields);

int v1_port_link(struct exchange *x, struct err *err)
{
    uint64_t seconds = 0;

    return v1_numbers(x, &v1_link_form, &seconds, err) < 0 ? -1 : link_for(x, seconds, err);
}
