/* envelope_fuzz.c - the body of a Connect stream.
 *
 * Read at once and byte by byte: the same messages, and the same end. No message is beyond the limit, and those that were
 * taken, written again, are the bytes that were read. */
#include "http/envelope.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT 300

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

struct trace {
    char *data; /* whole messages, in envelopes of our own */
    size_t len;
    uint32_t end; /* the error's kind */
    bool between;
};

static void take(struct trace *trace, const struct envelope_piece *piece, size_t *have)
{
    must(piece->size <= LIMIT && (piece->data.len > 0 || piece->size == 0));
    if (piece->first) {
        envelope_put(trace->data + trace->len, ENVELOPE_MESSAGE, piece->size);
        trace->len += ENVELOPE_HEAD;
        *have = 0;
    }
    memcpy(trace->data + trace->len, piece->data.at, piece->data.len);
    trace->len += piece->data.len;
    *have += piece->data.len;
    must(piece->last == (*have == piece->size));
}

static void run(const uint8_t *data, size_t size, size_t step, struct trace *trace)
{
    struct envelope envelope = { .limit = LIMIT };
    size_t at = 0, have = 0;

    while (at < size && trace->end == 0) {
        size_t n = size - at < step ? size - at : step, used = 0;
        struct envelope_piece piece;
        struct err err = { 0 };
        int r = envelope_read(&envelope, (const char *) data + at, n, &used, &piece, &err);

        must(used <= n);
        if (r < 0) {
            must(err.msg[0] && (err.kind == ERR_INVALID || err.kind == ERR_TOO_BIG));
            trace->end = err.kind;
        } else if (r == 1) {
            take(trace, &piece, &have);
        } else {
            must(used == n);
        }
        at += used;
    }
    trace->between = envelope_between(&envelope);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace fast = { .data = malloc(size + ENVELOPE_HEAD) };
    struct trace slow = { .data = malloc(size + ENVELOPE_HEAD) };

    run(data, size, size + 1, &fast);
    run(data, size, 1, &slow);
    must(fast.end == slow.end && fast.len == slow.len && fast.between == slow.between);
    must(memcmp(fast.data, slow.data, fast.len) == 0);
    must(fast.len <= size && memcmp(fast.data, data, fast.len) == 0);
    must(fast.end || !fast.between || fast.len == size);
    free(fast.data);
    free(slow.data);
    return 0;
}
