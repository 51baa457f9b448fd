/* Every dialect that the server speaks. Those that claim are asked in this order; then paths decide. */
#include "server/serve/surface.h"

#include "base/own.h"
#include "surface/e2b/surfaces.h"
#include "surface/mcp/surfaces.h"

const struct surface *const surfaces[] = {
    &e2b_envd,    /* port 49983 of a sandbox */
    &e2b_code,    /* port 49999: the code interpreter */
    &e2b_ports,   /* any other port: behind those that are served here */
    &e2b_control, /* /sandboxes, /v2/sandboxes, /templates … */
    &mcp_surface, /* /mcp */
    &native_surface,
};
const size_t surface_count = ARRAY_LEN(surfaces);
