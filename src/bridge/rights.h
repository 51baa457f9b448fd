/* rights.h - what the bridge keeps once its guest runs: descriptors, unix connections that come to it, sockets of its own empty network. No
 * capability, no file, no process.
 *
 * Callers: main.c, before the first byte of the guest's is read. */
#ifndef COVE_BRIDGE_RIGHTS_H
#define COVE_BRIDGE_RIGHTS_H

#include "base/err.h"

int rights_drop(struct err *err);

#endif
