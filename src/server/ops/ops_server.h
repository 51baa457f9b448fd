/* ops_server.h - how the server itself is: what it stands on, for health checks.
 *
 * Callers: the start page and GET /health, also without a key. */
#ifndef COVE_SERVER_OPS_OPS_SERVER_H
#define COVE_SERVER_OPS_OPS_SERVER_H

#include "server/app/app.h"

struct ops_health {
    bool keeper;               /* it answers */
    bool disk_full;            /* the keeper makes nothing new */
    bool store;                /* it can be written to */
    bool has_gateway, gateway; /* sandboxes can have networks; the gateway is connected */
    uint64_t uptime_ms;
};
void ops_server_health(struct app *app, struct ops_health *ret);

#endif
