/* gvisor.h - the driver `gvisor`: a jail in which runsc makes a guest, whose kernel is a process of that jail.
 *
 * PID 1 of the jail is cove-bridge, which starts runsc and is the sandbox's process to the keeper: it has the agent's socket, and its
 * death is the sandbox's. Cgroups, ids, disks, freezing, the gateway and adoption are as they are for a jail.
 *
 * It is saved and loaded by runsc's own checkpoint (driver/guest), with disks that are layers, as those of a jail. It cannot move memory
 * to swap. */
#ifndef COVE_DRIVER_GVISOR_GVISOR_H
#define COVE_DRIVER_GVISOR_GVISOR_H

#include "driver/driver.h"

extern const struct driver gvisor_driver;

#endif
