/* chunk.h - chunked bodies (RFC 9112, section 7.1), decoded as they arrive.
 *
 * Owns:    nothing. Data is handed out as slices of the input, in order.
 * Never:   skips what it does not understand: a size without CRLF, data without CRLF, a bare LF or
 *          a sign is where two parsers would part ways. Extensions and trailers are checked,
 *          bounded and dropped. How large a body may be is the caller's to say. */
#ifndef COVE_HTTP_CHUNK_H
#define COVE_HTTP_CHUNK_H

#include "base/err.h"
#include "http/slice.h"

#define CHUNK_DIGITS_MAX     16    /* of a size, with its leading zeros */
#define CHUNK_EXTENSION_MAX  256   /* bytes behind one size */
#define CHUNK_EXTENSIONS_MAX 16384 /* bytes of all of them in one body */
#define CHUNK_TRAILER_MAX    8192  /* bytes of all trailers */
#define CHUNK_TRAILERS_MAX   32

enum chunk_state {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER, /* at the start of a line */
    CHUNK_TRAILER_NAME,
    CHUNK_TRAILER_VALUE,
    CHUNK_TRAILER_LF,
    CHUNK_END_LF,
    CHUNK_DONE,
};

struct chunk { /* all zero: before the first byte */
    enum chunk_state state;
    uint8_t digits;
    uint16_t extension, extensions; /* bytes so far: of this line, of the body */
    uint16_t trailer, trailers;     /* bytes and lines of the trailers so far */
    uint64_t left;                  /* of the chunk's data */
    uint64_t total;                 /* data of all chunks whose size is known */
};

/* Reads on. Returns 1 with a piece of data, which is not empty, or 0: either all of the input was
 * used and more is needed, or chunk_done. -1: refused; the status is 400, and the connection has to
 * be closed. ret_used: how much of the input was read; at the end, what is behind is not ours. */
int chunk_read(struct chunk *chunk, const char *in, size_t len, size_t *ret_used,
               struct slice *ret_data, struct err *err);

static inline bool chunk_done(const struct chunk *chunk)
{
    return chunk->state == CHUNK_DONE;
}

/* For sending: head, data, CHUNK_TAIL for each piece that is not empty; CHUNK_LAST at the end. */
#define CHUNK_HEAD_MAX 18
#define CHUNK_TAIL     "\r\n"
#define CHUNK_LAST     "0\r\n\r\n"
size_t chunk_head(char out[CHUNK_HEAD_MAX], uint64_t len);

#endif
