#include "base/utf8.h"
#include "http/url.h"
#include "http/value.h"

#include "check.h"

static void percent_signs_decode_or_are_refused(void)
{
    static const struct {
        const char *in, *out, *why;
        unsigned flags;
    } cases[] = {
        { "", "", NULL, 0 },
        { "a%20b", "a b", NULL, 0 },
        { "%2F%2f%C3%A9", "//\xc3\xa9", NULL, URL_UTF8 },
        { "a+b%2B", "a+b+", NULL, 0 },
        { "a+b%2B", "a b+", NULL, URL_PLUS },
        { "%ff", "\xff", NULL, 0 },
        { "%2541", "%41", NULL, 0 }, /* once, not twice */
        { "%", NULL, "a percent sign without two hex digits", 0 },
        { "a%4", NULL, "a percent sign without two hex digits", 0 },
        { "%4g", NULL, "a percent sign without two hex digits", 0 },
        { "%%20", NULL, "a percent sign without two hex digits", 0 },
        { "%u0041", NULL, "a percent sign without two hex digits", 0 },
        { "%00", NULL, "a NUL byte is not allowed", 0 },
        { "%ff", NULL, "it is not UTF-8", URL_UTF8 },
        { "%c0%af", NULL, "it is not UTF-8", URL_UTF8 }, /* an overlong slash */
        { "%ed%a0%80", NULL, "it is not UTF-8", URL_UTF8 },
        { "%c3", NULL, "it is not UTF-8", URL_UTF8 },
        { "0123456789abcdef", NULL, "it is longer than 15 bytes", 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = { 0 };
        char out[16] = "?";
        ssize_t n = url_decode(slice_of(cases[i].in), cases[i].flags, out, sizeof out, &err);

        if (cases[i].out) {
            CHECK_INT(n, strlen(cases[i].out));
            CHECK_STR(out, cases[i].out);
        } else {
            CHECK_INT(n, -1);
            CHECK_STR(err.msg, cases[i].why);
        }
    }
}

static void a_raw_nul_is_refused_too(void)
{
    struct err err = { 0 };
    char out[16];

    CHECK_INT(url_decode((struct slice){ "a\0b", 3 }, 0, out, sizeof out, &err), -1);
    CHECK_STR(err.msg, "a NUL byte is not allowed");
}

static void queries_give_their_pairs_in_order(void)
{
    static const char *const want[][2] = {
        { "a", "1" }, { "b", "" }, { "c", NULL }, { "", "x" }, { "d", "2=3" }, { "a", "4" },
    };
    struct url_query query = url_query(slice_of("a=1&&b=&c&=x&d=2=3&a=4&"));
    struct url_pair pair;
    struct err err;
    size_t n = 0;

    while (url_query_next(&query, &pair, &err) == 1) {
        CHECK(n < 6 && slice_is(pair.key, want[n][0]));
        CHECK(want[n][1] ? slice_is(pair.value, want[n][1]) : !pair.value.at);
        n++;
    }
    CHECK_INT(n, 6);
    query = url_query((struct slice){ 0 });
    CHECK_INT(url_query_next(&query, &pair, &err), 0);
}

static void a_parameter_is_found_by_its_decoded_key(void)
{
    struct slice query =
        slice_of("path=%2Fhome%2Fuser&us%65r=a+b&x&bad=%zz&two=1&two=2&long=123456789");
    struct err err = { 0 };
    char out[16];

    CHECK_INT(url_query_get(query, "path", out, sizeof out, &err), 1);
    CHECK_STR(out, "/home/user");
    CHECK_INT(url_query_get(query, "user", out, sizeof out, &err), 1);
    CHECK_STR(out, "a b");
    CHECK_INT(url_query_get(query, "x", out, sizeof out, &err), 1);
    CHECK_STR(out, "");
    CHECK_INT(url_query_get(query, "pat", out, sizeof out, &err), 0);
    CHECK_STR(out, "");
    CHECK_INT(url_query_get(query, "bad", out, sizeof out, &err), -1);
    CHECK_STR(err.msg, "query parameter 'bad': a percent sign without two hex digits");
    CHECK_INT(url_query_get(query, "two", out, sizeof out, &err), -1);
    CHECK_STR(err.msg, "query parameter 'two' is given twice");
    CHECK_INT(url_query_get(query, "long", out, 8, &err), -1);
    CHECK_STR(err.msg, "query parameter 'long': it is longer than 7 bytes");
    CHECK_INT(err.kind, ERR_TOO_BIG);
}

static void a_query_has_so_many_parameters_and_no_more(void)
{
    char text[2 * (URL_PAIRS_MAX + 1) + 1] = "";
    struct err err = { 0 };
    char out[8];

    for (unsigned i = 0; i <= URL_PAIRS_MAX; i++)
        (void) strcpy(text + 2 * i, "a&");
    CHECK_INT(url_query_get(slice_of(text), "b", out, sizeof out, &err), -1);
    CHECK_STR(err.msg, "the query has more than 256 parameters");
    CHECK_INT(url_query_get(slice_of(text + 2), "b", out, sizeof out, &err), 0);
}

static void paths_are_split_and_not_resolved(void)
{
    enum { DOTS = 1, EMPTY = 2, SLASH = 4, HIDDEN = 8 };
    static const struct {
        const char *path;
        unsigned count, flags;
        const char *last;
    } cases[] = {
        { "/", 0, 0, NULL },
        { "/a", 1, 0, "a" },
        { "/a/b%20c", 2, 0, "b%20c" },
        { "/a/", 1, SLASH, "a" },
        { "//", 1, EMPTY | SLASH, "" },
        { "//a", 2, EMPTY, "a" },
        { "/a//b", 3, EMPTY, "b" },
        { "/a/../b", 3, DOTS, "b" },
        { "/.", 1, DOTS, "." },
        { "/%2e%2E/x", 2, DOTS, "x" },
        { "/.%2e", 1, DOTS, ".%2e" },
        { "/...", 1, 0, "..." },
        { "/.a", 1, 0, ".a" },
        { "/a%2fb", 1, HIDDEN, "a%2fb" },
        { "/a%5Cb", 1, HIDDEN, "a%5Cb" },
        { "/..%2f..", 1, HIDDEN, "..%2f.." },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct url_path path;
        struct err err;

        CHECK_INT(url_path_split(slice_of(cases[i].path), &path, &err), 0);
        CHECK_INT(path.count, cases[i].count);
        CHECK_INT(path.dots * DOTS + path.empty * EMPTY + path.slash * SLASH + path.hidden * HIDDEN,
                  cases[i].flags);
        CHECK(!cases[i].last || slice_is(path.segments[path.count - 1], cases[i].last));
    }
}

static void bad_paths_are_refused(void)
{
    struct url_path path;
    struct err err = { 0 };
    char deep[2 * URL_SEGMENTS_MAX + 3];

    CHECK_INT(url_path_split(slice_of(""), &path, &err), -1);
    CHECK_INT(url_path_split(slice_of("a"), &path, &err), -1);
    CHECK_STR(err.msg, "path: it does not begin with a slash");
    CHECK_INT(url_path_split(slice_of("/a/%0"), &path, &err), -1);
    CHECK_STR(err.msg, "path: a percent sign without two hex digits");
    CHECK_INT(url_path_split(slice_of("/%00"), &path, &err), -1);
    CHECK_STR(err.msg, "path: a NUL byte is not allowed");
    for (unsigned i = 0; i <= URL_SEGMENTS_MAX; i++)
        (void) strcpy(deep + 2 * i, "/a");
    CHECK_INT(url_path_split(slice_of(deep), &path, &err), -1);
    CHECK_STR(err.msg, "path: more than 64 segments");
    CHECK_INT(url_path_split(slice_of(deep + 2), &path, &err), 0);
}

static void what_is_encoded_decodes_to_itself(void)
{
    char all[255], encoded[800], back[256];
    struct err err;
    size_t n;

    for (unsigned i = 1; i < 256; i++)
        all[i - 1] = (char) i;
    n = url_encode((struct slice){ all, 255 }, encoded, sizeof encoded);
    CHECK_INT(n, 66 + 3 * (255 - 66));
    CHECK_INT(url_decode((struct slice){ encoded, n }, URL_PLUS, back, sizeof back, &err), 255);
    CHECK(memcmp(all, back, 255) == 0);
    CHECK_INT(url_encode(slice_of("a b"), NULL, 0), 5);
}

static void lists_are_split_outside_of_quotes(void)
{
    struct slice rest = slice_of(" a ,, \"b,\\\"c\" , d;e=\"f,g\","), item;
    static const char *const want[] = { "a", "\"b,\\\"c\"", "d;e=\"f,g\"" };
    size_t n = 0;

    while (value_list_next(&rest, &item)) {
        CHECK(n < 3 && slice_is(item, want[n]));
        n++;
    }
    CHECK_INT(n, 3);
    CHECK(value_list_has(slice_of("x, CLOSE"), "close") && !value_list_has(slice_of(""), "close"));
}

static void parameters_are_unquoted(void)
{
    struct slice value = slice_of(
        "text/plain; charset=utf-8; a=\"x\\\"\\\\y\\z;\"; twice=1;TWICE=2; bad=\"x; e=\"\"");
    char out[16];
    bool found;

    CHECK(slice_is(value_main(value), "text/plain"));
    CHECK_INT(value_param(value, "Charset", out, sizeof out, &found), 5);
    CHECK_STR(out, "utf-8");
    CHECK_INT(value_param(value, "a", out, sizeof out, &found), 7);
    CHECK_STR(out, "x\"\\y\\z;");
    CHECK_INT(value_param(value, "a", out, 7, &found), -1);
    CHECK(found);
    CHECK_INT(value_param(value, "twice", out, sizeof out, &found), -1);
    CHECK(found);
    CHECK_INT(value_param(value, "none", out, sizeof out, &found), -1);
    CHECK(!found);
    CHECK_INT(value_param(slice_of("a; b="), "b", out, sizeof out, &found), -1);
    CHECK(found);
}

static void utf8_is_judged_byte_by_byte(void)
{
    static const struct {
        const char *text;
        bool ok;
    } cases[] = {
        { "", true },
        { "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x8e\x89", true },
        { "\x7f", true },
        { "\xf4\x8f\xbf\xbf", true },
        { "\xed\x9f\xbf", true },
        { "\x80", false },
        { "\xc0\x80", false },
        { "\xc1\xbf", false },
        { "\xe0\x9f\xbf", false },
        { "\xed\xa0\x80", false },
        { "\xf0\x8f\xbf\xbf", false },
        { "\xf4\x90\x80\x80", false },
        { "\xf5\x80\x80\x80", false },
        { "\xff", false },
        { "\xc3", false },
        { "\xe2\x82", false },
        { "\xc3"
          "a",
          false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct utf8 utf8 = { 0 };
        bool ok = true;

        for (const char *c = cases[i].text; *c && ok; c++)
            ok = utf8_feed(&utf8, c, 1);
        CHECK_INT(ok && utf8_whole(&utf8), cases[i].ok);
        CHECK_INT(utf8_ok(cases[i].text, strlen(cases[i].text)), cases[i].ok);
    }
    CHECK_INT(utf8_first("\xe2\x82\xac!", 4), 3);
    CHECK_INT(utf8_first("\xe2\x82", 2), -1);
    CHECK_INT(utf8_first("\x82", 1), 0);
}

CHECK_MAIN(T(percent_signs_decode_or_are_refused), T(a_raw_nul_is_refused_too),
           T(queries_give_their_pairs_in_order), T(a_parameter_is_found_by_its_decoded_key),
           T(a_query_has_so_many_parameters_and_no_more), T(paths_are_split_and_not_resolved),
           T(bad_paths_are_refused), T(what_is_encoded_decodes_to_itself),
           T(lists_are_split_outside_of_quotes), T(parameters_are_unquoted),
           T(utf8_is_judged_byte_by_byte))
