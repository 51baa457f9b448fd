/* mounts.h - what a sandbox sees: root, /proc, /dev, /sys. Runs between clone and exec, or before a restored sandbox runs.
 *
 * Callers: child.c; driver/jail/{save,loader,stage}.c, in their workers; home.c, machine.c and mount_parent.c, for the pivot. */
#ifndef COVE_JAIL_MOUNTS_H
#define COVE_JAIL_MOUNTS_H

#include "base/err.h"
#include "jail/template.h"
#include "wire/limits.h"
#include "wire/volume.h"

#include <stddef.h>

/* As the sandbox's root, in its own mount namespace, a copy of mount_parent.h's: mounts root_fd over the root, attaches
 * everything below it and makes it "/". view: the name of a sysview; shm_fd: -1: /dev/shm is the disk's; proc_fd: from
 * mountfd_proc. Takes the descriptors. */
int jail_mounts(const struct template *t, const struct limits *limits, const char *view,
                int root_fd, int disk_fd, int shm_fd, int proc_fd, struct err *err);

/* New root over old, then the old one goes: no name leads back. */
int jail_pivot(int root_fd, struct err *err);

/* What a dump expects of a host, in the caller's own mount namespace. Not for a restore: it takes /dev from there. */
int jail_add_pts(struct err *err);

/* The i-th name below /proc that something is mounted over; NULL: no more. */
const char *jail_masked(size_t i);
/* The same of the files of a sysview. */
const char *jail_shown(size_t i);
/* Both, in a restored sandbox: no part of a dump, but for files of a sysview that a process has open. */
int jail_mask(int pidfd, const char *view, struct err *err);

/* Attaches what a restore takes mounts from, in the caller's own mount namespace: the root at /new, /disk, /shm, and
 * /volumes/0 and so on. */
int jail_stage(int root_mount, int disk_fd, int shm_fd, const int *volume_fd, struct err *err);

#endif
