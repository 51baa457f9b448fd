#include "api/route.h"

#include "api/app.h"
#include "base/io.h"
#include "base/own.h"
#include "client/sandbox.h"

/* Alive, and whether the keeper is. No key: load balancers ask this. */
static int get_health(struct exchange *x, struct err *err)
{
    struct app *app = exchange_app(x);
    struct keeper_hello hello;
    struct link link;
    bool up = app_link_take(app, &link, err) == 0;

    if (up) {
        up = keeper_hello(&link, &hello, err) == 0;
        app_link_give(app, &link, up);
    }
    return exchange_reply_json(x, up ? 200 : 503,
                               json_pack("{s:s, s:b, s:I}", "status", up ? "healthy" : "unhealthy",
                                         "keeper", up, "uptime_ms",
                                         (json_int_t) (io_now_ms() - app->started_ms)),
                               err);
}

/* clang-format off */
const struct route routes[] = {
    /* method        path        who         body      handler */
    { METHOD_GET,    "/health",  SCOPE_NONE, 0,        get_health },
};
/* clang-format on */
const size_t route_count = ARRAY_LEN(routes);
