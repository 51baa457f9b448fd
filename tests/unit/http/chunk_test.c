#include "http/chunk.h"

#include "check.h"

/* Decodes text in pieces of `step` bytes. out has the data; the return is what was used, or -1. */
static long decode(const char *text, size_t len, size_t step, char *out, bool *ret_done,
                   struct err *err)
{
    struct chunk chunk = { 0 };
    size_t at = 0, n = 0;

    while (at < len && !chunk_done(&chunk)) {
        size_t piece = len - at < step ? len - at : step, used;
        struct slice data;
        int r = chunk_read(&chunk, text + at, piece, &used, &data, err);

        if (r < 0)
            return -1;
        if (r == 1) {
            CHECK(data.len > 0);
            memcpy(out + n, data.at, data.len);
            n += data.len;
        } else {
            CHECK(used == piece || chunk_done(&chunk));
        }
        at += used;
    }
    out[n] = '\0';
    *ret_done = chunk_done(&chunk);
    return (long) at;
}

static void bodies_decode_however_they_are_split(void)
{
    static const struct {
        const char *text, *data, *behind;
    } cases[] = {
        { "0\r\n\r\n", "", "" },
        { "5\r\nhello\r\n0\r\n\r\n", "hello", "" },
        { "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", "" },
        { "a\r\n0123456789\r\nA\r\nabcdefghij\r\n0\r\n\r\n", "0123456789abcdefghij", "" },
        { "0000000000000005\r\nhello\r\n000\r\n\r\n", "hello", "" },
        { "2\r\n\r\n\r\n0\r\n\r\n", "\r\n", "" },
        { "5;a=b;c=\"d;e\"\r\nhello\r\n0;last\r\n\r\n", "hello", "" },
        { "1\r\na\r\n0\r\nX: y\r\nX-Sum:\t\xc3\xa9\r\nE:\r\n\r\n", "a", "" },
        { "1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n", "a", "GET / HTTP/1.1\r\n" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t step = 1; step <= strlen(cases[i].text); step++) {
            struct err err;
            char out[256];
            bool done;
            long used = decode(cases[i].text, strlen(cases[i].text), step, out, &done, &err);

            CHECK(used >= 0 && done);
            CHECK_STR(out, cases[i].data);
            CHECK_STR(cases[i].text + used, cases[i].behind);
        }
}

#define BYTE(where, byte) "chunked body: " where " has the byte " byte ", which is not allowed"

static void bad_framing_is_refused_however_it_is_split(void)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        { "\r\n", BYTE("a chunk size", "0x0d") },
        { "x\r\n", BYTE("a chunk size", "0x78") },
        { "0x5\r\nhello\r\n", BYTE("a chunk size", "0x78") },
        { "-5\r\nhello", BYTE("a chunk size", "0x2d") },
        { "+5\r\nhello", BYTE("a chunk size", "0x2b") },
        { " 5\r\nhello", BYTE("a chunk size", "0x20") },
        { "5 \r\nhello", BYTE("a chunk size", "0x20") },
        { "5 ;a\r\nhello", BYTE("a chunk size", "0x20") },
        { "5_0\r\nhello", BYTE("a chunk size", "0x5f") },
        { "5\nhello\r\n", BYTE("a chunk size", "0x0a") },
        { "5\rhello\r\n", BYTE("the end of a chunk size", "0x68") },
        { "5;\r\nhello", BYTE("a chunk extension", "0x0d") },
        { "5;a\nhello", BYTE("a chunk extension", "0x0a") },
        { "5;a\x01\r\nhello", BYTE("a chunk extension", "0x01") },
        { "5\r\nhello0\r\n\r\n", BYTE("the end of a chunk's data", "0x30") },
        { "5\r\nhello\n0\r\n", BYTE("the end of a chunk's data", "0x0a") },
        { "5\r\nhello\rX", BYTE("the end of a chunk's data", "0x58") },
        { "5\r\nhello!\r\n", BYTE("the end of a chunk's data", "0x21") },
        { "0\r\n\n", BYTE("the name of a trailer", "0x0a") },
        { "0\r\n\rX", BYTE("the end of the trailers", "0x58") },
        { "0\r\n X: y\r\n", BYTE("the name of a trailer", "0x20") },
        { "0\r\nX : y\r\n", BYTE("the name of a trailer", "0x20") },
        { "0\r\n: y\r\n", BYTE("the name of a trailer", "0x3a") },
        { "0\r\nX\r\n", BYTE("the name of a trailer", "0x0d") },
        { "0\r\nX: y\n", BYTE("a trailer", "0x0a") },
        { "0\r\nX: \x7f\r\n", BYTE("a trailer", "0x7f") },
        { "0\r\nX: y\rZ", BYTE("the end of a trailer", "0x5a") },
        { "0\r\nX: y\r\n folded\r\n", BYTE("the name of a trailer", "0x20") },
        { "00000000000000005\r\n", "chunked body: a chunk size is too large" },
        { "8000000000000000\r\n", "chunked body: a chunk size is too large" },
        { "ffffffffffffffff\r\n", "chunked body: a chunk size is too large" },
        { "fffffffffffffffff", "chunked body: a chunk size is too large" },
        { "1\r\na\r\n7fffffffffffffff\r\n", "chunked body: the chunks are too large together" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t step = 1; step <= strlen(cases[i].text); step++) {
            struct err err = { 0 };
            char out[256];
            bool done;

            CHECK_INT(decode(cases[i].text, strlen(cases[i].text), step, out, &done, &err), -1);
            CHECK_STR(err.msg, cases[i].why);
        }
}

/* What `text` repeated `times` gives, `start` before. */
static long repeat(const char *start, const char *text, size_t times, struct err *err)
{
    size_t len = strlen(start) + times * strlen(text);
    char *all = malloc(len + 1), *out = malloc(len + 1), *at = all;
    bool done;
    long r;

    at = stpcpy(at, start);
    for (size_t i = 0; i < times; i++)
        at = stpcpy(at, text);
    r = decode(all, len, len, out, &done, err);
    free(all);
    free(out);
    return r;
}

static void extensions_and_trailers_are_bounded(void)
{
    struct err err = { 0 };
    char line[300] = "1;";

    CHECK(repeat("5;", "a", CHUNK_EXTENSION_MAX, &err) > 0);
    CHECK_INT(repeat("5;", "a", CHUNK_EXTENSION_MAX + 1, &err), -1);
    CHECK_STR(err.msg, "chunked body: chunk extensions are too long");
    memset(line + 2, 'e', 128);
    (void) strcpy(line + 130, "\r\na\r\n");
    CHECK(repeat("", line, CHUNK_EXTENSIONS_MAX / 128, &err) > 0);
    CHECK_INT(repeat("", line, CHUNK_EXTENSIONS_MAX / 128 + 1, &err), -1);
    CHECK_STR(err.msg, "chunked body: chunk extensions are too long");
    CHECK(repeat("0\r\n", "X: y\r\n", CHUNK_TRAILERS_MAX, &err) > 0);
    CHECK_INT(repeat("0\r\n", "X: y\r\n", CHUNK_TRAILERS_MAX + 1, &err), -1);
    CHECK_STR(err.msg, "chunked body: more than 32 trailers");
    CHECK(repeat("0\r\nX:", "a", CHUNK_TRAILER_MAX - 2, &err) > 0);
    CHECK_INT(repeat("0\r\nX:", "a", CHUNK_TRAILER_MAX - 1, &err), -1);
    CHECK_STR(err.msg, "chunked body: trailers are larger than 8192 bytes");
}

static void a_huge_chunk_is_passed_on_as_it_comes(void)
{
    static const char head[] = "7fffffffffffffff\r\nabc";
    struct chunk chunk = { 0 };
    struct slice data;
    struct err err;
    size_t used;

    CHECK_INT(chunk_read(&chunk, head, sizeof head - 1, &used, &data, &err), 1);
    CHECK(slice_is(data, "abc") && used == sizeof head - 1);
    CHECK(chunk.left == INT64_MAX - 3 && chunk.total == INT64_MAX);
}

static void heads_of_chunks_are_hex(void)
{
    char out[CHUNK_HEAD_MAX + 1] = "";

    out[chunk_head(out, 0x1f)] = '\0';
    CHECK_STR(out, "1f\r\n");
    CHECK_INT(chunk_head(out, UINT64_MAX), CHUNK_HEAD_MAX);
}

CHECK_MAIN(T(bodies_decode_however_they_are_split), T(bad_framing_is_refused_however_it_is_split),
           T(extensions_and_trailers_are_bounded), T(a_huge_chunk_is_passed_on_as_it_comes),
           T(heads_of_chunks_are_hex))
