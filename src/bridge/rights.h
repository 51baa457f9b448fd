/* rights.h - what the bridge keeps once its guest runs: descriptors, unix connections that come to it, sockets of its own empty network. No
 * capability, no file, no process. And who may ask it for something: a process outside the jail.
 *
 * Callers: main.c, before the first byte of the guest's is read; orders.c. */
#ifndef COVE_BRIDGE_RIGHTS_H
#define COVE_BRIDGE_RIGHTS_H

#include "base/err.h"

#include <stdbool.h>

int rights_drop(struct err *err);

/* Of a connection's other end: it has no pid here, as the keeper has none. */
bool rights_is_outside(int fd);

#endif
