/* ranges.h - which addresses of a process wait for which bytes of a file: sorted, apart from each other.
 *
 * The memory is mapped, not of the heap: a process that changes a table may be killed, and another continue with it (fill.h).
 *
 * Callers: pagemap.c, fill.c, pages.c. Pure. */
#ifndef COVE_IMAGE_RANGES_H
#define COVE_IMAGE_RANGES_H

#include <stddef.h>
#include <stdint.h>

#define RANGES_MAX (1u << 20) /* of one process */
#define RANGES_ALL                                                                                 \
    (4u                                                                                            \
     << 20) /* of all that are filled by one server, with room to grow: a process that forks has them copied */

struct range {
    uint64_t start, end; /* addresses, as they are now */
    uint64_t offset;     /* of start, in the file */
};

struct ranges {
    struct range *at; /* owned */
    size_t count, room;
};

void ranges_done(struct ranges *ranges);

/* Behind all others, or -1. */
int ranges_add(struct ranges *ranges, uint64_t start, uint64_t end, uint64_t offset);
int ranges_copy(const struct ranges *from, struct ranges *ret);

/* The one with that address, NULL: none. */
const struct range *ranges_find(const struct ranges *ranges, uint64_t address);

/* Nothing between the two waits any more. -1: no room to split one. */
int ranges_drop(struct ranges *ranges, uint64_t start, uint64_t end);
/* What waits in from … from + len does so at `to`. -1: no room. */
int ranges_move(struct ranges *ranges, uint64_t from, uint64_t to, uint64_t len);

uint64_t ranges_bytes(const struct ranges *ranges);

#endif
