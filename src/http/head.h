/* head.h - the head of an HTTP/1.1 request: parsed strictly, as it arrives (RFC 9112).
 *
 * Owns:    nothing but the struct, of fixed size. Texts stay in the caller's buffer, and are given
 *          out as slices of it: they are valid while the buffer of the last head_feed is.
 * Callers: the connection of the server; fuzz/http_head_fuzz.c.
 * Never:   allocates, reads from a descriptor, or guesses. What two parsers could understand in two
 *          ways is refused, with a status and a sentence that names what; the connection of a
 *          refused head must be closed, since where the next request begins is not known.
 *
 * Where the input is split does not matter: bytes are judged in their order, each once. */
#ifndef COVE_HTTP_HEAD_H
#define COVE_HTTP_HEAD_H

#include "base/err.h"
#include "http/slice.h"

#define HEAD_MAX        16384 /* bytes, first to last; more is 431 */
#define HEAD_LINE_MAX   8192  /* bytes of the request line; more is 414 */
#define HEAD_FIELDS_MAX 100   /* more is 431 */
#define HEAD_METHOD_MAX 32    /* longer methods are 501 */

enum method {
    METHOD_OTHER, /* a token, but none of these: head_method has its text */
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_PATCH,
    METHOD_DELETE,
    METHOD_OPTIONS,
    METHOD_TRACE,
    METHOD_COUNT
};

/* "GET"; "" for METHOD_OTHER. */
const char *method_name(enum method method);

enum head_body {
    HEAD_NO_BODY, /* neither Content-Length nor Transfer-Encoding */
    HEAD_LENGTH,  /* exactly head.content_length bytes, which may be 0 */
    HEAD_CHUNKED, /* see chunk.h */
};

struct head_span { /* of the buffer; HEAD_MAX fits into 16 bits */
    uint16_t at, len;
};

struct head {
    /* What a caller reads when head_feed returned 1. */
    enum method method;
    uint8_t minor;        /* HTTP/1.minor: 0 or 1 */
    bool keep_alive;      /* the client wants another request on this connection */
    bool expect_continue; /* it waits for "100 Continue" before it sends its body */
    bool upgrade;         /* Connection names upgrade: see the Upgrade header, and ws.h */
    bool asterisk;        /* OPTIONS * */
    enum head_body body;
    uint64_t content_length;
    uint16_t port; /* of the host; 0 if it has none */
    uint16_t len;  /* bytes of the buffer that the head took: the body begins there */
    uint16_t field_count;

    /* And when it returned -1. */
    uint16_t status;

    /* head.c's own. */
    const char *buf; /* borrowed from the caller of the last head_feed */
    uint16_t scanned, line;
    bool begun, blank, done, has_query, close, persist;
    uint8_t seen; /* bit per row of head.c's known[] */
    struct head_span method_text, authority, host, path, query;
    struct {
        struct head_span name, value;
    } fields[HEAD_FIELDS_MAX];
};

void head_init(struct head *head);

/* `buf` has all bytes since the head's first, `len` of them so far; it may move between calls, and
 * may hold more than the head (a body, the next request). 1: complete, head->len were used. 0: more
 * is needed. -1: refused, with head->status and the sentence. */
int head_feed(struct head *head, const char *buf, size_t len, struct err *err);
/* The bytes were copied to another buffer, to be kept there. */
void head_move(struct head *head, const char *buf);

/* All that follows is for a complete head. */
struct slice head_method(const struct head *head);
struct slice head_path(const struct head *head);  /* raw; never empty: "/", "/a%20b", "*" */
struct slice head_query(const struct head *head); /* raw, without '?'; at is NULL without one */
struct slice head_host(const struct head *head);  /* without port; at is NULL in HTTP/1.0 without */

/* The header by its name in any case of letters. get: the first, at is NULL if there is none. */
struct slice head_get(const struct head *head, const char *name);
size_t head_count(const struct head *head, const char *name);
struct slice head_field_name(const struct head *head, size_t index);
struct slice head_field_value(const struct head *head, size_t index);

/* The items of a comma list, over all lines of that name. */
struct head_list {
    const struct head *head;
    const char *name;
    size_t index; /* the next line to look at */
    struct slice rest;
};

struct head_list head_list(const struct head *head, const char *name);
bool head_list_next(struct head_list *list, struct slice *ret_item);
/* Whether the list has that word, in any case of letters. */
bool head_has(const struct head *head, const char *name, const char *word);

#endif
