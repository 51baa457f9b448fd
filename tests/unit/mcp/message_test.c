#include "mcp/lines.h"
#include "mcp/message.h"

#include "check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static enum mcp_code code_of(const char *text)
{
    enum mcp_code code = 0;
    struct mcp_message message;
    struct err err = { 0 };
    json_t *json;

    if (mcp_parse(text, strlen(text), &json, &message, &code, &err) == 0)
        code = 0;
    json_decref(json);
    return code;
}

static void what_is_no_message_is_refused_with_a_code(void)
{
    static const struct {
        const char *text;
        int code;
    } rows[] = {
        { "", MCP_PARSE_ERROR },
        { "{", MCP_PARSE_ERROR },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", MCP_PARSE_ERROR },
        { "[]", MCP_INVALID_REQUEST },
        { "{}", MCP_INVALID_REQUEST },
        { "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", MCP_INVALID_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", MCP_INVALID_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", MCP_INVALID_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":1}", MCP_INVALID_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"result\":{}}", MCP_INVALID_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", MCP_INVALID_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":{}}", MCP_INVALID_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", MCP_INVALID_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":1}}",
          MCP_INVALID_PARAMS },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{}}", 0 },
        { "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", 0 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_INT(code_of(rows[i].text), rows[i].code);
}

static void a_refused_message_keeps_its_id(void)
{
    static const char text[] = "{\"id\":7,\"method\":\"ping\"}";
    enum mcp_code code = 0;
    struct mcp_message message;
    struct err err = { 0 };
    json_t *json;

    CHECK_INT(mcp_parse(text, sizeof text - 1, &json, &message, &code, &err), -1);
    CHECK_INT(json_integer_value(message.id), 7);
    json_decref(json);
}

static void revision_and_name_are_found(void)
{
    static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
                               "call\",\"params\":{\"name\":\"bash\",\"_meta\":{\"" MCP_META
                               "protocolVersion\":\"" MCP_MODERN "\"}}}";
    enum mcp_code code = 0;
    struct mcp_message message;
    struct err err = { 0 };
    json_t *json;

    CHECK_INT(mcp_parse(text, sizeof text - 1, &json, &message, &code, &err), 0);
    CHECK_STR(message.version, MCP_MODERN);
    CHECK_STR(mcp_name(&message), "bash");
    json_decref(json);
}

static int join(void *context, const char *text, size_t len, struct err *err)
{
    char *out = context;

    (void) err;
    (void) strncat(out, text, len);
    (void) strcat(out, "|");
    return 0;
}

static void lines_and_events_come_out_however_they_are_cut(void)
{
    static const char in[] = "data: a\r\ndata: b\n\nevent: x\n: note\n\ndata:c\n\ndata: lost";

    for (size_t step = 1; step < sizeof in; step++) {
        char lines_out[128] = "", events_out[128] = "";
        struct lines lines = { .text = NULL };
        struct events events = { .begun = false };
        struct err err = { 0 };

        for (size_t at = 0; at < sizeof in - 1; at += step) {
            size_t n = sizeof in - 1 - at < step ? sizeof in - 1 - at : step;

            CHECK_INT(lines_feed(&lines, in + at, n, join, lines_out, &err), 0);
            CHECK_INT(events_feed(&events, in + at, n, join, events_out, &err), 0);
        }
        CHECK_INT(lines_end(&lines, join, lines_out, &err), 0);
        CHECK_STR(lines_out, "data: a|data: b||event: x|: note||data:c||data: lost|");
        CHECK_STR(events_out, "a\nb|c|");
        lines_done(&lines);
        events_done(&events);
    }
}

static void a_line_without_an_end_is_refused(void)
{
    char *piece = calloc(1, 1 << 20);
    struct lines lines = { .text = NULL };
    char out[8] = "";
    struct err err = { 0 };
    int r = 0;

    memset(piece, 'x', 1 << 20);
    for (size_t i = 0; i < 25 && r == 0; i++)
        r = lines_feed(&lines, piece, 1 << 20, join, out, &err);
    CHECK_INT(r, -1);
    CHECK_INT(err.kind, ERR_TOO_BIG);
    lines_done(&lines);
    free(piece);
}

CHECK_MAIN(T(what_is_no_message_is_refused_with_a_code), T(a_refused_message_keeps_its_id),
           T(revision_and_name_are_found), T(lines_and_events_come_out_however_they_are_cut),
           T(a_line_without_an_end_is_refused))
