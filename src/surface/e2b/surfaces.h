/* surfaces.h - E2B's planes, each a surface: its control plane, and envd, the server it has in every sandbox.
 *
 * Callers: coved/surfaces.c. */
#ifndef COVE_SURFACE_E2B_SURFACES_H
#define COVE_SURFACE_E2B_SURFACES_H

#include "server/serve/surface.h"

extern const struct surface e2b_control;
extern const struct surface e2b_envd;
extern const struct surface e2b_ports;
extern const struct surface e2b_code;

#endif
