/* qmp.h - QEMU's own protocol, as far as a machine is saved, loaded and let run with it: a few fixed commands, one after the other.
 *
 * QEMU counts as hostile, as a guest may have broken out into it: its lines have a bounded length, and wire/qmp.h says what is looked for.
 *
 * Callers: main.c, orders.c. */
#ifndef COVE_BRIDGE_QMP_H
#define COVE_BRIDGE_QMP_H

#include "mux/hub.h"

/* NULL: it was done. */
typedef void qmp_done(struct hub *hub, const struct err *err);

/* Takes the descriptor. Greets QEMU, and calls `done`. */
int qmp_open(struct hub *hub, int fd, qmp_done *done, struct err *err);

/* Each begins; only one at a time. The descriptors are taken. */
void qmp_save(struct hub *hub, int pipe_fd, qmp_done *done);
void qmp_load(struct hub *hub, int pipe_fd, qmp_done *done);
void qmp_go(struct hub *hub, qmp_done *done);

#endif
