#include "wire/frame.h"

#include "check.h"

static void every_type_has_a_name_and_a_limit(void)
{
    static const uint8_t types[] = { 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22 };

    for (size_t i = 0; i < sizeof types; i++) {
        CHECK(frame_limit(types[i]) >= 0);
        CHECK(strcmp(frame_name(types[i]), "unknown") != 0);
    }
    for (uint32_t type = 8; type < 16; type++)
        CHECK_INT(frame_limit(type), -1);
    CHECK_INT(frame_limit(0), -1);
    CHECK_INT(frame_limit(FRAME_TYPE_COUNT), -1);
    CHECK_INT(frame_limit(UINT32_MAX), -1);
    CHECK_STR(frame_name(UINT32_MAX), "unknown");
}

static void a_head_comes_back(void)
{
    uint8_t head[FRAME_HEAD];
    struct frame_head got;
    struct err err;

    frame_head_put(head, FRAME_STDOUT, 0x10008);
    CHECK(memcmp(head, "\x08\0\1\0\x12\0\0\0", 8) == 0);
    CHECK_INT(frame_head_get(head, &got, &err), 0);
    CHECK_INT(got.type, FRAME_STDOUT);
    CHECK_INT(got.len, 0x10008);
}

static void bad_heads_are_refused_each_in_its_words(void)
{
    static const struct {
        const char *bytes, *refusal;
        enum err_kind kind;
    } cases[] = {
        { "\0\0\0\0\0\0\0\0", "unknown frame type 0", ERR_PROTOCOL },
        { "\0\0\0\0\xff\0\0\0", "unknown frame type 255", ERR_PROTOCOL },
        { "\0\0\0\0\x09\0\0\0", "unknown frame type 9", ERR_PROTOCOL },
        { "\0\0\0\0\6\1\0\0", "frame 'data': spare bytes set", ERR_PROTOCOL },
        { "\0\0\0\0\6\0\1\0", "frame 'data': spare bytes set", ERR_PROTOCOL },
        { "\0\0\0\0\6\0\0\x80", "frame 'data': spare bytes set", ERR_PROTOCOL },
        { "\1\0\1\0\6\0\0\0", "frame 'data': 65537 bytes, at most 65536", ERR_TOO_BIG },
        { "\1\0\0\0\7\0\0\0", "frame 'data-end': 1 bytes, at most 0", ERR_TOO_BIG },
        { "\xff\xff\xff\xff\1\0\0\0", "frame 'request': 4294967295 bytes, at most 1048576",
          ERR_TOO_BIG },
        { "\5\0\0\0\4\0\0\0", "frame 'resize': 5 bytes, at most 4", ERR_TOO_BIG },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct frame_head got = { .len = 4711 };
        struct err err;

        CHECK_INT(frame_head_get((const uint8_t *) cases[i].bytes, &got, &err), -1);
        CHECK_STR(err.msg, cases[i].refusal);
        CHECK_INT(err.kind, cases[i].kind);
        CHECK_INT(got.len, 4711);
    }
}

static void numbers_are_little_endian(void)
{
    uint8_t bytes[8];

    frame_put_u64(bytes, 0x0102030405060708ull);
    CHECK(memcmp(bytes, "\x08\x07\x06\x05\x04\x03\x02\x01", 8) == 0);
    CHECK(frame_get_u64(bytes) == 0x0102030405060708ull);
    CHECK(frame_get_u32(bytes) == 0x05060708u);
    CHECK(frame_get_u16(bytes) == 0x0708u);
}

CHECK_MAIN(T(every_type_has_a_name_and_a_limit), T(a_head_comes_back),
           T(bad_heads_are_refused_each_in_its_words), T(numbers_are_little_endian))
