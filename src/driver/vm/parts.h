/* parts.h - what a virtual machine is made of on this host (wire/vm.h): whether all of it is there, and its QEMU is new enough.
 *
 * QEMU is asked once, by running it without rights, and again only when the file changes.
 *
 * Callers: vm.c; host.c for the keeper's hello. */
#ifndef COVE_DRIVER_VM_PARTS_H
#define COVE_DRIVER_VM_PARTS_H

#include "base/err.h"

/* ERR_UNSUPPORTED, with what is missing; `isolation` is who needs it. */
int parts_check(const char *isolation, struct err *err);

/* "QEMU 10", or why there is none in a few words; for a line of text. */
const char *parts_text(void);

#endif
