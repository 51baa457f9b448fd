/* mcp_message_fuzz.c - messages of the Model Context Protocol: lines, events and JSON-RPC.
 *
 * The first byte says in how large pieces the rest arrives, and whether it is a stream of lines or of events. However it is cut,
 * the same lines come out; each is read as a message, and what was read of it must be what the kind of message promises. */
#include "base/own.h"
#include "mcp/lines.h"
#include "mcp/message.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
    size_t count, bytes;
    uint64_t hash;
};

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void check(const struct mcp_message *m, const json_t *json)
{
    json_t *answer;
    char *text;

    must(json_is_object(json));
    must((m->kind == MCP_NOTIFICATION) == (m->id == NULL));
    must((m->kind == MCP_RESPONSE) == (m->method == NULL));
    must(!m->id || json_is_integer(m->id) ||
         (json_is_string(m->id) && json_string_length(m->id) <= MCP_ID_MAX));
    must(!m->method || (m->method[0] && strlen(m->method) <= MCP_NAME_MAX));
    must(!m->params || json_is_object(m->params));
    must(!m->meta || json_is_object(m->meta));
    must(!m->version || m->meta);
    must(!mcp_name(m) || m->params);
    answer = mcp_result(m->id, json_object());
    text = json_dumps(answer, JSON_COMPACT);
    must(text && !strchr(text, '\n'));
    free(text);
    json_decref(answer);
}

static int take(void *context, const char *line, size_t len, struct err *err)
{
    struct sum *sum = context;
    enum mcp_code code = 0;
    struct mcp_message message;
    json_t *json = NULL, *answer;

    sum->count++;
    sum->bytes += len;
    for (size_t i = 0; i < len; i++)
        sum->hash = (sum->hash ^ (uint8_t) line[i]) * 1099511628211u;
    if (mcp_parse(line, len, &json, &message, &code, err) == 0) {
        check(&message, json);
    } else {
        must(code < 0 && err->kind != ERR_NONE && err->msg[0]);
        answer = mcp_error(message.id, code, err->msg, NULL);
        must(json_object_get(json_object_get(answer, "error"), "message"));
        json_decref(answer);
    }
    json_decref(json);
    return 0;
}

static struct sum feed(const char *data, size_t size, size_t piece, bool as_events)
{
    struct events events = { .begun = false };
    struct lines lines = { .text = NULL };
    struct sum sum = { .hash = 14695981039346656037u };
    struct err err = { 0 };

    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < piece ? size - at : piece;
        must((as_events ? events_feed(&events, data + at, n, take, &sum, &err)
                        : lines_feed(&lines, data + at, n, take, &sum, &err)) == 0);
    }
    if (!as_events)
        must(lines_end(&lines, take, &sum, &err) == 0);
    lines_done(&lines);
    events_done(&events);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sum whole, cut;
    bool as_events;
    size_t piece;

    if (size < 1)
        return 0;
    as_events = data[0] & 1;
    piece = 1 + (data[0] >> 1);
    whole = feed((const char *) data + 1, size - 1, size, as_events);
    cut = feed((const char *) data + 1, size - 1, piece, as_events);
    must(whole.count == cut.count && whole.bytes == cut.bytes && whole.hash == cut.hash);
    return 0;
}
