/* oom.h - whether a sandbox ended for want of memory.
 *
 * The kernel counts what it killed for want of memory in a cgroup, and does not say which process. A kill that the first process
 * outlived is no reason for its later end, so such kills are noted whenever the count is read.
 *
 * Not in guests: the first process of their jail is the bridge, which ends some time after the process that has the guest's memory.
 *
 * Callers: jail.c. */
#ifndef COVE_DRIVER_JAIL_OOM_H
#define COVE_DRIVER_JAIL_OOM_H

#include "keeper/keeper.h"

/* The kernel's count, just read. */
void oom_note(struct sandbox *sandbox, uint64_t kills);
/* The same, after reading it. */
void oom_look(struct keeper *keeper, struct sandbox *sandbox);

/* Of one whose first process is dead. */
bool oom_ended(struct keeper *keeper, const struct sandbox *sandbox);

#endif
