/* The control plane: what the SDKs ask of E2B's API. */
#include "e2b/control.h"

#include "base/own.h"
#include "e2b/surfaces.h"

/* clang-format off */
static const struct route control_routes[] = {
    /* method        path                         who         body       handler */
    { METHOD_DELETE, "/sandboxes/:id",            SCOPE_RUN,  0,         control_kill },
};
/* clang-format on */

const struct surface e2b_control = { .name = "e2b",
                                     .routes = control_routes,
                                     .route_count = ARRAY_LEN(control_routes),
                                     .refuse = e2b_refuse };
