/* gunzip_fuzz.c - gzip bodies: at once and in small pieces, which must come to the same. */
#include "http/gunzip.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define OUT_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

struct result {
    int end;
    char data[OUT_MAX];
    size_t len;
    struct err err;
};

static void run(const uint8_t *in, size_t size, size_t step, size_t room, struct result *result)
{
    struct gunzip *g = gunzip_new(&result->err);
    size_t at = 0;

    must(g);
    result->end = 0;
    result->len = 0;
    for (;;) {
        size_t n = size - at < step ? size - at : step, used, made;
        size_t space = OUT_MAX - result->len < room ? OUT_MAX - result->len : room;

        if (space == 0)
            break; /* more than is compared */
        if (gunzip_read(g, in + at, n, &used, result->data + result->len, space, &made,
                        &result->err) < 0) {
            result->end = -1;
            break;
        }
        must(used <= n && made <= space);
        at += used;
        result->len += made;
        if (made == 0 && used == 0 && at == size) {
            result->end = gunzip_end(g, &result->err) == 0 ? 1 : -1;
            break;
        }
        must(made > 0 || used > 0 || at == size);
    }
    must(result->end >= 0 || (result->err.msg[0] && result->err.kind == ERR_INVALID));
    gunzip_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct result fast, slow;

    run(data, size, size + 1, OUT_MAX, &fast);
    run(data, size, 3, 5, &slow);
    /* A refusal takes along what was made in the same call, here perhaps all of it. */
    must(fast.end == slow.end || (fast.end < 0 && slow.len == OUT_MAX));
    must(fast.end < 0 ? fast.len <= slow.len : fast.len == slow.len);
    must(memcmp(fast.data, slow.data, fast.len) == 0);
    return 0;
}
