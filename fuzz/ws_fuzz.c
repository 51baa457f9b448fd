/* ws_fuzz.c - WebSocket frames of a client.
 *
 * Read at once and byte by byte: the same events, joined. Every message that was accepted is
 * UTF-8 where it says so and within the limit; frames that we write decode to what was written. */
#include "http/ws.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* Events as bytes: a mark for each that begins or ends, payloads between. */
struct trace {
    char *data;
    size_t len;
    int end;
    uint16_t code;
};

static void trace_mark(struct trace *trace, char mark, unsigned value)
{
    trace->data[trace->len++] = mark;
    trace->data[trace->len++] = (char) value;
    trace->data[trace->len++] = (char) (value >> 8);
}

static void trace_event(struct trace *trace, const struct ws_event *event, struct utf8 *utf8,
                        size_t *message)
{
    bool data = event->op < WS_CLOSE;

    if (event->first) {
        *utf8 = (struct utf8){ 0 };
        *message = 0;
    }
    if (event->first || !data)
        trace_mark(trace, '[', event->op);
    memcpy(trace->data + trace->len, event->data.at ? event->data.at : "", event->data.len);
    trace->len += event->data.len;
    if (event->last || !data)
        trace_mark(trace, ']', event->code);
    if (!data) {
        must(event->data.len <= WS_CONTROL_MAX && !event->first && !event->last);
        must(event->op != WS_CLOSE || event->code == WS_CODE_NONE || ws_code_ok(event->code));
        return;
    }
    *message += event->data.len;
    must(*message <= LIMIT);
    if (event->op == WS_TEXT) {
        must(utf8_feed(utf8, event->data.at, event->data.len));
        must(!event->last || utf8_whole(utf8));
    }
}

static void run(const uint8_t *data, size_t size, size_t step, struct trace *trace)
{
    char *in = malloc(size + 1);
    struct ws_reader reader;
    struct utf8 utf8 = { 0 };
    size_t at = 0, message = 0;

    memcpy(in, data, size);
    ws_reader_init(&reader, LIMIT);
    while (at < size && trace->end == 0) {
        size_t n = size - at < step ? size - at : step, used = 0;
        struct ws_event event;
        struct err err = { 0 };
        int r = ws_read(&reader, in + at, n, &used, &event, &err);

        must(used <= n);
        if (r < 0) {
            must(ws_code_ok(reader.close_code) && err.msg[0]);
            trace->end = -1;
            trace->code = reader.close_code;
        } else if (r == 1) {
            trace_event(trace, &event, &utf8, &message);
        } else {
            must(used == n);
        }
        at += used;
    }
    free(in);
}

/* Of a message that is refused, pieces may have been handed out or not, by how it was split: fewer
 * when read at once. */
static void run_both(const uint8_t *data, size_t size)
{
    struct trace fast = { .data = malloc(size * 8 + 64) }, slow = { .data = malloc(size * 8 + 64) };
    size_t len;

    run(data, size, size + 1, &fast);
    run(data, size, 1, &slow);
    must(fast.end == slow.end && fast.code == slow.code && fast.len <= slow.len);
    must(fast.end < 0 || fast.len == slow.len);
    len = fast.len;
    must(memcmp(fast.data, slow.data, len) == 0);
    free(fast.data);
    free(slow.data);
}

/* Our own frame, with the mask that a client would add. */
static void write_and_read(const uint8_t *data, size_t size)
{
    char head[WS_OUT_HEAD_MAX], close[WS_CLOSE_FRAME_MAX], reason[300];
    uint8_t masked[WS_IN_HEAD_MAX];
    struct ws_frame frame;
    struct err err;
    size_t n = ws_frame_put(head, WS_BINARY, size & 1, size);
    size_t text = size < sizeof reason - 1 ? size : sizeof reason - 1;

    memcpy(masked, head, n);
    masked[1] |= 0x80;
    memcpy(masked + n, "mask", 4);
    must(ws_frame_decode(masked, n + 4, &frame, &err) == (int) n + 4);
    must(frame.len == size && frame.op == WS_BINARY && frame.fin == (size & 1));
    memcpy(reason, data, text);
    reason[text] = '\0';
    n = ws_close_put(close, WS_CODE_NORMAL, reason);
    must(n >= 4 && n <= WS_CLOSE_FRAME_MAX && (size_t) close[1] == n - 2);
    if (utf8_ok(reason, strlen(reason)))
        must(utf8_ok(close + 4, n - 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run_both(data, size);
    write_and_read(data, size);
    return 0;
}
