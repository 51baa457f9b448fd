#include "server/ops/ops_server.h"

#include "base/io.h"
#include "client/sandbox.h"
#include "server/gateway/gateway.h"
#include "server/net/network.h"
#include "store/store.h"

void ops_server_health(struct app *app, struct ops_health *ret)
{
    struct gateway_state state = { .up = false };
    struct keeper_hello hello = { 0 };
    char why[200];

    *ret = (struct ops_health){ .keeper = app_keeper_up(app, &hello),
                                .store = !app->store || !store_trouble(app->store, why, sizeof why),
                                .has_gateway = app->network,
                                .uptime_ms = io_now_ms() - app->started_ms };
    ret->disk_full = ret->keeper && hello.disk_full;
    if (app->network)
        gateway_state(network_gateway(app), &state);
    ret->gateway = state.up;
}
