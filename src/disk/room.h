/* room.h - what is done before the host's disk is full.
 *
 * The disks of sandboxes, and volumes, are sparse files: all of them together may promise more than the host has. A file system whose
 * device cannot write loses data, and may become read-only for good. So a process, cove-room, looks at the room that is left. Below
 * a reserve it tells the kernel to keep all free blocks of those file systems for itself (reserved_clusters of ext4): from then on a
 * write that needs a new block gets ENOSPC at once, in every sandbox, and nothing is lost. With room again, it takes that back.
 *
 * Data that was written inside and is not in the file yet is owed: it counts as if it were there.
 * Blocks that a sandbox has allocated and never written (fallocate) are not known; the reserve is for them, too.
 *
 * Owns:    the process, and reserved_clusters of the devices that have a file in <state>/disks or <state>/volumes.
 * Callers: the keeper: full.c. */
#ifndef COVE_DISK_ROOM_H
#define COVE_DISK_ROOM_H

#include "base/err.h"
#include "disk/disk.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How many bytes are to stay free on a disk of `total` bytes. set: the operator's word; 0: the default, 2 %, at least 64 MiB
 * (but not more than a tenth of the disk), at most 4 GiB. Pure. */
uint64_t room_reserve(uint64_t total, uint64_t set);

/* Whether a disk is full by now. A full one needs a quarter of the reserve more to have room again. Pure. */
bool room_is_full(bool was, uint64_t free, uint64_t owed, uint64_t reserve);

/* What the process says, each time it changes. */
#define ROOM_FULL  'f'
#define ROOM_AGAIN 'r'

/* Starts it. *ret_fd: a pipe with its words; at its end the process is gone. */
int room_start(const struct disks *disks, uint64_t set, int *ret_fd, pid_t *ret_pid,
               struct err *err);

#endif
