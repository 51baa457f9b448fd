/* control.h - the handlers of the control plane, for the table in control.c. */
#ifndef COVE_E2B_CONTROL_H
#define COVE_E2B_CONTROL_H

#include "api/route.h"
#include "e2b/e2b.h"

route_handler control_kill;

#endif
