/* bases.h - read-only disks below the disks of sandboxes: mounted once, shared by all that begin with them.
 *
 * Owns:    keeper.bases: the mounts, and what is on order from the disk maker. Sandboxes hold clones of their own.
 * Callers: disks.c, and main.c with the disk maker's answers. */
#ifndef COVE_DRIVER_BASES_H
#define COVE_DRIVER_BASES_H

#include "driver/host.h"

/* 1 every disk below the sandbox's own is there, 0 on order, -1 error. */
int bases_open(struct keeper *keeper, struct sandbox *sandbox, struct err *err);

/* One arrived (mount_fd, or -1 and why); sandboxes may wait for it. */
void bases_got(struct keeper *keeper, uint64_t number, int mount_fd, const struct err *why);
/* One that no sandbox and no image has any more. */
void bases_drop(struct keeper *keeper, uint64_t number);
/* The maker is gone, and what it was to mount with it. */
void bases_lost(struct keeper *keeper, const struct err *why);

#endif
