/* surfaces.h - the Model Context Protocol, for coved/surfaces.c. */
#ifndef COVE_SURFACE_MCP_SURFACES_H
#define COVE_SURFACE_MCP_SURFACES_H

#include "server/serve/surface.h"

extern const struct surface mcp_surface;

#endif
