/* http_chunk_fuzz.c - chunked bodies, and forms in them.
 *
 * Both decoders are run at once and byte by byte, which must give the same bytes and the same end;
 * a body that decoded is encoded again in chunks and must decode to itself. The boundary of the
 * forms is a short one, so that the fuzzer finds it. */
#include "http/chunk.h"
#include "http/multipart.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

struct result {
    int end; /* -1 refused, 0 more is needed, 1 done */
    char *data;
    size_t len, used;
    struct err err;
};

static void result_add(struct result *result, const char *at, size_t len)
{
    memcpy(result->data + result->len, at, len);
    result->len += len;
}

static void same(const struct result *a, const struct result *b)
{
    must(a->end == b->end && a->len == b->len && memcmp(a->data, b->data, a->len) == 0);
    must(strcmp(a->err.msg, b->err.msg) == 0 && (a->end < 0 || a->used == b->used));
}

static void run_chunks(const char *in, size_t size, size_t step, struct result *result)
{
    struct chunk chunk = { 0 };

    while (result->used < size && !chunk_done(&chunk)) {
        size_t n = size - result->used < step ? size - result->used : step, used;
        struct slice data;
        int r = chunk_read(&chunk, in + result->used, n, &used, &data, &result->err);

        if (r < 0) {
            result->end = -1;
            return;
        }
        must(used <= n && (r == 1 || used == n || chunk_done(&chunk)));
        if (r == 1)
            result_add(result, data.at, data.len);
        result->used += used;
    }
    result->end = chunk_done(&chunk);
}

static void run_form(const char *in, size_t size, size_t step, struct result *result)
{
    struct multipart form;
    bool open = false;

    must(multipart_init(&form, slice_of("multipart/form-data; boundary=b"), &result->err) == 0);
    while (result->used < size) {
        size_t n = size - result->used < step ? size - result->used : step, used;
        struct slice data = { 0 };
        int r = multipart_read(&form, in + result->used, n, &used, &data, &result->err);

        if (r < 0) {
            result->end = -1;
            return;
        }
        must(used <= n && (r != MULTIPART_MORE || used == n));
        must(open == (r == MULTIPART_DATA || r == MULTIPART_END) || r == MULTIPART_MORE);
        if (r == MULTIPART_PART)
            must(form.name[0] && strlen(form.filename) < sizeof form.filename);
        open = r == MULTIPART_PART || (open && r != MULTIPART_END);
        if (r == MULTIPART_DATA)
            result_add(result, data.at, data.len);
        result->used += used;
    }
    result->end = multipart_done(&form);
}

typedef void (*run_fn)(const char *in, size_t size, size_t step, struct result *result);

static void run_both(run_fn run, const char *in, size_t size, struct result *ret)
{
    struct result fast = { .data = malloc(size + 1) }, slow = { .data = malloc(size + 1) };

    run(in, size, size + 1, &fast);
    run(in, size, 1, &slow);
    same(&fast, &slow);
    must(fast.end >= 0 || fast.err.msg[0]);
    free(slow.data);
    *ret = fast;
}

/* In chunks of 1, 2, 3 ... bytes. */
static void encode_again(const struct result *body)
{
    char *text = malloc(body->len * 8 + 64);
    struct result again = { .data = malloc(body->len + 1) };
    size_t len = 0, n = 1;

    for (size_t at = 0; at < body->len; at += n, n++) {
        n = body->len - at < n ? body->len - at : n;
        len += chunk_head(text + len, n);
        memcpy(text + len, body->data + at, n);
        memcpy(text + len + n, CHUNK_TAIL, 2);
        len += n + 2;
    }
    memcpy(text + len, CHUNK_LAST, strlen(CHUNK_LAST));
    run_chunks(text, len + strlen(CHUNK_LAST), len + 64, &again);
    must(again.end == 1 && again.len == body->len &&
         memcmp(again.data, body->data, again.len) == 0);
    free(text);
    free(again.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *in = (const char *) data;
    struct result body;

    run_both(run_form, in, size, &body);
    free(body.data);
    run_both(run_chunks, in, size, &body);
    if (body.end == 1)
        encode_again(&body);
    free(body.data);
    return 0;
}
