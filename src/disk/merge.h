/* merge.h - what several layers of an overlay say together, written as one.
 *
 * The result says the same as the layers did, above whatever lies below them: what they hide there stays hidden. So
 * deleted names (whiteouts) and directories that begin again (opaque) are kept, and what the overlay notes for itself is not.
 *
 * Owns:    nothing. Reads and writes below the descriptors that it is given, and follows no link.
 * Callers: merge_maker.c, with disks whose content is a tenant's. */
#ifndef COVE_DISK_MERGE_H
#define COVE_DISK_MERGE_H

#include "base/err.h"

#include <stddef.h>

#define MERGE_MAX 16 /* layers at once */
#define MERGE_DEPTH_MAX                                                                            \
    1000 /* directories within each other: each takes a descriptor of every layer */

/* from: directories, the uppermost first. to: an empty one. links: another, empty, on the same file system, for the
 * merge's own use: what is in it can go afterwards. */
int merge_trees(const int *from, size_t count, int to, int links, struct err *err);

#endif
