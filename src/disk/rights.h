/* rights.h - what the disk maker and its workers keep of the keeper's rights.
 *
 * Callers: disk_maker.c once its devices are open; merge_maker.c before it reads what tenants wrote. */
#ifndef COVE_DISK_RIGHTS_H
#define COVE_DISK_RIGHTS_H

#include "base/err.h"

#include <stddef.h>

/* Mounts, loop devices, mkfs and files stay. */
int rights_of_maker(struct err *err);

/* Of a worker, and in addition: only files stay. Reads below `from`, writes below `to`, and may remove files from `disks`. */
int rights_of_merger(const int *from, size_t count, int to, int disks, struct err *err);

#endif
