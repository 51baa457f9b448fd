/* merge_maker.h - one disk of several: for chains of forks that became too long.
 *
 * The disks that it reads are never written again, so their sandboxes continue meanwhile.
 *
 * Callers: disk_maker.c, in a process for this one order. */
#ifndef COVE_DISK_MERGE_MAKER_H
#define COVE_DISK_MERGE_MAKER_H

#include "base/err.h"
#include "disk/disk_maker.h"

struct merge_place {
    int dir_fd; /* <state>/disks */
    int dev_fd; /* the host's /dev */
    int control_fd;
};

/* DISK_MERGE: the file of order->number, whole and on the host's disk for good; on failure there is none. */
int merge_maker_serve(const struct merge_place *place, const struct disk_order *order,
                      struct err *err);

#endif
