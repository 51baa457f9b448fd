#include "surface/e2b/control.h"

#include "check.h"

#include <string.h>

/* ---- metadata ---- */

static int read_metadata(const char *text, char buffer[256], struct ops_filter *filter)
{
    struct err err;

    *filter = (struct ops_filter){ .limit = 1 };
    (void) snprintf(buffer, 256, "%s", text);
    return control_metadata(buffer, filter, &err);
}

static void metadata_is_decoded_twice_more(void)
{
    struct ops_filter filter;
    char buffer[256];

    /* {a: "b c&"}, as it is when the query was decoded */
    CHECK_INT(read_metadata("a=b%2520c%2526", buffer, &filter), 0);
    CHECK_INT(filter.meta_count, 1);
    CHECK_STR(filter.meta_keys[0], "a");
    CHECK_STR(filter.meta_values[0], "b c&");
    /* {"k=": "1", "é": ""} */
    CHECK_INT(read_metadata("k%253D=1&%25C3%25A9=", buffer, &filter), 0);
    CHECK_INT(filter.meta_count, 2);
    CHECK_STR(filter.meta_keys[0], "k=");
    CHECK_STR(filter.meta_values[0], "1");
    CHECK_STR(filter.meta_keys[1], "\xc3\xa9");
    CHECK_STR(filter.meta_values[1], "");
    CHECK_INT(read_metadata("", buffer, &filter), 0);
    CHECK_INT(filter.meta_count, 0);
}

static void metadata_that_makes_no_pairs_is_refused(void)
{
    static const char *const rows[] = { "a",       "a=b=c",   "=b",      "a=%",  "a=%25",
                                        "a=%25zz", "a=%2500", "a=%25ff", "a=b&c" };
    struct ops_filter filter;
    char buffer[256];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_INT(read_metadata(rows[i], buffer, &filter), -1);
}

static void metadata_has_so_many_pairs_at_most(void)
{
    struct ops_filter filter;
    char text[256] = "", buffer[256];

    for (int i = 0; i < OPS_FILTER_META; i++)
        (void) strcat(text, "k=v&");
    CHECK_INT(read_metadata(text, buffer, &filter), 0);
    (void) strcat(text, "k=v");
    CHECK_INT(read_metadata(text, buffer, &filter), -1);
}

/* ---- tokens ---- */

static void a_token_comes_back(void)
{
    char token[CONTROL_TOKEN_MAX];
    uint64_t cursor = 0;
    struct err err;

    control_token_put(UINT64_MAX, false, token);
    CHECK_INT(control_token_get(token, false, &cursor, &err), 0);
    CHECK(cursor == UINT64_MAX);
    CHECK_INT(control_token_get(token, true, &cursor, &err), -1); /* of another order */
    control_token_put(7, true, token);
    CHECK_INT(control_token_get(token, true, &cursor, &err), 0);
    CHECK(cursor == 7);
}

static void what_is_no_token_is_refused(void)
{
    static const char *const rows[] = { "",        "desc-",   "desc-0",
                                        "desc--1", "desc-1x", "desc- 1",
                                        "1",       "DESC-1",  "desc-99999999999999999999" };
    uint64_t cursor;
    struct err err;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_INT(control_token_get(rows[i], false, &cursor, &err), -1);
        CHECK_STR(err.msg, "Invalid next token");
    }
}

/* ---- templates ---- */

static void templates_have_many_names(void)
{
    static const char *const rows[][2] = {
        { "base", "base" },
        { " Base\t", "base" },
        { "base:default", "base" },
        { "my-team/base", "base" },
        { "my-team/Code-Interpreter-v1:DEFAULT", "code-interpreter-v1" },
        { "a_b.c", "a_b.c" },
    };
    char name[KEEPER_NAME_MAX];
    struct err err;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_INT(control_template_name(rows[i][0], name, &err), 0);
        CHECK_STR(name, rows[i][1]);
    }
}

static void templates_that_cannot_be_are_refused(void)
{
    static const struct {
        const char *text;
        enum err_kind kind;
    } rows[] = {
        { "base:v2", ERR_NO_TEMPLATE },
        { "", ERR_INVALID },
        { ":default", ERR_INVALID },
        { "base:", ERR_INVALID },
        { "base:a:b", ERR_INVALID },
        { "team/", ERR_INVALID },
        { "/base", ERR_INVALID },
        { "../base", ERR_INVALID },
        { "a/b/base", ERR_INVALID },
        { "ba se", ERR_INVALID },
        { "b\xc3\xa9", ERR_INVALID },
        { "0123456789012345678901234567890123456789012345678901234567890123", ERR_NO_TEMPLATE },
    };
    char name[KEEPER_NAME_MAX];
    struct err err;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_INT(control_template_name(rows[i].text, name, &err), -1);
        CHECK_INT(err.kind, rows[i].kind);
    }
    {
        struct ops_template_ref ref;

        CHECK_INT(control_template_ref("Team/My-Env:V2", &ref, &err), 0);
        CHECK_STR(ref.name, "my-env");
        CHECK_STR(ref.tag, "v2");
        CHECK_INT(control_template_ref("x", &ref, &err), 0);
        CHECK_STR(ref.tag, "default");
        CHECK_INT(control_template_ref("x:", &ref, &err), -1);
    }
    CHECK(control_template_standard("base"));
    CHECK(!control_template_standard("bas"));
}

/* ---- times ---- */

static void times_are_read_as_rfc_3339_has_them(void)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        { "1970-01-01T00:00:01Z", 1000 },
        { "1970-01-01T00:00:01.5Z", 1500 },
        { "1970-01-01T00:00:01.123456789Z", 1123 },
        { "1970-01-01T01:00:01+01:00", 1000 },
        { "1969-12-31T19:00:01.250-05:00", 1250 },
        { "2026-08-01T12:00:00Z", 1785585600000 },
        { "1960-01-01T00:00:00Z", 0 },
        { "2026-08-01T12:00:00", -1 },
        { "2026-08-01", -1 },
        { "2026-13-01T12:00:00Z", -1 },
        { "2026-08-01T12:00:00.Z", -1 },
        { "2026-08-01T12:00:00Zx", -1 },
        { "2026-08-01T12:00:00+1:00", -1 },
        { "2026-08-01T12:00:00+01:00x", -1 },
        { "now", -1 },
        { "", -1 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_INT(control_time_parse(rows[i].text), rows[i].ms);
}

CHECK_MAIN(T(metadata_is_decoded_twice_more), T(metadata_that_makes_no_pairs_is_refused),
           T(metadata_has_so_many_pairs_at_most), T(a_token_comes_back),
           T(what_is_no_token_is_refused), T(templates_have_many_names),
           T(templates_that_cannot_be_are_refused), T(times_are_read_as_rfc_3339_has_them))
