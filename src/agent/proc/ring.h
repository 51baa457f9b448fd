/* ring.h - the last bytes of an output stream, by their offset in the whole stream.
 *
 * Grows from nothing to `most` bytes as output comes. What lies before `pin` (the position of the
 * slowest attached reader) may be overwritten, what lies behind it never. Pure. */
#ifndef COVE_AGENT_PROC_RING_H
#define COVE_AGENT_PROC_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define RING_LEAST   4096u
#define RING_MOST    (16u * 1024u * 1024u)
#define RING_DEFAULT (256u * 1024u)
#define RING_NO_PIN  UINT64_MAX

struct ring {
    uint8_t *data;       /* owned; NULL until there is output */
    uint32_t size, most; /* allocated; allowed */
    uint64_t start, end; /* offsets of the first byte kept and behind the last */
    bool forget;         /* keep nothing any more, only count */
};

void ring_init(struct ring *ring, uint64_t most);
void ring_done(struct ring *ring);

/* Room for up to `want` new bytes, made by growing, then by forgetting bytes before `pin`. Returns
 * how many fit and where; 0 means that a reader has to read first. */
uint32_t ring_room(struct ring *ring, uint32_t want, uint64_t pin, struct iovec iov[2],
                   int *ret_parts);
/* The first n bytes of the room were written. */
void ring_put(struct ring *ring, uint32_t n);

/* No room can be made for a single byte. */
bool ring_full(const struct ring *ring, uint64_t pin);
/* Nothing more will come: memory for what is kept, and no more. */
void ring_trim(struct ring *ring);

/* Up to `want` bytes from offset `from` (start <= from <= end). */
uint32_t ring_peek(const struct ring *ring, uint64_t from, uint32_t want, struct iovec iov[2],
                   int *ret_parts);

/* Frees what is kept; from now on bytes are only counted. */
void ring_forget(struct ring *ring);

#endif
