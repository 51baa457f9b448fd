/* memory.h - memory of machines that have just started, kept for others: a create then has no kernel to start.
 *
 * One for each isolation, size of memory, number of processors and number of disks that a template is, of these parts (parts.h) and this agent. The first machine that wants one
 * makes it (bridge/memory.h), in its own jail and before it is told anything; machines that start meanwhile start as without. It is two
 * files in memory, which the bridge seals: from then on no process can write to them, this keeper included. Each machine maps them, and
 * what it writes is its own.
 *
 * A machine with a volume, or on a template that is a tree, shares its memory with virtiofsd, and cannot have one.
 *
 * Owns:    the descriptors; they end with the keeper.
 * Callers: vm.c, load.c. */
#ifndef COVE_DRIVER_VM_MEMORY_H
#define COVE_DRIVER_VM_MEMORY_H

#include "driver/host.h"
#include "jail/machine.h"

/* Sets how the machine begins, where it can have a memory; the descriptors stay ours. A failure leaves it as it is. */
void memory_find(struct keeper *keeper, const struct sandbox *sandbox, struct machine *machine);

#endif
