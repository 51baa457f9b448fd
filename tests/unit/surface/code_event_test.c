#include "surface/e2b/code_event.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

static char out[65536];
static size_t out_len;

static int keep(void *context, const char *data, size_t len, struct err *err)
{
    (void) context;
    (void) err;
    CHECK(out_len + len < sizeof out);
    memcpy(out + out_len, data, len);
    out_len += len;
    out[out_len] = '\0';
    return 0;
}

/* What a client gets of a line. */
static const char *said(const char *line)
{
    static struct err err;
    struct code_event event;

    out_len = 0;
    out[0] = '\0';
    if (code_event_parse(line, strlen(line), &event, &err) < 0)
        return err.msg;
    CHECK_INT(code_event_put(&event, "now", keep, NULL, &err), 0);
    return out;
}

static bool refused(const char *line)
{
    struct code_event event;
    struct err err = { .kind = ERR_NONE };

    return code_event_parse(line, strlen(line), &event, &err) < 0 && err.kind == ERR_PROTOCOL;
}

static void every_type_is_said_in_e2b_words(void)
{
    CHECK_STR(said("{\"type\":\"begin\",\"id\":\"a\",\"execution_count\":7}"),
              "{\"type\":\"number_of_executions\",\"execution_count\":7}\n");
    CHECK_STR(said("{ \"text\" : \"x\\n\" , \"type\" : \"stdout\" }"),
              "{\"type\":\"stdout\",\"text\":\"x\\n\",\"timestamp\":\"now\"}\n");
    CHECK_STR(said("{\"type\":\"stderr\",\"text\":\"\"}"),
              "{\"type\":\"stderr\",\"text\":\"\",\"timestamp\":\"now\"}\n");
    CHECK_STR(said("{\"type\":\"error\",\"name\":\"N\",\"value\":\"v\",\"traceback\":\"t\"}"),
              "{\"type\":\"error\",\"name\":\"N\",\"value\":\"v\",\"traceback\":\"t\"}\n");
    CHECK_STR(said("{\"type\":\"end\",\"id\":\"a\"}"), "");
}

static void mime_types_become_fields(void)
{
    CHECK_STR(said("{\"type\":\"result\",\"is_main_result\":true,\"data\":{\"text/plain\":\"1\","
                   "\"image/png\":\"aGk=\",\"application/json\":[1,{\"a\":null}],\"x/y\":{\"z\":1},"
                   "\"e2b/data\":{\"c\":[1]},\"v\":2}}"),
              "{\"type\":\"result\",\"text\":\"1\",\"png\":\"aGk=\",\"json\":[1,{\"a\":null}],"
              "\"data\":{\"c\":[1]},\"extra\":{\"x/y\":{\"z\":1},\"v\":2},\"is_main_result\":true}"
              "\n");
    CHECK_STR(said("{\"type\":\"result\",\"is_main_result\":false,\"data\":{}}"),
              "{\"type\":\"result\",\"is_main_result\":false}\n");
    /* Of the wrong kind, or a second time: dropped. */
    CHECK_STR(said("{\"type\":\"result\",\"is_main_result\":false,\"data\":{\"image/png\":5,"
                   "\"text/plain\":\"a\",\"text/plain\":\"b\",\"e2b/chart\":\"x\"}}"),
              "{\"type\":\"result\",\"text\":\"a\",\"is_main_result\":false}\n");
}

static void outer_quotes_are_stripped(void)
{
    static const struct {
        const char *plain, *text;
    } rows[] = {
        { "'it'", "it" },       { "\\\"it's\\\"", "it's" },
        { "'", "'" },           { "''", "" },
        { "\\\"", "\\\"" },     { "\\\"\\\"", "" },
        { "'a\\\"", "'a\\\"" }, { "[1]", "[1]" },
        { "'\\\\'", "\\\\" },   { "", "" },
    };
    char line[200], want[200];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void) snprintf(
            line, sizeof line,
            "{\"type\":\"result\",\"is_main_result\":true,\"data\":{\"text/plain\":\"%s\"}}",
            rows[i].plain);
        (void) snprintf(want, sizeof want,
                        "{\"type\":\"result\",\"text\":\"%s\",\"is_main_result\":true}\n",
                        rows[i].text);
        CHECK_STR(said(line), want);
    }
}

static void what_is_no_event_is_refused(void)
{
    static const char *const lines[] = {
        "",
        " ",
        "x",
        "5",
        "[]",
        "\"a\"",
        "{",
        "}",
        "{}",
        "{}x",
        "{\"type\"}",
        "{\"type\":}",
        "{\"type\":\"begin\"}",
        "{\"type\":\"nope\"}",
        "{\"type\":5}",
        "{\"type\":\"stdout\",\"text\":5}",
        "{\"type\":\"stdout\"}",
        "{\"type\":\"stdout\",\"text\":\"a\"",
        "{\"type\":\"stdout\",\"text\":\"a\"}}",
        "{\"type\":\"stdout\",\"text\":\"a\",}",
        "{,\"type\":\"stdout\",\"text\":\"a\"}",
        ",\"type\":\"stdout\",\"text\":\"a\"}",
        "{\"type\":\"stdout\"{\"text\":\"a\"}",
        "{\"type\":\"stdout\",\"text\":\"a\",\"text\":\"b\"}",
        "{\"type\":\"stdout\",\"type\":\"stdout\",\"text\":\"a\"}",
        "{\"type\":\"stdout\",\"text\":\"\xc3\xa9\"}",
        "{\"type\":\"stdout\",\"text\":\"\x01\"}",
        "{\"type\":\"stdout\",\"text\":\"\x7f\"}",
        "{\"type\":\"stdout\",\"text\":\"\\x\"}",
        "{\"type\":\"stdout\",\"text\":\"\\u12g4\"}",
        "{\"type\":\"stdout\",\"text\":\"\\u12",
        "{\"type\":\"stdout\",\"text\":\"a\",\"x\":{\"a\":}}",
        "{\"type\":\"stdout\",\"text\":\"a\",\"x\":[1,]}",
        "{\"type\":\"stdout\",\"text\":\"a\",\"x\":[1}}",
        "{\"type\":\"stdout\",\"text\":\"a\",\"x\":NaN}",
        "{\"type\":\"stdout\",\"text\":\"a\",\"x\":01}",
        "{\"type\":\"stdout\",\"text\":\"a\",\"x\":1.}",
        "{\"type\":\"stdout\",\"text\":\"a\",\"x\":-}",
        "{\"type\":\"stdout\",\"text\":\"a\",\"x\":1e}",
        "{\"type\":\"stdout\",\"text\":\"a\",\"x\":truex}",
        "{\"type\":\"begin\",\"id\":\"a\",\"execution_count\":-1}",
        "{\"type\":\"begin\",\"id\":\"a\",\"execution_count\":1.5}",
        "{\"type\":\"begin\",\"id\":\"a\",\"execution_count\":12345678901234567890}",
        "{\"type\":\"result\",\"is_main_result\":1,\"data\":{}}",
        "{\"type\":\"result\",\"is_main_result\":true,\"data\":[]}",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        CHECK(refused(lines[i]));
        if (!refused(lines[i]))
            (void) fprintf(stderr, "taken: %s\n", lines[i]);
    }
}

static void values_that_nobody_knows_are_checked_and_dropped(void)
{
    CHECK_STR(
        said("{\"type\":\"stdout\",\"text\":\"a\",\"x\":[-0.5e+3,{},[],{\"a\":[{}]},true,null],"
             "\"y\":\"\\u00e9\"}"),
        "{\"type\":\"stdout\",\"text\":\"a\",\"timestamp\":\"now\"}\n");
}

static void depth_is_bounded(void)
{
    char line[512];

    for (int depth = CODE_DEPTH_MAX - 1; depth <= CODE_DEPTH_MAX + 1; depth++) {
        size_t at = (size_t) sprintf(line, "{\"type\":\"stdout\",\"text\":\"a\",\"x\":");

        memset(line + at, '[', (size_t) depth);
        memset(line + at + depth, ']', (size_t) depth);
        (void) snprintf(line + at + 2 * depth, 2, "}");
        CHECK(refused(line) == (depth > CODE_DEPTH_MAX));
    }
}

static void cells_are_told_apart(void)
{
    static const char line[] = "{\"type\":\"end\",\"id\":\"abc\"}";
    struct code_event event;
    struct err err;

    CHECK_INT(code_event_parse(line, strlen(line), &event, &err), 0);
    CHECK(code_event_is(&event, "abc"));
    CHECK(!code_event_is(&event, "ab"));
    CHECK(!code_event_is(&event, "abcd"));
}

CHECK_MAIN(T(what_is_no_event_is_refused), T(every_type_is_said_in_e2b_words),
           T(mime_types_become_fields), T(outer_quotes_are_stripped),
           T(values_that_nobody_knows_are_checked_and_dropped), T(depth_is_bounded),
           T(cells_are_told_apart))
