/* parts.h - what a virtual machine is made of on this host (wire/vm.h): whether all of it is there, and its QEMU is new enough.
 *
 * QEMU is asked once, by running it without rights, and again only when the file changes.
 *
 * Callers: vm.c, save.c, load.c; host.c for the keeper's hello. */
#ifndef COVE_DRIVER_VM_PARTS_H
#define COVE_DRIVER_VM_PARTS_H

#include "base/err.h"

#include <stddef.h>
#include <sys/stat.h>

/* ERR_UNSUPPORTED, with what is missing; `isolation` is who needs it. */
int parts_check(const char *isolation, struct err *err);

/* "10.0.13", as tools/vm wrote it down; "": it is not known, or its file is not `file` (NULL: any). What one QEMU saved another may not
 * understand. */
void parts_qemu(const struct stat *file, char *out, size_t size);

/* "QEMU 10", or why there is none in a few words; for a line of text. */
const char *parts_text(void);

#endif
