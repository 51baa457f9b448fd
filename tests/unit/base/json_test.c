#include "base/json.h"

#include "check.h"

static char *written;
static size_t written_len;

static void begin(struct json_out *json)
{
    free(written);
    written = NULL;
    json_out_init(json, open_memstream(&written, &written_len));
}

static int end(struct json_out *json)
{
    int r = json_out_finish(json);

    (void) fclose(json->out);
    return r;
}

static void objects_and_arrays_nest_with_commas_where_they_belong(void)
{
    struct json_out json;

    begin(&json);
    json_out_object(&json, NULL);
    json_out_number(&json, "a", UINT64_MAX);
    json_out_array(&json, "b");
    json_out_bool(&json, NULL, true);
    json_out_signed(&json, NULL, -1);
    json_out_object(&json, NULL);
    json_out_end(&json);
    json_out_end(&json);
    json_out_text(&json, "c", NULL);
    json_out_end(&json);
    CHECK(end(&json) == 0);
    CHECK_STR(written,
              "{\n  \"a\": 18446744073709551615,\n  \"b\": [\n    true,\n    -1,\n    {}\n  ],\n"
              "  \"c\": null\n}\n");
}

static void texts_are_escaped(void)
{
    struct json_out json;

    begin(&json);
    json_out_text(&json, NULL, "q\" b\\ n\n t\t c\x01 d\x7f \xc3\xa4 \xf0\x9f\x98\x80");
    CHECK(end(&json) == 0);
    CHECK_STR(written, "\"q\\\" b\\\\ n\\n t\\t c\\u0001 d\\u007f \xc3\xa4 \xf0\x9f\x98\x80\"\n");
}

static void bytes_that_are_no_utf8_are_replaced(void)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        { "\xff", "\"\\ufffd\"\n" },
        { "a\xc3", "\"a\\ufffd\"\n" },                     /* cut short */
        { "\xc0\xaf", "\"\\ufffd\\ufffd\"\n" },            /* overlong */
        { "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"\n" }, /* surrogate */
        { "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"\n" },
        { "\xe2\x82z", "\"\\ufffd\\ufffdz\"\n" },
    };
    struct json_out json;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(&json);
        json_out_text(&json, NULL, rows[i].in);
        CHECK(end(&json) == 0);
        CHECK_STR(written, rows[i].out);
    }
}

static void calls_that_do_not_fit_are_noticed(void)
{
    struct json_out json;

    begin(&json); /* nothing at all */
    CHECK(end(&json) == -1);
    begin(&json); /* a key in an array */
    json_out_array(&json, NULL);
    json_out_number(&json, "key", 1);
    json_out_end(&json);
    CHECK(end(&json) == -1);
    begin(&json); /* no key in an object */
    json_out_object(&json, NULL);
    json_out_number(&json, NULL, 1);
    json_out_end(&json);
    CHECK(end(&json) == -1);
    begin(&json); /* two values */
    json_out_number(&json, NULL, 1);
    json_out_number(&json, NULL, 2);
    CHECK(end(&json) == -1);
    begin(&json); /* not ended */
    json_out_object(&json, NULL);
    CHECK(end(&json) == -1);
    begin(&json); /* ended too often */
    json_out_end(&json);
    CHECK(end(&json) == -1);
}

static void nesting_has_a_bound(void)
{
    struct json_out json;

    begin(&json);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        json_out_array(&json, NULL);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        json_out_end(&json);
    CHECK(end(&json) == 0);
    begin(&json);
    for (int i = 0; i < 1000; i++)
        json_out_array(&json, NULL);
    for (int i = 0; i < 1000; i++)
        json_out_end(&json);
    CHECK(end(&json) == -1);
}

CHECK_MAIN(T(objects_and_arrays_nest_with_commas_where_they_belong), T(texts_are_escaped),
           T(bytes_that_are_no_utf8_are_replaced), T(calls_that_do_not_fit_are_noticed),
           T(nesting_has_a_bound))
