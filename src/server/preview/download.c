#include "server/preview/download.h"

#include "base/own.h"
#include "http/date.h"
#include "http/media.h"
#include "http/range.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PIPE_SIZE 262144

struct download {
    struct ops_file file;
    struct file_info info;
    struct range range;
    enum range_result ranged;
    char etag[ETAG_SIZE];
};

/* What is in a file was written by a sandbox, and comes from the API's own origin: a browser that shows it as a page
 * gives that page an origin of its own, and runs nothing of it. */
#define NO_PAGE "sandbox; default-src 'none'; img-src 'self'; style-src 'unsafe-inline'"

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

/* A piece of the content, and where the next begins. */
struct piece {
    const void *data;
    uint32_t len;
    int r; /* of files_read_next */
};

static void next_piece(struct stream *stream, struct piece *piece, struct err *err)
{
    piece->len = 0;
    piece->r = files_read_next(stream, &piece->data, &piece->len, err);
}

/* Exactly what was announced: a file that grew is cut, one that shrank cuts the connection. */
static int copy_out(struct exchange *x, struct stream *stream, struct piece *piece, int64_t length,
                    struct err *err)
{
    for (; piece->r == 1; next_piece(stream, piece, err)) {
        uint32_t len = piece->len;

        if (length >= 0 && len > length)
            len = (uint32_t) length;
        if (exchange_write(x, piece->data, len, err) < 0)
            return -1;
        if (length >= 0)
            length -= len;
    }
    if (piece->r < 0)
        return -1;
    if (length > 0)
        return err_set(err, ERR_STATE, "the file became shorter while it was read");
    return exchange_end(x, err);
}

/* From the agent's connection to the client's by way of a pipe: pages of the file are handed on, and no byte is copied here. */
static int splice_frame(struct exchange *x, struct stream *stream, const int *pipe_fds,
                        uint32_t len, struct err *err)
{
    while (len > 0) {
        ssize_t n = stream_splice(stream, pipe_fds[1], len, err);

        if (n < 0 || exchange_splice(x, pipe_fds[0], (size_t) n, err) < 0)
            return -1;
        len -= (uint32_t) n;
    }
    return 0;
}

static int splice_out(struct exchange *x, struct stream *stream, int64_t length, struct err *err)
{
    auto_close int from = -1, to = -1;
    int pair[2], rc;
    uint32_t len;

    if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(err, errno, "make a pipe");
    from = pair[0];
    to = pair[1];
    (void) fcntl(to, F_SETPIPE_SZ, PIPE_SIZE); /* or what it has does */
    while ((rc = files_read_piped(stream, &len, err)) == 1) {
        if (len > length) /* it was asked for so many bytes */
            return err_set(err, ERR_PROTOCOL, "the agent sent more than it was asked for");
        if (splice_frame(x, stream, pair, len, err) < 0)
            return -1;
        length -= len;
    }
    if (rc == 0 && length > 0)
        return err_set(err, ERR_STATE, "the file became shorter while it was read");
    return rc < 0 ? -1 : exchange_end(x, err);
}

static int copy_file(struct exchange *x, const char *type, int status, struct stream *stream,
                     uint64_t offset, int64_t length, struct err *err)
{
    struct piece piece = { .data = "" };

    next_piece(stream, &piece, err);
    if (piece.r < 0)
        return -1;
    if (length < 0 && piece.r == 0) /* it is empty and not only said so */
        length = 0;
    if (offset == 0 && strcmp(type, "application/octet-stream") == 0)
        type = media_sniff(piece.data, piece.len);
    if (exchange_begin(x, status, type, length, err) < 0)
        return -1;
    if (!stream->exact || piece.len > length || !exchange_can_splice(x))
        return copy_out(x, stream, &piece, length, err);
    if (exchange_write(x, piece.data, piece.len, err) < 0)
        return -1;
    return splice_out(x, stream, length - piece.len, err);
}

static int send_file(struct exchange *x, struct download *d, int status, struct err *err)
{
    const char *type = media_type(slice_of(d->file.path));
    uint64_t offset = status == 206 ? d->range.first : 0;
    uint64_t len = status == 206 ? d->range.len : d->info.size;
    /* Files of procfs say 0 and have content: sent in chunks to their end. */
    int64_t length = len > 0 ? (int64_t) len : -1;
    struct ops ops = ops_of(exchange_caller(x));
    struct stream stream;
    int r;

    if (exchange_head(x)->method == METHOD_HEAD) {
        if (exchange_begin(x, status, type, length, err) < 0)
            return -1;
        return exchange_end(x, err);
    }
    if (ops_file_read(&ops, &d->file, offset, len, &stream, NULL, err) < 0)
        return -1;
    r = copy_file(x, type, status, &stream, offset, length, err);
    stream_close(&stream);
    return r;
}

int download_reply(struct exchange *x, const struct ops_file *file, struct err *err)
{
    auto_free struct download *d = calloc(1, sizeof *d);
    struct ops ops = ops_of(exchange_caller(x));
    int status;

    if (!d)
        return err_set(err, ERR_NO_MEMORY, "no memory for a download");
    d->file = *file;
    if (ops_file_stat(&ops, file, 0, &d->info, err) < 0)
        return -1;
    if (d->info.type != ENTRY_FILE)
        return err_set(err, d->info.type == ENTRY_DIR ? ERR_IS_DIR : ERR_NOT_FILE, "%.150s: %s",
                       d->info.path,
                       d->info.type == ENTRY_DIR ? "is a directory" : "not a regular file");
    status = judge(x, d);
    if (add_validators(x, d, err) < 0 || add_range(x, d, err) < 0 ||
        exchange_add_header(x, "Content-Security-Policy", NO_PAGE, err) < 0)
        return -1;
    if (status == 304)
        return exchange_reply_json(x, 304, NULL, err);
    if (status == 416) {
        err_set(err, ERR_INVALID, "the range is outside the file");
        (void) exchange_blame_status(x, 416);
        return exchange_blame(x, "Range", NULL, NULL);
    }
    return send_file(x, d, status, err);
}
