/* Answers are written as jansson writes them. */
#include "server/serve/dump.h"

#include "check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void same_as_jansson(json_t *take_json)
{
    char *want = json_dumps(take_json, JSON_COMPACT | JSON_ENCODE_ANY);
    struct dump dump;
    int r = dump_json(&dump, take_json);

    CHECK_INT(r, want ? 0 : -1);
    if (want && r == 0) {
        CHECK_INT(dump.len, strlen(want));
        CHECK(dump.len == strlen(want) && memcmp(dump_text(&dump), want, dump.len) == 0);
    }
    dump_done(&dump);
    free(want);
    json_decref(take_json);
}

static void numbers_and_words_are_the_same(void)
{
    static const json_int_t numbers[] = { 0, 1, -1, 9, 10, 4096, -4096, INT64_MAX, INT64_MIN };
    static const double reals[] = {
        0.0,  -0.0, 1.0,  -1.0,  0.5,  0.1,    2.0,     1000.0,           123456.75,
        1e14, 1e15, 1e16, 1e300, 1e-7, 1e-300, 3.14159, 999999999999999.0
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        same_as_jansson(json_integer(numbers[i]));
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        same_as_jansson(json_real(reals[i]));
    same_as_jansson(json_true());
    same_as_jansson(json_false());
    same_as_jansson(json_null());
}

static void texts_of_every_byte_are_the_same(void)
{
    char one[2] = "";

    same_as_jansson(json_string(""));
    same_as_jansson(json_string("/a/path with spaces"));
    same_as_jansson(json_string("é, 語 and \xf0\x9f\x90\x8b"));
    for (int c = 0; c < 256; c++) {
        one[0] = (char) c;
        same_as_jansson(json_stringn_nocheck(one, 1)); /* from 0x80 on no UTF-8: refused by both */
    }
    same_as_jansson(json_stringn("a\0b", 3));
}

static void trees_are_the_same(void)
{
    json_t *list = json_array(), *deep = json_array();

    same_as_jansson(json_object());
    same_as_jansson(json_array());
    same_as_jansson(json_pack("{s:{s:[i,f,n,b,s,{}],s:[]},s:s}", "a", "b\"\\\n", 1, 2.5, 1, "x",
                              "c", "é", "ö"));
    for (int i = 0; i < 3000; i++) /* more than fits into the small room */
        (void) json_array_append_new(list, json_pack("{s:i,s:s}", "number", i, "text", "abc\tdef"));
    same_as_jansson(list);
    for (int i = 0; i < 200; i++) {
        json_t *outer = json_array();

        (void) json_array_append_new(outer, deep);
        deep = outer;
    }
    same_as_jansson(deep);
}

/* Texts whose length makes the room grow at every possible place. */
static void every_length_fits(void)
{
    char text[DUMP_SMALL + 16];

    for (size_t len = DUMP_SMALL - 16; len < sizeof text; len++) {
        memset(text, 'x', len);
        same_as_jansson(json_pack("[s#,i]", text, (int) len, 7));
    }
}

static void what_nests_too_deep_is_refused(void)
{
    json_t *deep = json_array();
    struct dump dump;

    for (int i = 0; i < DUMP_DEPTH; i++) {
        json_t *outer = json_array();

        (void) json_array_append_new(outer, deep);
        deep = outer;
    }
    CHECK_INT(dump_json(&dump, deep), -1);
    dump_done(&dump);
    json_decref(deep);
}

CHECK_MAIN(T(numbers_and_words_are_the_same), T(texts_of_every_byte_are_the_same),
           T(trees_are_the_same), T(every_length_fits), T(what_nests_too_deep_is_refused))
