/* isolation.h - what stands between a sandbox and its host, by name and by number.
 *
 * Journals, images and keeper messages carry the number; users write and read the name. Which of them a host
 * has is the keeper's to say (driver/driver.h). */
#ifndef COVE_WIRE_ISOLATION_H
#define COVE_WIRE_ISOLATION_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum isolation {
    ISOLATION_JAIL, /* namespaces, cgroups, seccomp; the host's kernel. Also: what older versions did not write down */
    ISOLATION_GVISOR,      /* a kernel in user space, inside a jail */
    ISOLATION_VM,          /* a virtual machine, inside a jail */
    ISOLATION_VM_EMULATED, /* the same without hardware: for tests, no boundary of its own */
    ISOLATION_COUNT
};

bool isolation_known(uint32_t isolation);

/* What it is worth, for a least level: jail < gvisor < vm, each the number of the isolation itself. Without hardware a virtual machine
 * is worth the jail that it runs in. */
uint32_t isolation_level(uint32_t isolation);

/* "unknown" for a number that has no name. */
const char *isolation_name(uint32_t isolation);

/* ERR_INVALID, with the list of names: there is none of that name. */
int isolation_parse(const char *name, uint32_t *ret, struct err *err);

#endif
