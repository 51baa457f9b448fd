/* ids.h - the host user ids of this instance's sandboxes.
 *
 * A sandbox has 65536 host ids of its own, never 0, never shared. Slot s of block b begins at
 * 2^20 + (b * IDS_SLOTS + s) * 65536. Several instances can run on one host, so each claims
 * blocks: a file in a directory of the whole host, which names the instance and is locked while its
 * keeper lives. A block whose keeper is dead stays its instance's as long as that has cgroups.
 *
 * An instance begins with one block and claims another when all slots are in use, up to IDS_BLOCKS_EACH. Which of the instance's
 * blocks a file stands for is the file's second line ("" for the first block): versions that had one block each see a block of
 * another instance. */
#ifndef COVE_JAIL_IDS_H
#define COVE_JAIL_IDS_H

#include "base/err.h"

#include <stdint.h>

#define IDS_PER_SANDBOX 65536u
#define IDS_FIRST       (1u << 20)
#define IDS_SLOTS       2048u /* of a block */
#define IDS_BLOCKS      30u
#define IDS_BLOCKS_EACH 4u
#define IDS_SLOTS_MAX   (IDS_BLOCKS_EACH * IDS_SLOTS)

struct ids {
    int dir_fd;    /* the host-wide directory */
    int cgroup_fd; /* borrowed: where the instances' cgroups are, to see who lives */
    char instance[160];
    uint32_t count; /* of blocks */
    uint32_t block[IDS_BLOCKS_EACH];
    int lock_fd[IDS_BLOCKS_EACH]; /* open as long as the ids are used */
};

/* The first block, and those behind it that are the instance's already. Takes dir_fd, also when it fails. */
int ids_open(struct ids *ids, int dir_fd, int cgroup_fd, const char *instance, struct err *err);
/* One more block. */
int ids_grow(struct ids *ids, struct err *err);
void ids_close(struct ids *ids);

static inline uint32_t ids_first_of(uint32_t block, uint32_t slot)
{
    return IDS_FIRST + (block * IDS_SLOTS + slot) * IDS_PER_SANDBOX;
}

/* slot: below count * IDS_SLOTS. */
static inline uint32_t ids_base(const struct ids *ids, uint32_t slot)
{
    return ids_first_of(ids->block[slot / IDS_SLOTS], slot % IDS_SLOTS);
}

#endif
