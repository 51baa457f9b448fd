/* volumes.h - a sandbox's volumes, at the paths that its tenant chose. Runs between clone and exec. */
#ifndef COVE_JAIL_VOLUMES_H
#define COVE_JAIL_VOLUMES_H

#include "base/err.h"
#include "wire/volume.h"

/* As the sandbox's root, behind jail_mounts and before anything of the tenant's runs. Takes the descriptors. */
int jail_volumes(const struct volume_use uses[VOLUMES_MAX], const int *mount_fds, struct err *err);

/* The same in the jail around a machine, behind machine_mounts: volume i is MACHINE_VOLUMES/i, and its path is an empty place in the
 * sandbox's file system, where the guest mounts it. */
int machine_volumes(const struct volume_use uses[VOLUMES_MAX], const int *mount_fds,
                    struct err *err);

#endif
