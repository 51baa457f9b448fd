/* inventory.h - what criu remembers of a dump as a whole, in its file inventory.img.
 *
 * Callers: driver/jail/save.c, before an image is signed. */
#ifndef COVE_IMAGE_INVENTORY_H
#define COVE_IMAGE_INVENTORY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Of an image without TCP connections: a restore need not keep the network still. criu does it by rules of nftables,
 * whose removal waits for the whole machine, and which lock nothing if there is no connection. */
int inventory_fix(int memory_fd, struct err *err);

/* Where in the file it says that it was done by nftables; 0: nowhere. Pure. */
size_t inventory_lock_at(const uint8_t *text, size_t len);

#endif
