/* control.h - the control socket of gVisor's kernel (the sentry), as far as a guest is saved and loaded with it: a few fixed calls, one
 * after the other. A call is an object of JSON, with a descriptor where that is said, and so is its answer.
 *
 * The sentry counts as hostile, as a guest may have broken out into it: of an answer the beginning is kept, and wire/runsc.h says what is
 * looked for.
 *
 * Callers: main.c. */
#ifndef COVE_BRIDGE_CONTROL_H
#define COVE_BRIDGE_CONTROL_H

#include "bridge/orders.h"

/* Where runsc has it: --root, and the name of the guest. */
#define CONTROL_DIR   "/run/runsc"
#define CONTROL_GUEST "guest"

/* Sockets for it, of which none is connected: later no more can be made. */
int control_prepare(struct err *err);

extern const struct orders_way control_orders;

#endif
