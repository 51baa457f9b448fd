/* tools_stream.h - the answer of a tool as events, for a client that accepts NDJSON or SSE: output as it comes, the answer at
 * the end.
 *
 * The events are those of the native API (v1.h): "stdout" and "stderr", "ping", "error", and "end" with all that the plain answer
 * has. Nothing is sent before the first of them, so that what is refused at the beginning has its HTTP status.
 *
 * Callers: tools.c. */
#ifndef COVE_SURFACE_TOOLS_TOOLS_STREAM_H
#define COVE_SURFACE_TOOLS_TOOLS_STREAM_H

#include "surface/v1/v1.h"

struct tools_stream {
    struct exchange *x;
    enum v1_wish wish;
    bool begun;
    struct v1_stream to;
};

/* ops_watch_fn; context: the stream. */
int tools_stream_watch(void *context, const struct exec_event *event, struct err *err);
/* r: what the call returned, with `answer` (taken) or with `err`. */
int tools_stream_end(struct tools_stream *stream, int r, json_t *answer, struct err *err);

#endif
