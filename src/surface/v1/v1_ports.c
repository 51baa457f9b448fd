/* /v1/sandboxes/:id/ports/:port/…: a server inside, by path. /v1/sandboxes/:id/tunnel/:port: any TCP port, as bytes. */
#include "base/own.h"
#include "server/preview/preview.h"
#include "server/preview/relay.h"
#include "server/preview/tunnel.h"
#include "server/serve/port_host.h"
#include "surface/v1/v1.h"

/* These answers come from a sandbox and share their origin with the API: in a browser they get an origin of their own,
 * so that a page among them cannot ask the API as the person who looks at it. Previews with their own host names
 * (docs/previews.md) have no need of this. */
#define OWN_ORIGIN "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads"

/* The port of the path, of a sandbox that is the caller's and, where its rules say so, is woken. */
static int find_port(struct exchange *x, struct preview_rules *rules, uint16_t *ret_port,
                     struct err *err)
{
    const char *id = exchange_param(x, "id");
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox sandbox;

    if (!port_parse(slice_of(exchange_param(x, "port")), ret_port))
        return form_bad(exchange_caller(x), err, "port", "a port is a number from 1 to 65535");
    if (ops_sandbox_check(&ops, id, err) < 0 ||
        preview_rules_load(exchange_app(x), id, rules, err) < 0)
        return -1;
    if (!rules->auto_resume)
        return 0;
    if (ops_sandbox_get(&ops, id, &sandbox, err) < 0)
        return -1;
    return preview_sleeps(&sandbox) ? preview_wake(&ops, &sandbox, 0, err) : 0;
}

int v1_port_tunnel(struct exchange *x, struct err *err)
{
    struct preview_rules rules = { .is_public = false };
    uint16_t port;

    if (exchange_upgrade_check(x, err) < 0 || find_port(x, &rules, &port, err) < 0)
        return -1;
    return tunnel_exchange(x, exchange_param(x, "id"), port, err);
}

int v1_port_relay(struct exchange *x, struct err *err)
{
    static const char *const drop[] = { "X-API-Key" };
    struct relay_ask ask = { .sandbox = exchange_param(x, "id"),
                             .path = slice_of(exchange_param(x, "*")),
                             .drop = drop,
                             .drop_count = ARRAY_LEN(drop) };
    struct preview_rules rules = { .is_public = false };
    char mask[PREVIEW_MASK_MAX];

    if (find_port(x, &rules, &ask.port, err) < 0)
        return -1;
    preview_mask_print(rules.mask_host, ask.port, mask);
    ask.host = mask[0] ? mask : NULL;
    if (exchange_add_header(x, "Content-Security-Policy", OWN_ORIGIN, err) < 0)
        return -1;
    return relay_exchange(x, &ask, err);
}
