/* cpio.h - the archive that a kernel unpacks as its first file system: "newc", as Linux' early-userspace documentation has it.
 *
 * Callers: vm.c. */
#ifndef COVE_BRIDGE_CPIO_H
#define COVE_BRIDGE_CPIO_H

#include "base/err.h"

#include <stddef.h>

/* Each adds one name to the archive that is written to `fd`, in order: a directory before what is in it. */
int cpio_directory(int fd, const char *name, struct err *err);
int cpio_data(int fd, const char *name, const void *data, size_t len, struct err *err);
/* The content of another file. */
int cpio_file(int fd, const char *name, unsigned mode, int from, struct err *err);
int cpio_end(int fd, struct err *err);

#endif
