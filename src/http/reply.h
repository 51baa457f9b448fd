/* reply.h - the head of an HTTP/1.1 response, parsed strictly, as it arrives (RFC 9112): for a proxy whose servers are
 * not to be trusted.
 *
 * Owns:    nothing but the struct, of fixed size. Texts stay in the caller's buffer, and are given out as slices
 *          of it: they are valid while the buffer of the last reply_feed is.
 * Callers: server/preview/relay.c; fuzz/http_reply_fuzz.c.
 * Never:   guesses. A head that two parsers could understand in two ways (two lengths, a length and chunks, a bare LF,
 *          a folded line) is refused, so that nothing can be smuggled behind it.
 *
 * Where the input is split does not matter: bytes are judged in their order, each once. */
#ifndef COVE_HTTP_REPLY_H
#define COVE_HTTP_REPLY_H

#include "base/err.h"
#include "http/head.h"

#define REPLY_MAX        32768 /* bytes, first to last */
#define REPLY_FIELDS_MAX 200

enum reply_body {
    REPLY_NO_BODY, /* of its status: 1xx, 204, 304. An answer to HEAD has none either: the caller knows */
    REPLY_LENGTH,  /* exactly reply.content_length bytes, which may be 0 */
    REPLY_CHUNKED, /* see chunk.h */
    REPLY_TO_END,  /* until the server closes */
};

struct reply {
    /* What a caller reads when reply_feed returned 1. */
    uint16_t status; /* 100 to 599 */
    uint8_t minor;   /* HTTP/1.minor: 0 or 1 */
    bool upgrade;    /* Connection names upgrade */
    bool has_length; /* Content-Length was given; with HEAD and 304 it is of what would be sent */
    enum reply_body body;
    uint64_t content_length;
    uint16_t len; /* bytes of the buffer that the head took */
    uint16_t field_count;

    /* reply.c's own. */
    const char *buf; /* borrowed from the caller of the last reply_feed */
    uint16_t scanned, line;
    bool begun, done, failed, chunked;
    struct {
        struct head_span name, value;
    } fields[REPLY_FIELDS_MAX];
};

void reply_init(struct reply *reply);

/* `buf` has all bytes since the head's first, `len` of them so far; it may move between calls, and may hold more
 * than the head. 1: complete, reply->len were used. 0: more is needed. -1: refused, with a sentence (ERR_PROTOCOL). */
int reply_feed(struct reply *reply, const char *buf, size_t len, struct err *err);

/* Of a complete head. */
struct slice reply_field_name(const struct reply *reply, size_t index);
struct slice reply_field_value(const struct reply *reply, size_t index);
/* The first of that name, in any case of letters; at is NULL if there is none. */
struct slice reply_get(const struct reply *reply, const char *name);
/* Whether a comma list, over all lines of that name, has that word. */
bool reply_has(const struct reply *reply, const char *name, struct slice word);

#endif
