/* /v1/sandboxes/:id/ports/:port/…: a server inside, by path. */
#include "base/own.h"
#include "server/preview/preview.h"
#include "server/preview/relay.h"
#include "server/serve/port_host.h"
#include "surface/v1/v1.h"

/* These answers come from a sandbox and share their origin with the API: in a browser they get an origin of their own,
 * so that a page among them cannot ask the API as the person who looks at it. Previews with their own host names
 * (docs/previews.md) have no need of this. */
#define OWN_ORIGIN "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads"

int v1_port_relay(struct exchange *x, struct err *err)
{
    static const char *const drop[] = { "X-API-Key" };
    struct relay_ask ask = { .sandbox = exchange_param(x, "id"),
                             .path = slice_of(exchange_param(x, "*")),
                             .drop = drop,
                             .drop_count = ARRAY_LEN(drop) };
    struct preview_rules rules = { .is_public = false };
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;
    char mask[PREVIEW_MASK_MAX];

    if (!port_parse(slice_of(exchange_param(x, "port")), &ask.port))
        return form_bad(exchange_caller(x), err, "port", "a port is a number from 1 to 65535");
    if (ops_sandbox_check(&ops, ask.sandbox, err) < 0 ||
        preview_rules_load(exchange_app(x), ask.sandbox, &rules, err) < 0)
        return -1;
    if (rules.auto_resume &&
        (ops_sandbox_get(&ops, ask.sandbox, &sandbox, err) < 0 ||
         (preview_sleeps(&sandbox) && preview_wake(&ops, &sandbox, 0, err) < 0)))
        return -1;
    preview_mask_print(rules.mask_host, ask.port, mask);
    ask.host = mask[0] ? mask : NULL;
    if (exchange_add_header(x, "Content-Security-Policy", OWN_ORIGIN, err) < 0)
        return -1;
    return relay_exchange(x, &ask, err);
}
