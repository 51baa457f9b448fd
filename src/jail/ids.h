/* ids.h - the host user ids of this instance's sandboxes.
 *
 * A sandbox has 65536 host ids of its own, never 0, never shared. Slot s of block b begins at
 * 2^20 + (b * IDS_SLOTS + s) * 65536. Several instances can run on one host, so each claims a
 * block: a file in a directory of the whole host, which names the instance and is locked while its
 * keeper lives. A block whose keeper is dead stays its instance's as long as that has cgroups. */
#ifndef COVE_JAIL_IDS_H
#define COVE_JAIL_IDS_H

#include "base/err.h"

#include <stdint.h>

#define IDS_PER_SANDBOX 65536u
#define IDS_FIRST       (1u << 20)
#define IDS_SLOTS       2048u
#define IDS_BLOCKS      30u

/* dirfd: the host-wide directory; cgroup_fd: where the instances' cgroups are, to see who lives.
 * *ret_lock_fd must stay open as long as the ids are used. */
int ids_claim(int dirfd, int cgroup_fd, const char *instance, uint32_t *ret_block, int *ret_lock_fd,
              struct err *err);

static inline uint32_t ids_base(uint32_t block, uint32_t slot)
{
    return IDS_FIRST + (block * IDS_SLOTS + slot) * IDS_PER_SANDBOX;
}

#endif
