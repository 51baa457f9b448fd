/* Contents of files, both ways, and watching: streams that hold one piece at a time. */
#include "api/v1.h"

#include "api/quota.h"
#include "base/own.h"
#include "http/date.h"
#include "http/media.h"
#include "http/range.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define PIECE 65536

/* ---- download ---- */

struct download {
    struct ops_file file;
    struct file_info info;
    struct range range;
    enum range_result ranged;
    char etag[ETAG_SIZE];
};

static int add_validators(struct exchange *x, struct download *d, struct err *err)
{
    char date[DATE_SIZE];

    date_put(date, d->info.mtime_ns / 1000000000);
    if (exchange_add_header(x, "ETag", d->etag, err) < 0 ||
        exchange_add_header(x, "Last-Modified", date, err) < 0)
        return -1;
    return exchange_add_header(x, "Accept-Ranges", "bytes", err);
}

/* What the request's conditions come to: 200, 206, 304 or 416. */
static int judge(struct exchange *x, struct download *d)
{
    const struct head *head = exchange_head(x);
    int64_t mtime = d->info.mtime_ns / 1000000000;

    etag_put(d->etag, (uint64_t) d->info.mtime_ns, d->info.size);
    if (range_not_modified(head_get(head, "If-None-Match"), head_get(head, "If-Modified-Since"),
                           d->etag, mtime))
        return 304;
    d->ranged = range_applies(head_get(head, "If-Range"), d->etag, mtime)
                    ? range_parse(head_get(head, "Range"), d->info.size, &d->range)
                    : RANGE_NONE;
    return d->ranged == RANGE_OK ? 206 : d->ranged == RANGE_UNSATISFIABLE ? 416 : 200;
}

static int add_range(struct exchange *x, const struct download *d, struct err *err)
{
    char text[RANGE_TEXT_SIZE];

    if (d->ranged == RANGE_NONE)
        return 0;
    range_put(text, d->ranged == RANGE_OK ? &d->range : NULL, d->info.size);
    return exchange_add_header(x, "Content-Range", text, err);
}

/* Exactly what was announced: a file that grew is cut, one that shrank cuts the connection. */
static int copy_out(struct exchange *x, struct stream *stream, int64_t length, struct err *err)
{
    for (;;) {
        const void *data;
        uint32_t len;
        int r = files_read_next(stream, &data, &len, err);

        if (r < 0)
            return -1;
        if (r == 0)
            break;
        if (length >= 0 && len > length)
            len = (uint32_t) length;
        if (exchange_write(x, data, len, err) < 0)
            return -1;
        if (length >= 0)
            length -= len;
    }
    if (length > 0)
        return err_set(err, ERR_STATE, "the file became shorter while it was read");
    return exchange_end(x, err);
}

static int send_file(struct exchange *x, struct download *d, int status, struct err *err)
{
    const char *type = media_type(slice_of(d->file.path));
    uint64_t offset = status == 206 ? d->range.first : 0;
    uint64_t len = status == 206 ? d->range.len : d->info.size;
    /* Files of procfs say 0 and have content: sent in chunks to their end. */
    int64_t length = len > 0 ? (int64_t) len : -1;
    struct ops ops = ops_of(x);
    struct stream stream;
    int r;

    if (exchange_head(x)->method == METHOD_HEAD) {
        if (exchange_begin(x, status, type, length, err) < 0)
            return -1;
        return exchange_end(x, err);
    }
    if (ops_file_read(&ops, &d->file, offset, len, &stream, NULL, err) < 0)
        return -1;
    r = exchange_begin(x, status, type, length, err);
    if (r == 0)
        r = copy_out(x, &stream, length, err);
    stream_close(&stream);
    return r;
}

int v1_file_get(struct exchange *x, struct err *err)
{
    auto_free struct download *d = calloc(1, sizeof *d);
    struct ops ops = ops_of(x);
    int status;

    if (!d)
        return err_set(err, ERR_NO_MEMORY, "no memory for a download");
    if (v1_query_file(x, &d->file, err) < 0 || ops_file_stat(&ops, &d->file, 0, &d->info, err) < 0)
        return -1;
    if (d->info.type != ENTRY_FILE)
        return err_set(err, d->info.type == ENTRY_DIR ? ERR_IS_DIR : ERR_NOT_FILE, "'%.100s' is %s",
                       d->file.path,
                       d->info.type == ENTRY_DIR ? "a directory" : "not a regular file");
    status = judge(x, d);
    if (add_validators(x, d, err) < 0 || add_range(x, d, err) < 0)
        return -1;
    if (status == 304)
        return exchange_reply_json(x, 304, NULL, err);
    if (status == 416)
        return exchange_reply_text(x, 416, "application/json",
                                   "{\"error\":{\"code\":\"invalid\",\"message\":\"the range is "
                                   "outside the file\",\"field\":\"Range\"}}",
                                   err);
    return send_file(x, d, status, err);
}

/* ---- upload ---- */

static int copy_in(struct exchange *x, struct stream *stream, struct err *err)
{
    auto_free char *piece = malloc(PIECE);
    ssize_t n;

    if (!piece)
        return err_set(err, ERR_NO_MEMORY, "no memory for an upload");
    while ((n = exchange_read(x, piece, PIECE, err)) > 0)
        if (files_write_next(stream, piece, (size_t) n, err) < 0)
            return -1;
    return (int) n;
}

/* Until the body is whole the old content stays; a client that goes away changes nothing. */
int v1_file_put(struct exchange *x, struct err *err)
{
    auto_free struct file_info *info = malloc(sizeof *info);
    bool append = false, create = false, parents = true;
    uint32_t mode = UINT32_MAX, flags;
    struct ops ops = ops_of(x);
    struct ops_file file;
    struct stream stream;
    int r;

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory for an upload");
    if (v1_query_file(x, &file, err) < 0 || v1_query_mode(x, "mode", &mode, err) < 0 ||
        v1_query_bool(x, "append", &append, err) < 0 ||
        v1_query_bool(x, "create", &create, err) < 0 ||
        v1_query_bool(x, "parents", &parents, err) < 0 || exchange_accept_encoding(x, err) < 0)
        return -1;
    if (append && create)
        return v1_bad(x, err, "append", "append and create exclude each other");
    flags = (append ? AGENT_APPEND : AGENT_ATOMIC) | (create ? AGENT_CREATE : 0) |
            (parents ? AGENT_PARENTS : 0);
    if (ops_file_write(&ops, &file, mode, flags, &stream, err) < 0)
        return -1;
    r = copy_in(x, &stream, err);
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
        (void) json_object_set_new(json, "path", v1_text(item->path, strlen(item->path)));
    if (item->target)
        (void) json_object_set_new(json, "to", v1_text(item->target, strlen(item->target)));
    return json;
}

/* 1: an item, 0: a while passed without one, -1. */
static int next_change(struct exchange *x, struct stream *stream, struct agent_reply *ret,
                       struct err *err)
{
    for (;;) {
        struct pollfd fds[] = { { .fd = stream->fd, .events = POLLIN },
                                { .fd = exchange_fd(x), .events = POLLRDHUP } };
        struct frame frame;
        int r = stream_poll(stream, &frame, err);

        if (r < 0)
            return -1;
        if (r == 1 && frame.type != FRAME_ITEM)
            return stream_unexpected(&frame, err);
        if (r == 1)
            return agent_reply_decode(ret, frame.data, frame.len, err) < 0 ? -1 : 1;
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
    struct ops ops = ops_of(x);
    bool recursive = false;
    struct ops_file file;
    struct stream changes;
    int r;

    if (v1_query_file(x, &file, err) < 0 || v1_query_bool(x, "recursive", &recursive, err) < 0 ||
        quota_stream_begin(x, err) < 0)
        return -1;
    r = ops_file_watch(&ops, &file, recursive ? AGENT_RECURSIVE : 0, &changes, err);
    if (r == 0) {
        r = send_changes(x, &changes, err);
        stream_close(&changes);
    }
    quota_stream_end(x);
    return r;
}
