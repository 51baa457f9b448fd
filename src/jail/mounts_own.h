/* mounts_own.h - what mounts.c and machine.c share: attaching parts of the keeper's own root to a new one. */
#ifndef COVE_JAIL_MOUNTS_OWN_H
#define COVE_JAIL_MOUNTS_OWN_H

#include "base/err.h"

#include <stdint.h>

/* A clone of one of the keeper's own trees, at a directory of the new root that is made where it is missing, never through a link. */
int mounts_attach_clone(const char *from, uint64_t attributes, int root_fd, const char *name,
                        struct err *err);
/* /proc, masked; view: the name of a sysview. The disk is at /disk. */
int mounts_attach_proc(int proc_fd, const char *view, int root_fd, struct err *err);

#endif
