/* unmount.h - the file systems of a killed sandbox are taken apart by a process of their own.
 *
 * The kernel does that in the last process that leaves their mount namespace. A sandbox can make it long: names that it asked
 * for and that were not there (7 s for 800 MiB of them), data that is not on the disk yet. So another process holds the namespace
 * until the sandbox is dead, and leaves it last.
 *
 * Callers: jail.c.
 * Never:   waits. */
#ifndef COVE_DRIVER_JAIL_UNMOUNT_H
#define COVE_DRIVER_JAIL_UNMOUNT_H

#include "driver/host.h"

/* Of one whose disk goes with it, before its processes get the signal. Does nothing for one that is dead already. */
void unmount_apart(struct keeper *keeper, const struct sandbox *sandbox);

#endif
