#include "http/gunzip.h"

#include "base/own.h"
#include "check.h"

#include <stdint.h>
#include <zlib.h>

static char text[200000];

static void fill(void)
{
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char) ('a' + (i * i / 7) % 23);
}

static size_t pack(const void *data, size_t len, void *out, size_t size)
{
    z_stream z = { .next_in = (Bytef *) (uintptr_t) data,
                   .avail_in = (uInt) len,
                   .next_out = out,
                   .avail_out = (uInt) size };

    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
        deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    (void) deflateEnd(&z);
    return z.total_out;
}

/* In pieces of `step` bytes, into pieces of `room`. Returns what came out, or -1. */
static ssize_t unpack(const char *in, size_t len, size_t step, size_t room, char *out, size_t size,
                      struct err *err)
{
    struct gunzip *g = gunzip_new(err);
    size_t at = 0, total = 0, used, made = 0;
    int r = 0;

    while (r == 0 && (at < len || made > 0)) {
        size_t n = len - at < step ? len - at : step,
               space = size - total < room ? size - total : room;

        made = 0;
        r = gunzip_read(g, in + at, n, &used, out + total, space, &made, err);
        if (r == 0) {
            at += used;
            total += made;
        }
    }
    if (r == 0)
        r = gunzip_end(g, err);
    gunzip_free(g);
    return r < 0 ? -1 : (ssize_t) total;
}

static char packed[300000], out[600000];

static void bodies_decode_however_they_are_split(void)
{
    static const size_t steps[] = { 1, 2, 7, 4096, 300000 }, rooms[] = { 1, 13, 4096, 600000 };
    struct err err;
    size_t len;

    fill();
    len = pack(text, sizeof text, packed, sizeof packed);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        for (size_t j = 0; j < ARRAY_LEN(rooms); j++) {
            CHECK_INT(unpack(packed, len, steps[i], rooms[j], out, sizeof out, &err), sizeof text);
            CHECK(memcmp(out, text, sizeof text) == 0);
        }
}

static void members_follow_each_other(void)
{
    struct err err;
    size_t len = pack("first ", 6, packed, sizeof packed);

    len += pack("", 0, packed + len, sizeof packed - len);
    len += pack("second", 6, packed + len, sizeof packed - len);
    for (size_t step = 1; step < 80; step++) {
        CHECK_INT(unpack(packed, len, step, 600, out, sizeof out, &err), 12);
        CHECK(memcmp(out, "first second", 12) == 0);
    }
}

static void what_is_cut_short_is_refused(void)
{
    struct err err;
    size_t len = pack("hello", 5, packed, sizeof packed);

    for (size_t n = 0; n < len; n++) {
        CHECK_INT(unpack(packed, n, 5, 100, out, sizeof out, &err), -1);
        CHECK_INT(err.kind, ERR_INVALID);
        CHECK_STR(err.msg, "the gzip data ended early");
    }
}

static void what_is_damaged_is_refused(void)
{
    struct err err;
    size_t len = pack("hello hello hello hello", 23, packed, sizeof packed);

    packed[len - 6] ^= 1; /* of the checksum */
    CHECK_INT(unpack(packed, len, 500, 100, out, sizeof out, &err), -1);
    CHECK_STR(err.msg, "the body is not gzip, or damaged: incorrect data check");
    CHECK_INT(unpack("{\"a\":1}", 7, 500, 100, out, sizeof out, &err), -1);
    CHECK_STR(err.msg, "the body is not gzip, or damaged: incorrect header check");
}

static void what_follows_must_be_gzip_too(void)
{
    struct err err;
    size_t len = pack("hello", 5, packed, sizeof packed);

    memcpy(packed + len, "garbage", 7);
    for (size_t step = 1; step < 60; step++) {
        CHECK_INT(unpack(packed, len + 7, step, 100, out, sizeof out, &err), -1);
        CHECK_STR(err.msg, "something that is not gzip follows the gzip data");
    }
    packed[len] = '\0'; /* padding is not ours to guess at */
    CHECK_INT(unpack(packed, len + 1, 500, 100, out, sizeof out, &err), -1);
}

static void a_bomb_is_too_big(void)
{
    static char zeros[1 << 20];
    static char piece[1 << 16];
    auto_free char *bomb = malloc(1 << 20);
    size_t one = pack(zeros, sizeof zeros, bomb, 1 << 20), used, made = 0;
    struct gunzip *g;
    struct err err;
    uint64_t total = 0;
    int r = 0;

    g = gunzip_new(&err);
    for (int i = 0; r == 0 && i < 64; i++) /* members of a thousand bytes and a mebibyte each */
        for (size_t at = 0; r == 0 && (at < one || made > 0); at += used) {
            r = gunzip_read(g, bomb + at, one - at, &used, piece, sizeof piece, &made, &err);
            total += made;
        }
    CHECK_INT(r, -1);
    CHECK_INT(err.kind, ERR_TOO_BIG);
    CHECK_STR(err.msg, "the gzip body grows more than 256 times");
    CHECK(total >= GUNZIP_FREE && total <= GUNZIP_FREE + 2 * sizeof piece);
    gunzip_free(g);
}

CHECK_MAIN(T(bodies_decode_however_they_are_split), T(members_follow_each_other),
           T(what_is_cut_short_is_refused), T(what_is_damaged_is_refused),
           T(what_follows_must_be_gzip_too), T(a_bomb_is_too_big))
