#include "image/ranges.h"

#include <string.h>
#include <sys/mman.h>

/* Rooms of all tables. What is in them is a tenant's doing, and the memory is the host's. */
static size_t held;

void ranges_done(struct ranges *r)
{
    if (r->at)
        (void) munmap(r->at, r->room * sizeof *r->at);
    held -= r->room;
    memset(r, 0, sizeof *r);
}

static int make_room(struct ranges *r, size_t count)
{
    size_t room = r->room ? r->room : 256;
    void *at;

    if (count <= r->room)
        return 0;
    while (room < count)
        room *= 2;
    if (room > RANGES_MAX || held + (room - r->room) > RANGES_ALL)
        return -1;
    at = r->at ? mremap(r->at, r->room * sizeof *r->at, room * sizeof *r->at, MREMAP_MAYMOVE)
               : mmap(NULL, room * sizeof *r->at, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return -1;
    held += room - r->room;
    r->at = at;
    r->room = room;
    return 0;
}

/* The first that ends behind it. */
static size_t first_behind(const struct ranges *r, uint64_t address)
{
    size_t low = 0, high = r->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (r->at[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int insert(struct ranges *r, struct range new)
{
    size_t i = first_behind(r, new.start);

    if (new.start >= new.end || make_room(r, r->count + 1) < 0 ||
        (i < r->count && r->at[i].start < new.end))
        return -1;
    memmove(r->at + i + 1, r->at + i, (r->count - i) * sizeof *r->at);
    r->at[i] = new;
    r->count++;
    return 0;
}

int ranges_add(struct ranges *r, uint64_t start, uint64_t end, uint64_t offset)
{
    struct range *last = r->count ? &r->at[r->count - 1] : NULL;

    if (start == end)
        return 0;
    if (start > end || (last && last->end > start))
        return -1;
    if (last && last->end == start && last->offset + (last->end - last->start) == offset) {
        last->end = end;
        return 0;
    }
    return insert(r, (struct range){ start, end, offset });
}

int ranges_copy(const struct ranges *from, struct ranges *ret)
{
    if (make_room(ret, from->count) < 0)
        return -1;
    if (from->count)
        memcpy(ret->at, from->at, from->count * sizeof *from->at);
    ret->count = from->count;
    return 0;
}

const struct range *ranges_find(const struct ranges *r, uint64_t address)
{
    size_t i = first_behind(r, address);

    return i < r->count && r->at[i].start <= address ? &r->at[i] : NULL;
}

/* No range goes over that address afterwards. */
static int split(struct ranges *r, uint64_t address)
{
    size_t i = first_behind(r, address);
    struct range *own, tail;

    if (i == r->count || r->at[i].start >= address)
        return 0;
    own = &r->at[i];
    tail = (struct range){ address, own->end, own->offset + (address - own->start) };
    if (make_room(r, r->count + 1) < 0)
        return -1;
    r->at[i].end = address;
    return insert(r, tail);
}

int ranges_drop(struct ranges *r, uint64_t start, uint64_t end)
{
    size_t from, to;

    if (start >= end)
        return 0;
    if (split(r, start) < 0 || split(r, end) < 0)
        return -1;
    from = to = first_behind(r, start);
    while (to < r->count && r->at[to].start < end)
        to++;
    memmove(r->at + from, r->at + to, (r->count - to) * sizeof *r->at);
    r->count -= to - from;
    return 0;
}

int ranges_move(struct ranges *r, uint64_t from, uint64_t to, uint64_t len)
{
    struct ranges moved = { .count = 0 };
    int rc = 0;

    if (split(r, from) < 0 || split(r, from + len) < 0)
        return -1;
    for (size_t i = first_behind(r, from); rc == 0 && i < r->count && r->at[i].start < from + len;
         i++)
        rc = ranges_add(&moved, r->at[i].start, r->at[i].end, r->at[i].offset);
    /* Where it goes nothing can wait: the kernel says so first, or would have. */
    if (rc == 0)
        rc = ranges_drop(r, from, from + len);
    if (rc == 0)
        rc = ranges_drop(r, to, to + len);
    for (size_t i = 0; rc == 0 && i < moved.count; i++)
        rc = insert(r, (struct range){ moved.at[i].start - from + to, moved.at[i].end - from + to,
                                       moved.at[i].offset });
    ranges_done(&moved);
    return rc;
}

uint64_t ranges_bytes(const struct ranges *r)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < r->count; i++)
        bytes += r->at[i].end - r->at[i].start;
    return bytes;
}
