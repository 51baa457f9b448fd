/* disk.h - the file system that holds what one sandbox writes: bounded in bytes and in inodes.
 *
 * Two kinds, chosen by size (measured: docs/architecture.md). DISK_MEMORY is a sized tmpfs: made in
 * 50 us, counts as the sandbox's memory, so it is taken when the disk is at most half of it.
 * DISK_IMAGE is ext4 without journal on a loop device, backed by a sparse file that never has a name:
 * made in 3 ms, so a maker process keeps a few ready and does all the waiting. Neither can
 * leak: both are detached mounts, which the kernel takes apart with their last holder.
 *
 * Either way the root holds: upper/ and work/ for the overlay, shm/ for /dev/shm.
 *
 * Owns:    the maker process, the pool, and blank images in <state>/disks.
 * Callers: keeper/sandbox.c. */
#ifndef COVE_KEEPER_DISK_H
#define COVE_KEEPER_DISK_H

#include "base/err.h"
#include "wire/keeper.h"
#include "wire/limits.h"

#include <stddef.h>
#include <sys/types.h>

#define DISK_POOL 4

struct disks {
    int sock; /* to the maker; readable: disks_receive */
    pid_t maker;
    uint64_t maker_pause_ms; /* no other before then */
    int host_mnt_fd; /* the host's mount namespace: the maker lives there, where mkfs is */
    int dir_fd;      /* <state>/disks */
    size_t pool_count, pool_asked;
    uint64_t pool_pause_ms; /* no orders for the pool before: the last one failed */
    int pool[DISK_POOL]; /* ready images of the preset size */
};

enum keeper_disk disk_kind(const struct limits *limits);

/* A detached tmpfs whose directories belong to uid_base. */
int disk_make_memory(const struct limits *limits, uint32_t uid_base, int *ret_mount_fd,
                     struct err *err);

int disks_start(struct disks *disks, int state_fd, struct err *err);
void disks_stop(struct disks *disks);

/* A ready image for these limits (*ret_mount_fd, 1), or it is on order and will come by
 * disks_receive with this tag (0). Tag 0 is the pool's own. */
int disks_take(struct disks *disks, const struct limits *limits, uint32_t tag, int *ret_mount_fd,
               struct err *err);

/* One answer of the maker: 1 an image for *ret_tag (mount fd, or -1 and why), 0 nothing for a caller
 * (the pool took it), -1 the maker is gone and its orders with it: sock is -1 until disks_restart. */
int disks_receive(struct disks *disks, uint32_t *ret_tag, int *ret_mount_fd, struct err *ret_why,
                  struct err *err);

/* After the maker is gone; not more often than once per pause. */
int disks_restart(struct disks *disks, struct err *err);

/* Orders what the pool lacks, unless an order just failed. */
void disks_refill(struct disks *disks);

#endif
