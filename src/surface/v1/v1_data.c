/* Contents of files, both ways, and watching: streams that hold one piece at a time. */
#include "surface/v1/v1.h"

#include "base/own.h"
#include "server/guard/quota.h"
#include "server/preview/download.h"
#include "server/preview/upload.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* ---- download ---- */

int v1_file_get(struct exchange *x, struct err *err)
{
    struct ops_file file;

    if (v1_query_file(x, &file, err) < 0)
        return -1;
    return download_reply(x, &file, err);
}

/* ---- upload ---- */

/* Until the body is whole the old content stays; a client that goes away changes nothing. */
int v1_file_put(struct exchange *x, struct err *err)
{
    auto_free struct file_info *info = malloc(sizeof *info);
    bool append = false, create = false, parents = true;
    uint32_t mode = UINT32_MAX, flags;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    struct stream stream;
    int r;

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory for an upload");
    if (v1_query_file(x, &file, err) < 0 || query_mode(x, "mode", &mode, err) < 0 ||
        query_bool(x, "append", &append, err) < 0 || query_bool(x, "create", &create, err) < 0 ||
        query_bool(x, "parents", &parents, err) < 0 || exchange_accept_encoding(x, err) < 0)
        return -1;
    if (append && create)
        return form_bad(exchange_caller(x), err, "append", "append and create exclude each other");
    flags = (append ? AGENT_APPEND : AGENT_ATOMIC) | (create ? AGENT_CREATE : 0) |
            (parents ? AGENT_PARENTS : 0);
    if (ops_file_write(&ops, &file, mode, flags, &stream, err) < 0)
        return -1;
    r = upload_body(x, &stream, err);
    if (r == 0)
        r = ops_file_write_end(&ops, &file, &stream, info, err);
    stream_close(&stream);
    if (r < 0)
        return -1;
    return exchange_reply_json(x, 200, v1_info_json(info), err);
}

/* ---- watching ---- */

static json_t *change_json(const struct agent_reply *item)
{
    json_t *json = json_pack("{s:s}", "type", agent_event_name(item->event));

    if (item->path)
        (void) json_object_set_new(json, "path", form_text(item->path, strlen(item->path)));
    if (item->target)
        (void) json_object_set_new(json, "to", form_text(item->target, strlen(item->target)));
    return json;
}

/* 1: an item, 0: a while passed without one, -1. */
static int next_change(struct exchange *x, struct stream *stream, struct agent_reply *ret,
                       struct err *err)
{
    for (;;) {
        struct pollfd fds[] = { { .fd = stream->fd, .events = POLLIN },
                                { .fd = exchange_fd(x), .events = POLLRDHUP } };
        int r = files_watch_poll(stream, ret, err);

        if (r != 0)
            return r;
        r = poll(fds, ARRAY_LEN(fds), OPS_TICK_MS);
        if (r < 0 && errno != EINTR)
            return err_sys(err, errno, "wait for changes");
        if (r == 0)
            return 0;
        if (r > 0 && fds[1].revents)
            return err_set(err, ERR_UNAVAILABLE, "the client went away");
    }
}

static int send_changes(struct exchange *x, struct stream *changes, struct err *err)
{
    struct v1_stream stream;
    struct agent_reply item;

    if (v1_stream_begin(&stream, x, v1_accepts(x) == V1_SSE, err) < 0 ||
        v1_stream_event(&stream, json_pack("{s:s}", "type", "start"), err) < 0)
        return -1;
    for (;;) {
        struct err why;
        int r = next_change(x, changes, &item, &why);

        if (r < 0)
            return v1_stream_fail(&stream, &why, err);
        if ((r == 1 ? v1_stream_event(&stream, change_json(&item), err)
                    : v1_stream_ping(&stream, err)) < 0)
            return -1;
    }
}

int v1_file_watch(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    bool recursive = false;
    struct ops_file file;
    struct stream changes;
    int r;

    if (v1_query_file(x, &file, err) < 0 || query_bool(x, "recursive", &recursive, err) < 0 ||
        quota_stream_begin(exchange_caller(x), err) < 0)
        return -1;
    r = ops_file_watch(&ops, &file, recursive ? AGENT_RECURSIVE : 0, &changes, err);
    if (r == 0) {
        r = send_changes(x, &changes, err);
        stream_close(&changes);
    }
    quota_stream_end(exchange_caller(x));
    return r;
}
