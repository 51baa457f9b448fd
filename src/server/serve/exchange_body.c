/* The body comes by exchange_read: from the read-ahead buffer first, out of its chunks, and, for a handler that
 * accepts encodings, out of gzip. The route's limit holds for what the handler gets. What a handler leaves
 * unread is drained after its answer, up to a bound, so that the next request on the connection begins where
 * it should; beyond the bound the connection closes. */
#include "server/serve/exchange_own.h"

#include "base/own.h"
#include "base/parse.h"
#include "http/gunzip.h"
#include "server/guard/bodies.h"

#include <string.h>
#include <strings.h>

#define DRAIN_MAX  (256 * 1024)
#define JSON_FLAGS (JSON_REJECT_DUPLICATES)
#define JSON_DEPTH 64
#define JSON_MOST                                                                                  \
    131072 /* values: the smallest takes 2 bytes of the body and more than 200 of memory */
#define READ_PIECE   16384
#define ROOM_STEP    (1u << 20)
#define ANSWER_SMALL (4 * BODIES_SMALL)

static uint64_t stall_of(const struct exchange *x)
{
    return x->eager ? 0 : app_config(x->app)->body_stall_ms;
}

static int send_continue(struct exchange *x, struct err *err)
{
    static const char go[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (!x->head.expect_continue || x->continued)
        return 0;
    x->continued = true;
    return conn_write(x->conn, go, sizeof go - 1, app_config(x->app)->body_stall_ms, err);
}

static ssize_t read_length(struct exchange *x, void *out, size_t size, struct err *err)
{
    ssize_t n;

    if (x->body_left == 0)
        return 0;
    if (size > x->body_left)
        size = (size_t) x->body_left;
    n = conn_read(x->conn, out, size, stall_of(x), err);
    if (n == 0)
        return err_set(err, ERR_UNAVAILABLE, "the body ended early");
    if (n > 0)
        x->body_left -= (uint64_t) n;
    return n;
}

/* Decodes in place; bytes behind the body go back to the read-ahead buffer. */
static ssize_t read_chunked(struct exchange *x, char *out, size_t size, struct err *err)
{
    while (!chunk_done(&x->chunk)) {
        struct slice data;
        size_t used = 0;
        int rc;

        if (x->chunk_have == 0) {
            ssize_t n = conn_read(x->conn, x->chunk_buf, sizeof x->chunk_buf, stall_of(x), err);

            if (n <= 0)
                return n < 0 ? -1 : err_set(err, ERR_UNAVAILABLE, "the body ended early");
            x->chunk_at = 0;
            x->chunk_have = (size_t) n;
        }
        rc = chunk_read(&x->chunk, x->chunk_buf + x->chunk_at,
                        x->chunk_have < size ? x->chunk_have : size, &used, &data, err);
        if (rc < 0) {
            x->close = true;
            return -1;
        }
        if (rc == 1)
            memcpy(out, data.at, data.len);
        x->chunk_at += used;
        x->chunk_have -= used;
        if (rc == 1)
            return (ssize_t) data.len;
    }
    if (x->chunk_have > 0) { /* the next request, read along */
        memmove(x->conn->buf + x->chunk_have, x->conn->buf, x->conn->have);
        memcpy(x->conn->buf, x->chunk_buf + x->chunk_at, x->chunk_have);
        x->conn->have += x->chunk_have;
        x->chunk_have = 0;
    }
    return 0;
}

static int too_large(struct exchange *x, struct err *err)
{
    char most[SIZE_TEXT_MAX];

    x->close = true;
    return err_set(err, ERR_TOO_BIG, "the body is larger than %s",
                   size_text(most, sizeof most, x->body_limit));
}

/* As it is on the wire, but for the chunks. */
static ssize_t read_wire(struct exchange *x, void *out, size_t size, struct err *err)
{
    if (x->head.body != HEAD_NO_BODY && send_continue(x, err) < 0)
        return -1;
    if (x->head.body == HEAD_LENGTH)
        return read_length(x, out, size, err);
    if (x->head.body == HEAD_CHUNKED)
        return read_chunked(x, out, size, err);
    return 0;
}

/* ---- encodings ---- */

struct exchange_decoder {
    struct gunzip *gunzip;
    size_t at, have;
    uint64_t wire; /* bytes so far, before decoding */
    char buf[READ_PIECE];
};

void exchange_give_room(struct exchange *x)
{
    if (x->body_room > 0)
        bodies_give(&x->caller, x->body_room);
    x->body_room = 0;
}

void exchange_done(struct exchange *x)
{
    if (x->decoder)
        gunzip_free(x->decoder->gunzip);
    free(x->decoder);
    x->decoder = NULL;
    exchange_give_room(x);
}

int exchange_accept_encoding(struct exchange *x, struct err *err)
{
    struct slice coding = head_get(&x->head, "Content-Encoding");

    if (!coding.at || slice_is_nocase(coding, "identity") || x->decoder ||
        x->head.body == HEAD_NO_BODY ||
        (x->head.body == HEAD_LENGTH && x->head.content_length == 0))
        return 0;
    if (!slice_is_nocase(coding, "gzip") && !slice_is_nocase(coding, "x-gzip")) {
        (void) exchange_blame_status(x, 415);
        (void) exchange_add_header(x, "Accept-Encoding", "gzip", &(struct err){ 0 });
        err_set(err, ERR_INVALID, "Content-Encoding: only gzip is supported");
        return exchange_blame(x, "Content-Encoding", NULL, NULL);
    }
    x->decoder = calloc(1, sizeof *x->decoder);
    if (!x->decoder)
        return err_set(err, ERR_NO_MEMORY, "no memory to decode a body");
    x->decoder->gunzip = gunzip_new(err);
    if (x->decoder->gunzip)
        return 0;
    exchange_done(x);
    return -1;
}

/* Members of nothing, one after another, decode to nothing: what is read is bounded as well. gzip makes what
 * it cannot compress a little larger. */
static uint64_t wire_limit(const struct exchange *x)
{
    uint64_t more = x->body_limit / 64 + 4096;

    return x->body_limit > UINT64_MAX - more ? UINT64_MAX : x->body_limit + more;
}

static ssize_t read_decoded(struct exchange *x, void *out, size_t size, struct err *err)
{
    struct exchange_decoder *d = x->decoder;

    for (;;) {
        size_t used = 0, made = 0;
        bool end = false;

        if (d->have == 0) {
            ssize_t n = read_wire(x, d->buf, sizeof d->buf, err);

            if (n < 0)
                return -1;
            end = n == 0;
            d->at = 0;
            d->have = (size_t) n;
            d->wire += (uint64_t) n;
            if (d->wire > wire_limit(x))
                return too_large(x, err);
        }
        if (gunzip_read(d->gunzip, d->buf + d->at, d->have, &used, out, size, &made, err) < 0)
            return -1;
        d->at += used;
        d->have -= used;
        if (made > 0)
            return (ssize_t) made;
        if (end)
            return gunzip_end(d->gunzip, err);
    }
}

ssize_t exchange_read(struct exchange *x, void *out, size_t size, struct err *err)
{
    ssize_t n;

    if (x->head.body == HEAD_LENGTH && !x->decoder && x->head.content_length > x->body_limit)
        return too_large(x, err);
    n = x->decoder ? read_decoded(x, out, size, err) : read_wire(x, out, size, err);
    if (n <= 0)
        return n;
    x->body_read += (uint64_t) n;
    return x->body_read > x->body_limit ? too_large(x, err) : n;
}

bool exchange_can_pipe(const struct exchange *x)
{
    return x->head.body == HEAD_LENGTH && !x->decoder && !x->conn->tls && x->conn->have == 0;
}

ssize_t exchange_pipe(struct exchange *x, int pipe_fd, size_t most, struct err *err)
{
    ssize_t n;

    if (x->head.content_length > x->body_limit)
        return too_large(x, err);
    if (x->body_left == 0)
        return 0;
    if (send_continue(x, err) < 0)
        return -1;
    n = conn_pipe(x->conn, pipe_fd, most < x->body_left ? most : (size_t) x->body_left, stall_of(x),
                  err);
    if (n == 0)
        return err_set(err, ERR_UNAVAILABLE, "the body ended early");
    if (n > 0) {
        x->body_left -= (uint64_t) n;
        x->body_read += (uint64_t) n;
    }
    return n;
}

/* What the parser would make of it is bounded before it begins. */
static int shape_ok(const char *text, size_t len, struct err *err)
{
    int depth = 0;
    size_t values = 0;
    bool in_text = false;

    for (size_t i = 0; i < len; i++) {
        if (in_text) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                in_text = false;
        } else if (text[i] == '"') {
            in_text = true;
        } else if (text[i] == ',') {
            values++;
        } else if (text[i] == '{' || text[i] == '[') {
            values++;
            if (++depth > JSON_DEPTH)
                return err_set(err, ERR_INVALID, "the body is nested deeper than %d", JSON_DEPTH);
        } else if (text[i] == '}' || text[i] == ']') {
            depth--;
        }
    }
    return values <= JSON_MOST
               ? 0
               : err_set(err, ERR_INVALID, "the body has more than %d values", JSON_MOST);
}

int exchange_json_text(const char *text, size_t len, json_t **ret, struct err *err)
{
    json_error_t why;
    json_t *json;

    if (shape_ok(text, len, err) < 0)
        return -1;
    json = json_loadb(text, len, JSON_FLAGS, &why);
    if (!json)
        return err_set(err, ERR_INVALID, "the body is not JSON: %s (line %d, column %d)", why.text,
                       why.line, why.column);
    if (!json_is_object(json)) {
        json_decref(json);
        return err_set(err, ERR_INVALID, "the body is not a JSON object");
    }
    *ret = json;
    return 0;
}

int exchange_body_room(struct exchange *x, uint64_t size, struct err *err)
{
    while (size > BODIES_SMALL && size > x->body_room) {
        if (bodies_take(&x->caller, ROOM_STEP, err) < 0)
            return -1;
        x->body_room += ROOM_STEP;
    }
    return 0;
}

int exchange_take_room(struct exchange *x, uint64_t bytes, struct err *err)
{
    if (bytes <= ANSWER_SMALL)
        return 0;
    if (bodies_take(&x->caller, bytes, err) < 0)
        return -1;
    x->body_room += bytes;
    return 0;
}

int exchange_text(struct exchange *x, char **ret, size_t *ret_len, struct err *err)
{
    auto_free char *text = NULL;
    size_t have = 0, room = 0;
    ssize_t n;

    if (exchange_accept_encoding(x, err) < 0)
        return -1;
    do {
        if (room - have < READ_PIECE) {
            char *more;

            if (exchange_body_room(x, room + 4 * READ_PIECE, err) < 0)
                return -1;
            more = realloc(text, room + 4 * READ_PIECE);
            if (!more)
                return err_set(err, ERR_NO_MEMORY, "no memory for the body");
            text = more;
            room += 4 * READ_PIECE;
        }
        n = exchange_read(x, text + have, READ_PIECE, err);
        if (n < 0)
            return -1;
        have += (size_t) n;
    } while (n > 0);
    *ret = take_ptr(&text);
    *ret_len = have;
    return 0;
}

int exchange_json(struct exchange *x, json_t **ret, struct err *err)
{
    auto_free char *text = NULL;
    size_t len = 0;

    if (exchange_text(x, &text, &len, err) < 0)
        return -1;
    if (len == 0) {
        *ret = json_object();
        return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for the body");
    }
    return exchange_json_text(text, len, ret, err);
}

int exchange_drain(struct exchange *x)
{
    char scratch[4096];
    size_t total = 0;
    struct err err;
    ssize_t n;

    if (x->head.body == HEAD_NO_BODY)
        return 0;
    if (x->head.expect_continue && !x->continued)
        return -1; /* the client may send the body or not: unknown */
    if (x->head.body == HEAD_LENGTH && x->body_left > DRAIN_MAX)
        return -1;
    while ((n = read_wire(x, scratch, sizeof scratch, &err)) > 0) {
        total += (size_t) n;
        if (total > DRAIN_MAX)
            return -1;
    }
    return (int) n;
}
