/* volume_maker.h - what the disk maker does for volumes, each in a worker process of its own.
 *
 * Owns:    the image files in <state>/volumes while they are made and removed.
 * Callers: disk_maker.c. */
#ifndef COVE_DISK_VOLUME_MAKER_H
#define COVE_DISK_VOLUME_MAKER_H

#include "base/err.h"
#include "disk/disk_maker.h"

struct volume_place {
    int dir_fd;     /* <state>/volumes */
    int dev_fd;     /* the host's /dev */
    int control_fd; /* its loop-control */
};

/* Does what the order says. *ret_mount_fd: a detached mount, for DISK_VOLUME_ATTACH only. */
int volume_maker_serve(const struct volume_place *place, const struct disk_order *order,
                       int *ret_mount_fd, struct err *err);

/* What a maker that was killed left half made or half removed. Only while no worker is at work. */
void volume_maker_sweep(const struct volume_place *place);

#endif
