/* qmp.h - QEMU's own protocol, as far as a machine is saved, loaded and let run with it: a few fixed commands, one after the other.
 *
 * QEMU counts as hostile, as a guest may have broken out into it: its lines have a bounded length, and wire/qmp.h says what is looked for.
 *
 * Callers: main.c. */
#ifndef COVE_BRIDGE_QMP_H
#define COVE_BRIDGE_QMP_H

#include "bridge/orders.h"

/* Takes the descriptor. Greets QEMU, and calls `done`. */
int qmp_open(struct hub *hub, int fd, orders_done *done, struct err *err);

extern const struct orders_way qmp_orders;

#endif
