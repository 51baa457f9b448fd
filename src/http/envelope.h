/* envelope.h - the frames of Connect's streams: a byte of flags, four of length, and a message.
 *
 * Owns:    nothing. Messages are handed out as slices of the input, in order, as they arrive.
 * Never:   takes from a client what only a server may send: a request has plain messages alone. How a body ends is
 *          the caller's to see; envelope_between says whether it may end here. Pure; fuzzed. */
#ifndef COVE_HTTP_ENVELOPE_H
#define COVE_HTTP_ENVELOPE_H

#include "base/err.h"
#include "http/slice.h"

#define ENVELOPE_HEAD       5
#define ENVELOPE_MESSAGE    0u
#define ENVELOPE_COMPRESSED 1u
#define ENVELOPE_END        2u /* of the stream: what follows the last message of an answer */

struct envelope {   /* all zero but for the limit: before the first byte */
    uint32_t limit; /* of one message */
    uint8_t head[ENVELOPE_HEAD];
    uint8_t have; /* bytes of head */
    uint32_t size, left;
};

struct envelope_piece {
    struct slice data; /* empty only in a message that is */
    uint32_t size;     /* of the whole message */
    bool first, last;
};

/* Reads on. Returns 1 with a piece of a message; 0: all of the input was used; -1: refused, for good: ERR_TOO_BIG or
 * ERR_INVALID. ret_used: how much of the input was read. */
int envelope_read(struct envelope *envelope, const char *in, size_t len, size_t *ret_used,
                  struct envelope_piece *ret, struct err *err);

static inline bool envelope_between(const struct envelope *envelope)
{
    return envelope->have == 0;
}

void envelope_put(char out[ENVELOPE_HEAD], uint8_t flags, uint32_t len);

#endif
