/* disk.h - the file system that holds what one sandbox writes: bounded in bytes and in inodes.
 *
 * Two kinds, chosen by size (measured: docs/architecture.md). DISK_MEMORY is a sized tmpfs: made in
 * 50 us, counts as the sandbox's memory, so it is taken when the disk is at most half of it and the sandbox
 * is tied to its maker, who will not want to save it. DISK_IMAGE is ext4 without journal on a loop device, backed by
 * a sparse file: made in 3 ms, so a maker process keeps a few ready and does all the waiting. The mounts are
 * detached, and taken apart by the kernel with their last holder; a file goes with the last record that has its number
 * (disks_sweep finds what a crash left).
 *
 * Either way the root holds: upper/ and work/ for the overlay, shm/ for /dev/shm.
 *
 * Owns:    the maker process, the pool, and blank images in <state>/disks.
 * Callers: driver/disks.c. */
#ifndef COVE_DISK_DISK_H
#define COVE_DISK_DISK_H

#include "base/err.h"
#include "disk/disk_maker.h"
#include "wire/keeper.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct disks {
    int sock; /* to the maker; readable: disks_receive */
    pid_t maker;
    uint64_t maker_pause_ms; /* no other before then */
    int host_mnt_fd;         /* the host's mount namespace: the maker lives there, where mkfs is */
    int dir_fd;              /* <state>/disks */
    int volumes_fd;          /* <state>/volumes */
    uint64_t pool_pause_ms;  /* no orders for the pool before: the last one failed */
    struct {
        uint64_t number;
        int mount_fd;  /* -1: on order */
    } pool[DISK_POOL]; /* images of the default size */
};

/* saved: it may be, one day; what is in memory has nothing that could. */
enum keeper_disk disk_kind(const struct limits *limits, bool saved);

/* A detached tmpfs whose directories belong to uid_base. */
int disk_make_memory(const struct limits *limits, uint32_t uid_base, int *ret_mount_fd,
                     struct err *err);

int disks_start(struct disks *disks, int state_fd, struct err *err);
void disks_stop(struct disks *disks);

/* A ready image for these limits (*ret_mount_fd, 1), or it is on order and will come by
 * disks_receive with this tag (0). Tags below DISK_POOL are the pool's own. */
int disks_take(struct disks *disks, const struct limits *limits, uint32_t tag, uint64_t *ret_number,
               int *ret_mount_fd, struct err *err);

/* Orders the mount of a disk that is there; it comes by disks_receive. */
int disks_open(struct disks *disks, uint64_t number, bool base, uint32_t tag, struct err *err);

/* Of a disk without an owner yet. */
int disk_new_number(uint64_t *ret, struct err *err);
/* Its file, to the host's disk for good, and its name. */
int disk_sync(const struct disks *disks, uint64_t number, struct err *err);

/* Its file, to be read as it is. */
int disk_open_file(const struct disks *disks, uint64_t number, struct err *err);

/* What its file takes on the host's disk. */
uint64_t disk_bytes(const struct disks *disks, uint64_t number);

void disks_remove(const struct disks *disks, uint64_t number);

/* Removes every disk that neither the pool nor `used` knows. */
void disks_sweep(const struct disks *disks, bool (*used)(const void *arg, uint64_t number),
                 const void *arg);

/* Something about a volume: DISK_VOLUME_* of disk_maker.h. The answer comes by disks_receive with the order's tag. */
int disks_order(struct disks *disks, const struct disk_order *order, struct err *err);

/* One answer of the maker: 1 an image for ret->tag (mount fd, or -1 and ret->err), 0 nothing for a caller
 * (the pool took it), -1 the maker is gone and its orders with it: sock is -1 until disks_restart. */
int disks_receive(struct disks *disks, struct disk_answer *ret, int *ret_mount_fd, struct err *err);

/* After the maker is gone; not more often than once per pause. */
int disks_restart(struct disks *disks, struct err *err);

/* Orders what the pool lacks, unless an order just failed. */
void disks_refill(struct disks *disks);

#endif
