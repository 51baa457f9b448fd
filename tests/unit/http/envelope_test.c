#include "http/envelope.h"

#include "check.h"

static const char two[] = "\0\0\0\0\2{}\0\0\0\0\0\0\0\0\0\7{\"a\":1}";

/* Joins what comes, with a bar behind every message. */
static int read_all(const char *in, size_t len, size_t step, uint32_t limit, char *out,
                    struct err *err)
{
    struct envelope envelope = { .limit = limit };
    size_t at = 0;

    while (at < len) {
        struct envelope_piece piece;
        size_t used, n = len - at < step ? len - at : step;
        int r = envelope_read(&envelope, in + at, n, &used, &piece, err);

        if (r < 0)
            return -1;
        at += used;
        if (r == 1) {
            memcpy(out, piece.data.at, piece.data.len);
            out += piece.data.len;
            if (piece.last)
                *out++ = '|';
        }
    }
    *out = '\0';
    return envelope_between(&envelope);
}

static void messages_are_read_however_they_are_split(void)
{
    for (size_t step = 1; step < sizeof two; step++) {
        char out[64] = "";
        struct err err;

        CHECK_INT(read_all(two, sizeof two - 1, step, 7, out, &err), 1);
        CHECK_STR(out, "{}||{\"a\":1}|");
    }
}

static void a_body_that_ends_early_is_noticed(void)
{
    for (size_t len = 1; len < sizeof two - 1; len++) {
        char out[64];
        struct err err;

        CHECK_INT(read_all(two, len, 64, 7, out, &err), len == 7 || len == 12);
    }
}

static void what_a_request_cannot_have_is_refused(void)
{
    static const struct {
        const char *in;
        size_t len;
        enum err_kind kind;
    } rows[] = {
        { "\1\0\0\0\2{}", 7, ERR_INVALID }, { "\2\0\0\0\2{}", 7, ERR_INVALID },
        { "\1", 1, ERR_INVALID },           { "\200\0\0\0\2{}", 7, ERR_INVALID },
        { "\0\0\0\0\10", 5, ERR_TOO_BIG },  { "\0\377\377\377\377", 5, ERR_TOO_BIG },
        { "\0\0\0\1\0", 5, ERR_TOO_BIG },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[64];
        struct err err = { 0 };

        CHECK_INT(read_all(rows[i].in, rows[i].len, 64, 7, out, &err), -1);
        CHECK_INT(err.kind, rows[i].kind);
    }
}

static void a_head_is_written_big_endian(void)
{
    char head[ENVELOPE_HEAD];

    envelope_put(head, ENVELOPE_END, 0x01020304);
    CHECK(memcmp(head, "\2\1\2\3\4", ENVELOPE_HEAD) == 0);
}

CHECK_MAIN(T(messages_are_read_however_they_are_split), T(a_body_that_ends_early_is_noticed),
           T(what_a_request_cannot_have_is_refused), T(a_head_is_written_big_endian))
