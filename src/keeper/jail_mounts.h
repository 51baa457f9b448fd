/* jail_mounts.h - what a sandbox sees: root, /proc, /dev, /sys. Runs between clone and exec. */
#ifndef COVE_KEEPER_JAIL_MOUNTS_H
#define COVE_KEEPER_JAIL_MOUNTS_H

#include "base/err.h"
#include "keeper/criu.h"
#include "keeper/template.h"
#include "wire/limits.h"
#include "wire/volume.h"

/* As the sandbox's root, in its own mount namespace: attaches everything below root_fd, makes it "/"
 * and leaves nothing of the old root. view: the name of a sysview; shm_fd: -1: /dev/shm is the disk's. */
int jail_mounts(const struct template *t, const struct limits *limits, const char *view,
                int root_fd, int disk_fd, int shm_fd, struct err *err);

/* The keeper's own root, prepared once: a small read-only tree that holds what sandboxes are made from,
 * so that a new mount namespace copies a handful of mounts and not the host's. */
int jail_prepare(const char *state, struct err *err);

/* What a dump expects of a host, in the caller's own mount namespace. Not for a restore: it takes /dev from there. */
int jail_add_pts(struct err *err);

/* Which of those mounts are not a checkpoint's business: at a dump (view NULL) by where they are, at a restore by
 * where they are to be taken from. */
void jail_externals(struct criu_job *job, const char *view, bool shm_joined,
                    const struct volume_use *volumes);

/* The masks over /proc are no part of a dump: they are left out of it, and put on again in a restored sandbox. */
void jail_skip_masks(struct criu_job *job);
int jail_mask(int pidfd, struct err *err);

/* Attaches what a restore takes mounts from, in the caller's own mount namespace: the root at /new, /disk, /shm, and
 * /volumes/0 and so on. */
int jail_stage(int root_mount, int disk_fd, int shm_fd, const int *volume_fd, struct err *err);

#endif
