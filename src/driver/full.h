/* full.h - whether the host's disk is full: who hears of that, and what is refused then.
 *
 * Owns:    the process of disk/room.h.
 * Callers: host.c; code that is about to take room for a sandbox, a volume or an image. */
#ifndef COVE_DRIVER_FULL_H
#define COVE_DRIVER_FULL_H

#include "driver/host.h"

/* reserve: bytes to keep free; 0: the default of room_reserve(). */
int full_start(struct keeper *keeper, uint64_t reserve, struct err *err);
/* Keeps the process at work. Returns ms until it wants to be called again, -1: never. */
int full_tend(struct keeper *keeper);

struct full {
    uint64_t free, reserve; /* bytes */
    bool full;
};
void full_now(const struct keeper *keeper, struct full *ret);

/* ERR_DISK_FULL if `bytes` more would take from the reserve. */
int full_check(const struct keeper *keeper, uint64_t bytes, struct err *err);

#endif
