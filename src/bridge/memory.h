/* memory.h - the memory of a machine that has just started, for others: making it, and a machine that has it.
 *
 * The machine of memory_make() starts its kernel, and waits to be told what it is (wire/boot.h). Then it stands still for ever: its memory
 * is the file BOOT_FD_MEMORY, all else of it the file BOOT_FD_STATE, and neither can be changed from then on, by any process. A machine of
 * memory_copy() maps that memory, and what it writes is its own.
 *
 * Nothing of a tenant's has run before the machine is told: not in the one that was saved, not in the copy.
 *
 * Callers: vm.c, while the bridge still has its rights; each waits. */
#ifndef COVE_BRIDGE_MEMORY_H
#define COVE_BRIDGE_MEMORY_H

#include "bridge/guest.h"

int memory_make(const struct guest_start *start, struct err *err);
/* The machine runs, and waits to be told. -1: there is none. */
int memory_copy(const struct guest_start *start, struct err *err);

#endif
