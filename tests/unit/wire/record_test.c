#include "wire/record.h"

#include "base/own.h"
#include "check.h"

struct thing {
    uint32_t small;
    uint64_t large;
    int64_t sign;
    const char *text;
    struct bytes bytes;
    struct texts list;
    uint32_t untouched;
};

static const struct field fields[] = {
    { 1, "small", FIELD_U32, offsetof(struct thing, small), 100 },
    { 2, "large", FIELD_U64, offsetof(struct thing, large), 0 },
    { 3, "sign", FIELD_I64, offsetof(struct thing, sign), 0 },
    { 4, "text", FIELD_TEXT, offsetof(struct thing, text), 8 },
    { 5, "bytes", FIELD_BYTES, offsetof(struct thing, bytes), 8 },
    { 6, "list", FIELD_LIST, offsetof(struct thing, list), 16 },
};
#define FIELDS fields, ARRAY_LEN(fields)

/* Decodes bytes given as a string literal. */
#define DECODE(thing, literal, err) record_decode(FIELDS, thing, literal, sizeof(literal) - 1, err)

static void what_is_encoded_comes_back(void)
{
    struct thing in = { .small = 7,
                        .large = 1ull << 40,
                        .sign = -5,
                        .text = "hello",
                        .bytes = { "\0\1\2", 3 },
                        .list = { "a\0\0bc", 6, 0 } };
    struct thing out = { .untouched = 99 };
    const char *item;
    uint8_t buf[256];
    struct err err;
    ssize_t n = record_encode(FIELDS, &in, buf, sizeof buf, &err);

    CHECK_INT(n, 6 + 4 + 6 + 8 + 6 + 8 + 6 + 6 + 6 + 3 + 6 + 6);
    CHECK_INT(record_decode(FIELDS, &out, buf, (size_t) n, &err), 0);
    CHECK_INT(out.small, 7);
    CHECK(out.large == 1ull << 40);
    CHECK_INT(out.sign, -5);
    CHECK_STR(out.text, "hello");
    CHECK(out.bytes.len == 3 && memcmp(out.bytes.data, "\0\1\2", 3) == 0);
    CHECK_INT(out.list.count, 3);
    item = texts_next(&out.list, NULL);
    CHECK_STR(item, "a");
    item = texts_next(&out.list, item);
    CHECK_STR(item, "");
    item = texts_next(&out.list, item);
    CHECK_STR(item, "bc");
    CHECK(texts_next(&out.list, item) == NULL);
    CHECK_INT(out.untouched, 99);
}

static void nothing_is_no_bytes_and_decodes_to_nothing(void)
{
    struct thing in = { 0 }, out = { .small = 9, .text = "old", .list = { "x", 2, 1 } };
    uint8_t buf[16];
    struct err err;

    CHECK_INT(record_encode(FIELDS, &in, buf, sizeof buf, &err), 0);
    CHECK_INT(record_decode(FIELDS, &out, buf, 0, &err), 0);
    CHECK(out.small == 0 && out.text == NULL && out.list.len == 0);
    CHECK(texts_next(&out.list, NULL) == NULL);
}

static void fields_may_come_in_any_order(void)
{
    struct thing out;
    struct err err;

    CHECK_INT(DECODE(&out, "\4\0\3\0\0\0hi\0\1\0\4\0\0\0\5\0\0\0", &err), 0);
    CHECK_STR(out.text, "hi");
    CHECK_INT(out.small, 5);
}

static void too_little_room_is_refused_by_name_at_every_size(void)
{
    struct thing in = { .small = 7, .text = "hello" };
    uint8_t buf[32];
    struct err err;

    for (size_t size = 0; size < 22; size++) {
        memset(buf, '#', sizeof buf);
        CHECK_INT(record_encode(FIELDS, &in, buf, size, &err), -1);
        CHECK_INT(err.kind, ERR_TOO_BIG);
        CHECK_STR(err.msg, size < 10 ? "small: too long" : "text: too long");
        CHECK(buf[size] == '#');
    }
    CHECK_INT(record_encode(FIELDS, &in, buf, 22, &err), 22);
}

static void a_text_over_its_limit_is_not_encoded(void)
{
    struct thing in = { .text = "12345678" };
    uint8_t buf[64];
    struct err err;

    CHECK_INT(record_encode(FIELDS, &in, buf, sizeof buf, &err), -1);
    CHECK_STR(err.msg, "text: too long");
}

static void malformed_records_are_refused_each_in_its_words(void)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum err_kind kind;
        const char *refusal;
    } cases[] = {
#define CASE(literal, kind, refusal) { literal, sizeof(literal) - 1, kind, refusal }
        CASE("\1", ERR_PROTOCOL, "a field is cut off"),
        CASE("\1\0\4\0\0", ERR_PROTOCOL, "a field is cut off"),
        CASE("\1\0\4\0\0\0\5\0\0", ERR_PROTOCOL, "field 1 is cut off"),
        CASE("\4\0\xff\xff\xff\xffx", ERR_PROTOCOL, "field 4 is cut off"),
        CASE("\0\0\0\0\0\0", ERR_PROTOCOL, "unknown field 0"),
        CASE("\x63\0\0\0\0\0", ERR_PROTOCOL, "unknown field 99"),
        CASE("\1\0\4\0\0\0\5\0\0\0\1\0\4\0\0\0\5\0\0\0", ERR_PROTOCOL, "small: given twice"),
        CASE("\1\0\3\0\0\0\5\0\0", ERR_PROTOCOL, "small: not a number"),
        CASE("\1\0\0\0\0\0", ERR_PROTOCOL, "small: not a number"),
        CASE("\1\0\4\0\0\0\x65\0\0\0", ERR_INVALID, "small: 101 is over 100"),
        CASE("\2\0\4\0\0\0\5\0\0\0", ERR_PROTOCOL, "large: not a number"),
        CASE("\3\0\7\0\0\0\5\0\0\0\0\0\0", ERR_PROTOCOL, "sign: not a number"),
        CASE("\4\0\0\0\0\0", ERR_PROTOCOL, "text: not one text"),
        CASE("\4\0\2\0\0\0hi", ERR_PROTOCOL, "text: not one text"),
        CASE("\4\0\4\0\0\0h\0i\0", ERR_PROTOCOL, "text: not one text"),
        CASE("\4\0\11\0\0\0"
             "12345678\0",
             ERR_TOO_BIG, "text: longer than 8 bytes"),
        CASE("\5\0\11\0\0\0"
             "123456789",
             ERR_TOO_BIG, "bytes: longer than 8 bytes"),
        CASE("\6\0\0\0\0\0", ERR_PROTOCOL, "list: not a list of texts"),
        CASE("\6\0\3\0\0\0a\0b", ERR_PROTOCOL, "list: not a list of texts"),
        CASE("\6\0\x11\0\0\0"
             "1234567890123456\0",
             ERR_TOO_BIG, "list: longer than 16 bytes"),
        CASE("\1\0\4\0\0\0\5\0\0\0\0", ERR_PROTOCOL, "a field is cut off"),
#undef CASE
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct thing out;
        struct err err = { 0 };

        CHECK_INT(record_decode(FIELDS, &out, cases[i].bytes, cases[i].len, &err), -1);
        CHECK_STR(err.msg, cases[i].refusal);
        CHECK_INT(err.kind, cases[i].kind);
    }
}

static void every_cut_of_a_good_record_is_refused_or_shorter(void)
{
    struct thing in = { .small = 7, .large = 9, .text = "hello", .list = { "a\0b", 4, 0 } }, out;
    uint8_t buf[256];
    struct err err;
    ssize_t n = record_encode(FIELDS, &in, buf, sizeof buf, &err);

    for (ssize_t len = 0; len < n; len++) {
        /* A copy of that very size, so that a sanitizer sees one byte too many. */
        auto_free uint8_t *cut = malloc((size_t) len + 1);
        int r;

        memcpy(cut, buf, (size_t) len);
        r = record_decode(FIELDS, &out, cut, (size_t) len, &err);
        CHECK(r == -1 || out.list.len == 0);
    }
}

CHECK_MAIN(T(what_is_encoded_comes_back), T(nothing_is_no_bytes_and_decodes_to_nothing),
           T(fields_may_come_in_any_order), T(too_little_room_is_refused_by_name_at_every_size),
           T(a_text_over_its_limit_is_not_encoded),
           T(malformed_records_are_refused_each_in_its_words),
           T(every_cut_of_a_good_record_is_refused_or_shorter))
