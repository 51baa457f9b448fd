#include "surface/v1/v1.h"

#include "base/own.h"
#include "base/utf8.h"
#include "http/sse.h"
#include "http/value.h"
#include "server/guard/quota.h"

#include <string.h>

#define TYPE_NDJSON "application/x-ndjson"
#define TYPE_SSE    "text/event-stream"

enum v1_wish v1_accepts(struct exchange *x)
{
    struct slice rest = slice_of(exchange_header(x, "Accept")), item;

    while (rest.at && value_list_next(&rest, &item)) {
        if (slice_is_nocase(value_main(item), TYPE_NDJSON))
            return V1_NDJSON;
        if (slice_is_nocase(value_main(item), TYPE_SSE))
            return V1_SSE;
    }
    return V1_PLAIN;
}

const char *const v1_stream_names[] = { "ndjson", "sse", NULL };

enum v1_wish v1_read_wish(struct exchange *x, const char *stream)
{
    if (!stream)
        return v1_accepts(x);
    return strcmp(stream, "sse") == 0 ? V1_SSE : V1_NDJSON;
}

int v1_stream_begin(struct v1_stream *stream, struct exchange *x, bool sse, struct err *err)
{
    *stream = (struct v1_stream){ .x = x, .sse = sse };
    /* A proxy that collects an answer before it passes it on would make a stream useless. */
    if (exchange_add_header(x, "Cache-Control", "no-cache", err) < 0 ||
        exchange_add_header(x, "X-Accel-Buffering", "no", err) < 0)
        return -1;
    return exchange_begin(x, 200, sse ? TYPE_SSE : TYPE_NDJSON, -1, err);
}

static int write_sse(struct v1_stream *stream, const char *name, const char *text, size_t len,
                     struct err *err)
{
    size_t size = len + strlen(name) + 64;
    auto_free char *out = malloc(size);
    ssize_t n;

    if (!out)
        return err_set(err, ERR_NO_MEMORY, "no memory for an event");
    n = sse_event(out, size, name, NULL, (struct slice){ text, len }, err);
    if (n < 0 || (size_t) n > size)
        return err_set(err, ERR_INTERNAL, "an event does not fit");
    return exchange_write(stream->x, out, (size_t) n, err);
}

int v1_stream_event(struct v1_stream *stream, json_t *event, struct err *err)
{
    const char *name = json_string_value(json_object_get(event, "type"));
    auto_free char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
    size_t len = text ? strlen(text) : 0;
    int r;

    if (!text || !name) {
        json_decref(event);
        return err_set(err, ERR_NO_MEMORY, "no memory for an event");
    }
    if (stream->sse) {
        r = write_sse(stream, name, text, len, err);
    } else {
        text[len] = '\n'; /* in the place of the NUL */
        r = exchange_write(stream->x, text, len + 1, err);
    }
    json_decref(event);
    return r;
}

int v1_stream_ping(struct v1_stream *stream, struct err *err)
{
    static const char comment[] = ": ping\n\n";

    if (stream->sse)
        return exchange_write(stream->x, comment, sizeof comment - 1, err);
    return v1_stream_event(stream, json_pack("{s:s}", "type", "ping"), err);
}

int v1_stream_fail(struct v1_stream *stream, const struct err *why, struct err *err)
{
    json_t *error = json_pack("{s:s, s:o}", "code", err_kind_info(why->kind)->name, "message",
                              form_text(why->msg, strlen(why->msg)));

    if (v1_stream_event(stream, json_pack("{s:s, s:o}", "type", "error", "error", error), err) < 0)
        return -1;
    return exchange_end(stream->x, err);
}

/* How many bytes at the end are the beginning of a character. */
static size_t cut_tail(const char *data, size_t len)
{
    for (size_t k = 1; k <= 3 && k <= len; k++) {
        unsigned char c = (unsigned char) data[len - k];

        if (c < 0x80)
            return 0;
        if (c >= 0xc0)
            return utf8_first(data + len - k, k) == -1 ? k : 0;
    }
    return 0;
}

int v1_stream_piece(struct v1_stream *stream, const struct exec_event *event, struct err *err)
{
    int s = event->type == EXEC_STDERR;
    size_t carried = event->missed > 0 ? 0 : stream->carried[s], len = carried + event->len, tail;
    auto_free char *data = malloc(len + 1);
    json_t *json;

    if (!data)
        return err_set(err, ERR_NO_MEMORY, "no memory for output");
    memcpy(data, stream->carry[s], carried);
    memcpy(data + carried, event->data, event->len);
    tail = cut_tail(data, len);
    memcpy(stream->carry[s], data + len - tail, tail);
    stream->carried[s] = tail;
    if (len == tail)
        return 0;
    json = json_pack("{s:s, s:I}", "type", s ? "stderr" : "stdout", "offset",
                     (json_int_t) (event->offset - carried));
    if (event->missed > 0)
        (void) json_object_set_new(json, "missed", json_integer((json_int_t) event->missed));
    if (v1_put_bytes(json, "data", data, len - tail) < 0) {
        json_decref(json);
        return err_set(err, ERR_NO_MEMORY, "no memory for output");
    }
    return v1_stream_event(stream, json, err);
}

/* What was cut off and never came: no character, but bytes that were written. */
static int send_carried(struct v1_stream *stream, const struct ops_run *run, struct err *err)
{
    for (int s = 0; s < 2; s++) {
        json_t *json;

        if (stream->carried[s] == 0)
            continue;
        json = json_pack("{s:s, s:I}", "type", s ? "stderr" : "stdout", "offset",
                         (json_int_t) (run->exec.next_offset[s] - stream->carried[s]));
        if (v1_put_bytes(json, "data", stream->carry[s], stream->carried[s]) < 0 ||
            v1_stream_event(stream, json, err) < 0)
            return -1;
        stream->carried[s] = 0;
    }
    return 0;
}

int v1_stream_end(struct v1_stream *stream, json_t *json, struct err *err)
{
    (void) json_object_set_new(json, "type", json_string("end"));
    if (v1_stream_event(stream, json, err) < 0)
        return -1;
    return exchange_end(stream->x, err);
}

int v1_stream_output(struct v1_stream *stream, struct ops *ops, struct ops_run *run,
                     struct exec_result *ret, struct err *err)
{
    for (;;) {
        struct exec_event event;
        struct err why;
        int r = ops_run_next(ops, run, &event, &why);

        if (r < 0)
            return v1_stream_fail(stream, &why, err) < 0 ? -1 : 0;
        if (r == 1 && event.type == EXEC_END) {
            *ret = event.result;
            return send_carried(stream, run, err) < 0 ? -1 : 1;
        }
        if (r == 1 && v1_stream_piece(stream, &event, err) < 0)
            return -1;
        if (r == 0 && v1_stream_ping(stream, err) < 0)
            return -1;
    }
}

int v1_stream_run(struct v1_stream *stream, struct ops *ops, struct ops_run *run, struct err *err)
{
    struct exec_result result;
    int r = v1_stream_output(stream, ops, run, &result, err);

    return r == 1 ? v1_stream_end(stream, v1_result_json(&result), err) : r;
}
