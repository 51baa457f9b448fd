/* hear.h - what a child says between its clone and the agent's first word.
 *
 * Callers: launch.c; jail.c when the child dies. */
#ifndef COVE_DRIVER_JAIL_HEAR_H
#define COVE_DRIVER_JAIL_HEAR_H

#include "driver/host.h"

/* The child's word on the control socket: its failure, or the end of the socket at exec. */
void hear_on_control(struct keeper *keeper, struct watch *watch);

/* A failure (its length is that of *ret), a word about the filter, which is taken (1), or the end (0); -1 with EAGAIN:
 * nothing yet. */
ssize_t hear_child(struct sandbox *sandbox, int control, struct err *ret);
/* Once the agent listens: what kind of filter there is is known, and the listener is ours, too; or it is an error. */
int hear_take_listener(struct keeper *keeper, struct sandbox *sandbox, struct err *err);

#endif
