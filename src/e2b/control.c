/* The control plane: what the SDKs ask of E2B's API. */
#include "e2b/control.h"

#include "base/own.h"
#include "e2b/surfaces.h"

/* clang-format off */
static const struct route control_routes[] = {
    /* method        path                         who         body       handler */
    { METHOD_POST,   "/v2/sandboxes",             SCOPE_RUN,  256 * KiB, control_create_v2 },
    { METHOD_POST,   "/sandboxes",                SCOPE_RUN,  256 * KiB, control_create_v1 },
    { METHOD_GET,    "/v2/sandboxes",             SCOPE_READ, 0,         control_list },
    { METHOD_GET,    "/sandboxes/:id",            SCOPE_READ, 0,         control_get },
    { METHOD_DELETE, "/sandboxes/:id",            SCOPE_RUN,  0,         control_kill },
    { METHOD_POST,   "/v2/sandboxes/:id/connect", SCOPE_RUN,  4 * KiB,   control_connect_v2 },
    { METHOD_POST,   "/sandboxes/:id/connect",    SCOPE_RUN,  4 * KiB,   control_connect_v1 },
    { METHOD_POST,   "/sandboxes/:id/pause",      SCOPE_RUN,  4 * KiB,   control_pause },
    { METHOD_POST,   "/sandboxes/:id/resume",     SCOPE_RUN,  4 * KiB,   control_resume },
    { METHOD_POST,   "/sandboxes/:id/timeout",    SCOPE_RUN,  4 * KiB,   control_set_timeout },
    { METHOD_POST,   "/sandboxes/:id/refreshes",  SCOPE_RUN,  4 * KiB,   control_refresh },
};
/* clang-format on */

const struct surface e2b_control = { .name = "e2b",
                                     .routes = control_routes,
                                     .route_count = ARRAY_LEN(control_routes),
                                     .refuse = e2b_refuse };
