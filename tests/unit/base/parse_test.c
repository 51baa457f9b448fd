#include "base/parse.h"

#include "check.h"

/* One row per text: the value, or the kind and wording of the refusal. */
struct number_case {
    const char *text;
    uint64_t value;
    const char *refusal; /* NULL: accepted */
};

#define SIZE  "a size (such as 512m or 1.5g)"
#define TIME  "a duration (such as 500ms, 60s or 5m)"
#define CORES "a number of cores (such as 2 or 0.5)"

static void check_case(const struct number_case *c, int r, uint64_t value, const struct err *err,
                       uint32_t kind)
{
    if (c->refusal) {
        CHECK_INT(r, -1);
        CHECK_STR(err->msg, c->refusal);
        CHECK_INT(err->kind, kind);
        CHECK_INT(value, 4711); /* untouched */
    } else {
        CHECK_INT(r, 0);
        CHECK_INT(value, c->value);
    }
}

static void numbers_are_decimal_digits_and_nothing_else(void)
{
    static const struct number_case cases[] = {
        { "0", 0, NULL },
        { "007", 7, NULL },
        { "18446744073709551615", UINT64_MAX, NULL },
        { "", 0, "'' is not a number" },
        { " 5", 0, "' 5' is not a number" },
        { "5 ", 0, "'5 ' is not a number" },
        { "5x", 0, "'5x' is not a number" },
        { "-0", 0, "'-0' is not a number" },
        { "+1", 0, "'+1' is not a number" },
        { "0x10", 0, "'0x10' is not a number" },
        { "1e3", 0, "'1e3' is not a number" },
        { "18446744073709551616", 0, "'18446744073709551616' is too large" },
        { "99999999999999999999", 0, "'99999999999999999999' is too large" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 4711;
        struct err err;
        int r = parse_u64(cases[i].text, &value, &err);

        check_case(&cases[i], r, value, &err, ERR_INVALID);
    }
}

static void sizes_take_units_of_1024(void)
{
    static const struct number_case cases[] = {
        { "0", 0, NULL },
        { "4096", 4096, NULL },
        { "64k", 65536, NULL },
        { "64K", 65536, NULL },
        { "1KiB", 1024, NULL },
        { "1kb", 1024, NULL },
        { "512m", 512ull << 20, NULL },
        { "512MiB", 512ull << 20, NULL },
        { "1.5g", 3ull << 29, NULL },
        { "2t", 2ull << 40, NULL },
        { "7b", 7, NULL },
        { "0.000001g", 1073, NULL }, /* cut to whole bytes */
        { "0.5", 0, NULL },
        { "16777215t", 16777215ull << 40, NULL },
        { "", 0, "'' is not " SIZE },
        { "m", 0, "'m' is not " SIZE },
        { ".5g", 0, "'.5g' is not " SIZE },
        { "1.g", 0, "'1.g' is not " SIZE },
        { "1..5g", 0, "'1..5g' is not " SIZE },
        { "1.5.5g", 0, "'1.5.5g' is not " SIZE },
        { "-1", 0, "'-1' is not " SIZE },
        { "+1k", 0, "'+1k' is not " SIZE },
        { " 1k", 0, "' 1k' is not " SIZE },
        { "1 k", 0, "'1 k' is not " SIZE },
        { "1k ", 0, "'1k ' is not " SIZE },
        { "1kk", 0, "'1kk' is not " SIZE },
        { "1p", 0, "'1p' is not " SIZE },
        { "12three", 0, "'12three' is not " SIZE },
        { "1,5g", 0, "'1,5g' is not " SIZE },
        { "1.1234567g", 0, "'1.1234567g' has too many decimals" },
        { "16777216t", 0, "'16777216t' is too large for " SIZE },
        { "18446744073709551616", 0, "'18446744073709551616' is too large for " SIZE },
        { "18446744073709551615k", 0, "'18446744073709551615k' is too large for " SIZE },
        { "18014398509481983.999999k", (18014398509481983ull << 10) + 1023, NULL },
        { "18446744073709551615.9k", 0, "'18446744073709551615.9k' is too large for " SIZE },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 4711;
        struct err err;
        int r = parse_size(cases[i].text, &value, &err);

        check_case(&cases[i], r, value, &err, ERR_LIMIT);
    }
}

static void durations_are_seconds_unless_they_say_otherwise(void)
{
    static const struct number_case cases[] = {
        { "0", 0, NULL },
        { "60", 60000, NULL },
        { "60s", 60000, NULL },
        { "500ms", 500, NULL },
        { "1.5s", 1500, NULL },
        { "0.0015s", 1, NULL },
        { "5m", 300000, NULL },
        { "2h", 7200000, NULL },
        { "1d", 86400000, NULL },
        { "1D", 86400000, NULL },
        { "", 0, "'' is not " TIME },
        { "s", 0, "'s' is not " TIME },
        { "1w", 0, "'1w' is not " TIME },
        { "1min", 0, "'1min' is not " TIME },
        { "1m30s", 0, "'1m30s' is not " TIME },
        { "-5s", 0, "'-5s' is not " TIME },
        { "inf", 0, "'inf' is not " TIME },
        { "213503982335d", 0, "'213503982335d' is too large for " TIME },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 4711;
        struct err err;
        int r = parse_duration_ms(cases[i].text, &value, &err);

        check_case(&cases[i], r, value, &err, ERR_LIMIT);
    }
}

static void cores_are_thousandths_and_not_finer(void)
{
    static const struct number_case cases[] = {
        { "2", 2000, NULL },
        { "0.5", 500, NULL },
        { "1.25", 1250, NULL },
        { "0.001", 1, NULL },
        { "0", 0, NULL },
        { "1.5000", 1500, NULL },
        { "0.0001", 0, "'0.0001' is finer than " CORES " can be" },
        { "1.0005", 0, "'1.0005' is finer than " CORES " can be" },
        { "", 0, "'' is not " CORES },
        { "two", 0, "'two' is not " CORES },
        { "1c", 0, "'1c' is not " CORES },
        { "1m", 0, "'1m' is not " CORES },
        { "4294968", 0, "'4294968' is too large for a number of cores" },
        { "18446744073709552", 0, "'18446744073709552' is too large for " CORES },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t milli = 4711;
        struct err err;
        int r = parse_cpus_milli(cases[i].text, &milli, &err);

        check_case(&cases[i], r, milli, &err, ERR_LIMIT);
    }
}

static void file_modes_are_octal(void)
{
    static const struct number_case cases[] = {
        { "644", 0644, NULL },
        { "0755", 0755, NULL },
        { "07777", 07777, NULL },
        { "0", 0, NULL },
        { "", 0, "'' is not a file mode (such as 644)" },
        { "8", 0, "'8' is not a file mode (such as 644)" },
        { "u+x", 0, "'u+x' is not a file mode (such as 644)" },
        { "17777", 0, "'17777' is not a file mode (such as 644)" },
        { "000644", 0, "'000644' is not a file mode (such as 644)" },
        { "-644", 0, "'-644' is not a file mode (such as 644)" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t mode = 4711;
        struct err err;
        int r = parse_mode(cases[i].text, &mode, &err);

        check_case(&cases[i], r, mode, &err, ERR_INVALID);
    }
}

static void a_long_text_is_cut_in_its_refusal(void)
{
    char text[300];
    uint64_t value;
    struct err err;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_INT(parse_size(text, &value, &err), -1);
    CHECK_STR(err.msg, "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' is not " SIZE);
}

static void names_are_short_lower_case_words(void)
{
    static const char *const good[] = {
        "a",       "0",    "box-1",
        "a.b_c-d", "base", "a23456789012345678901234567890123456789012345678901234567890123"
    };
    static const char *const bad[] = {
        "",
        "-a",
        "a-",
        ".a",
        "a.",
        "_a",
        "A",
        "a b",
        "a/b",
        "..",
        "a\n",
        "\xc3\xa9",
        "a23456789012345678901234567890123456789012345678901234567890123x"
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CHECK(name_ok(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!name_ok(bad[i]));
}

static void ids_are_i_and_twenty_characters(void)
{
    CHECK(id_ok("i01234567890123456789"));
    CHECK(id_ok("iabcdefghijklmnopqrst"));
    CHECK(!id_ok("i0123456789012345678"));
    CHECK(!id_ok("i012345678901234567890"));
    CHECK(!id_ok("x01234567890123456789"));
    CHECK(!id_ok("i0123456789012345678A"));
    CHECK(!id_ok("i0123456789-123456789"));
    CHECK(!id_ok(""));
}

CHECK_MAIN(T(numbers_are_decimal_digits_and_nothing_else), T(sizes_take_units_of_1024),
           T(durations_are_seconds_unless_they_say_otherwise),
           T(cores_are_thousandths_and_not_finer), T(file_modes_are_octal),
           T(a_long_text_is_cut_in_its_refusal), T(names_are_short_lower_case_words),
           T(ids_are_i_and_twenty_characters))
