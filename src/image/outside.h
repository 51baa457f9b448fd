/* outside.h - what of a sandbox's mounts is not criu's business: made by the keeper before a restore, or after it.
 *
 * Callers: driver/jail/save.c and loader.c, in their workers. */
#ifndef COVE_IMAGE_OUTSIDE_H
#define COVE_IMAGE_OUTSIDE_H

#include "image/criu.h"
#include "wire/volume.h"

/* At a dump (view NULL) they are told by where they are, at a restore by where they are to be taken from. */
void outside_mounts(struct criu_job *job, const char *view, bool shm_joined,
                    const struct volume_use *volumes);

/* The masks over /proc are no part of a dump: they are left out of it, and put on again in a restored sandbox. */
void outside_masks(struct criu_job *job, bool held);
/* Files of a sysview over /proc are masks as well, unless a process has one open (held): criu must then know the mount. Asked
 * while the processes of that cgroup stand still. */
bool outside_held(const struct cgroups *cgroups, const char *name);

#endif
