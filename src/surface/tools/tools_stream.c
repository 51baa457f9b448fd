#include "surface/tools/tools_stream.h"

static int begin(struct tools_stream *stream, struct err *err)
{
    if (stream->begun)
        return 0;
    if (v1_stream_begin(&stream->to, stream->x, stream->wish == V1_SSE, err) < 0)
        return -1;
    stream->begun = true;
    return 0;
}

int tools_stream_watch(void *context, const struct exec_event *event, struct err *err)
{
    struct tools_stream *stream = context;

    if (begin(stream, err) < 0)
        return -1;
    return event ? v1_stream_piece(&stream->to, event, err) : v1_stream_ping(&stream->to, err);
}

int tools_stream_end(struct tools_stream *stream, int r, json_t *answer, struct err *err)
{
    struct err why;

    if (r == 0)
        return begin(stream, err) < 0 ? (json_decref(answer), -1)
                                      : v1_stream_end(&stream->to, answer, err);
    if (!stream->begun)
        return -1;
    why = *err;
    return v1_stream_fail(&stream->to, &why, err);
}
