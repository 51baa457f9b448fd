#include "agent/proc/ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void ring_init(struct ring *ring, uint64_t most)
{
    if (most == 0)
        most = RING_DEFAULT;
    if (most < RING_LEAST)
        most = RING_LEAST;
    if (most > RING_MOST)
        most = RING_MOST;
    *ring = (struct ring){ .most = (uint32_t) most };
}

void ring_done(struct ring *ring)
{
    free(ring->data);
    ring->data = NULL;
    ring->size = 0;
}

void ring_forget(struct ring *ring)
{
    ring_done(ring);
    ring->start = ring->end;
    ring->forget = true;
}

/* The pieces of [from, from + len) in a buffer of `size` bytes. */
static int pieces(uint8_t *data, uint32_t size, uint64_t from, uint32_t len, struct iovec iov[2])
{
    uint32_t at = (uint32_t) (from % size);
    uint32_t first = len < size - at ? len : size - at;

    iov[0] = (struct iovec){ .iov_base = data + at, .iov_len = first };
    iov[1] = (struct iovec){ .iov_base = data, .iov_len = len - first };
    return len > first ? 2 : 1;
}

/* Moves the kept bytes into a buffer of the new size. Without memory the ring stays as it is. */
static void resize(struct ring *ring, uint32_t size)
{
    uint8_t *data = malloc(size);
    uint64_t at = ring->start;

    if (!data)
        return;
    while (at < ring->end) {
        struct iovec from[2];
        uint32_t left = (uint32_t) (ring->end - at);
        uint32_t room = size - (uint32_t) (at % size);
        uint32_t n;

        (void) pieces(ring->data, ring->size, at, left, from);
        n = (uint32_t) from[0].iov_len < room ? (uint32_t) from[0].iov_len : room;
        memcpy(data + at % size, from[0].iov_base, n);
        at += n;
    }
    free(ring->data);
    ring->data = data;
    ring->size = size;
}

void ring_trim(struct ring *ring)
{
    uint32_t used = (uint32_t) (ring->end - ring->start);

    if (used == 0)
        ring_done(ring);
    else if (used < ring->size)
        resize(ring, used);
}

bool ring_full(const struct ring *ring, uint64_t pin)
{
    return ring->end - ring->start == ring->most && pin <= ring->start;
}

uint32_t ring_room(struct ring *ring, uint32_t want, uint64_t pin, struct iovec iov[2],
                   int *ret_parts)
{
    uint32_t used = (uint32_t) (ring->end - ring->start);
    uint32_t size = ring->size;

    if (want > ring->most)
        want = ring->most;
    while (size < ring->most && size - used < want)
        size = size == 0 ? RING_LEAST : size > ring->most / 2 ? ring->most : size * 2;
    if (size > ring->size)
        resize(ring, size);
    if (ring->size - used < want) {
        uint64_t start = ring->start + (want - (ring->size - used));

        if (start > pin)
            start = pin > ring->start ? pin : ring->start;
        if (start > ring->end)
            start = ring->end;
        ring->start = start;
        used = (uint32_t) (ring->end - ring->start);
    }
    if (want > ring->size - used)
        want = ring->size - used;
    *ret_parts = want ? pieces(ring->data, ring->size, ring->end, want, iov) : 0;
    return want;
}

void ring_put(struct ring *ring, uint32_t n)
{
    ring->end += n;
    assert(ring->forget || ring->end - ring->start <= ring->size);
    if (ring->forget)
        ring->start = ring->end;
}

uint32_t ring_peek(const struct ring *ring, uint64_t from, uint32_t want, struct iovec iov[2],
                   int *ret_parts)
{
    assert(from >= ring->start && from <= ring->end);
    if (want > ring->end - from)
        want = (uint32_t) (ring->end - from);
    *ret_parts = want ? pieces(ring->data, ring->size, from, want, iov) : 0;
    return want;
}
