/* launch.h - a jail's processes: clone, root, agent.
 *
 * Callers: jail.c and drivers of guests, when all disks are there; stage.c. */
#ifndef COVE_DRIVER_JAIL_LAUNCH_H
#define COVE_DRIVER_JAIL_LAUNCH_H

#include "driver/host.h"
#include "jail/machine.h"

/* Ends in create_running() or sandbox_fail(). */
void launch_start(struct keeper *keeper, struct sandbox *sandbox);
/* The same of a jail around a guest: the bridge is its PID 1. */
void launch_machine(struct keeper *keeper, struct sandbox *sandbox, const struct machine *machine);

/* The id maps of a process in a user namespace of its own. */
int launch_write_maps(int pid, uint32_t base, struct err *err);

#endif
