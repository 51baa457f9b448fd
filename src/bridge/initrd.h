/* initrd.h - the first file system of a virtual machine, in memory: the agent as /init, and modules of the kernel (wire/boot.h).
 *
 * The same for all machines of a kernel and an agent: what one machine is told comes over its trunk (initrd_tell).
 *
 * Callers: vm.c, main.c. */
#ifndef COVE_BRIDGE_INITRD_H
#define COVE_BRIDGE_INITRD_H

#include "bridge/guest.h"

#define INITRD_PARTS "/machine" /* what tools/vm made */
#define INITRD_FILE  "/run/initrd"

/* The kernel that the machine starts, and the directory of its modules: one that was built where there is one, or Debian's. The answer stays
 * the same: a kernel does not load modules of another. */
const char *initrd_kernel(void);
const char *initrd_modules(void);
uint64_t initrd_kernel_memory(void); /* what the kernel takes for itself */

/* all: /init loads every module before it waits to be told. */
int initrd_make(const struct guest_start *start, bool all, struct err *err);

/* What /init waits for, to our end of the trunk. */
int initrd_tell(const struct guest_start *start, int trunk, struct err *err);

#endif
