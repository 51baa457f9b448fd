/* Trees as tar archives, both ways. The agent sends and takes entries (wire/agent.h, PACK and UNPACK); the archive is
 * made and read here, one entry at a time: a hostile sandbox cannot make an archive that does harm where
 * it is unpacked, and a hostile archive reaches no path that was not looked at. Memory is the same for any size. */
#include "surface/v1/v1.h"

#include "base/own.h"
#include "http/gzip.h"
#include "http/tar.h"
#include "server/ops/ops_tar.h"

#include <string.h>

#define PIECE 65536

_Static_assert(TAR_PATH_MAX == AGENT_PATH_MAX, "what tar.h lets pass, the agent takes");

/* ---- download ---- */

struct tar_out {
    struct exchange *x;
    struct gzip *gzip; /* NULL: as it is */
    struct tar_entry entry;
    char head[TAR_HEAD_MAX];
    size_t have;
    char buf[PIECE]; /* small things go out together */
};

static int to_client(void *context, const void *data, size_t len, struct err *err)
{
    return exchange_write(context, data, len, err);
}

static int pass_on(struct tar_out *out, const void *data, size_t len, bool end, struct err *err)
{
    if (out->gzip)
        return gzip_write(out->gzip, data, len, end, to_client, out->x, err);
    return exchange_write(out->x, data, len, err);
}

static int put(struct tar_out *out, const void *data, size_t len, struct err *err)
{
    const char *at = data;

    while (len > 0) {
        size_t n = PIECE - out->have < len ? PIECE - out->have : len;

        memcpy(out->buf + out->have, at, n);
        out->have += n;
        at += n;
        len -= n;
        if (out->have == PIECE) {
            out->have = 0;
            if (pass_on(out, out->buf, PIECE, false, err) < 0)
                return -1;
        }
    }
    return 0;
}

static int put_zeros(struct tar_out *out, size_t len, struct err *err)
{
    static const char zeros[TAR_END_SIZE];

    return put(out, zeros, len, err);
}

/* What the agent says counts as hostile: a name that tar.h would not let in does not go out either. */
static bool path_ok(const char *path)
{
    if (!path || !path[0] || strlen(path) >= TAR_PATH_MAX)
        return false;
    for (;;) {
        size_t len = strcspn(path, "/");

        if (len == 0 || len > 255 || (len == 1 && path[0] == '.') ||
            (len == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        if (!path[len])
            return true;
        path += len + 1;
    }
}

static int entry_of(const struct agent_reply *item, struct tar_entry *ret, struct err *err)
{
    static const enum tar_type types[] = {
        [ENTRY_FILE] = TAR_FILE, [ENTRY_DIR] = TAR_DIR, [ENTRY_LINK] = TAR_LINK
    };
    bool link = item->type == ENTRY_LINK;

    if (!path_ok(item->path) || (item->type != ENTRY_FILE && item->type != ENTRY_DIR && !link) ||
        (link && (!item->target || !item->target[0] || strlen(item->target) >= TAR_PATH_MAX)) ||
        item->size > INT64_MAX / 2)
        return err_set(err, ERR_PROTOCOL, "the sandbox sent an invalid entry");
    ret->type = types[item->type];
    ret->mode = item->mode & 0777; /* a setuid program of theirs must not become one of ours */
    ret->uid = item->uid;
    ret->gid = item->gid;
    ret->size = ret->type == TAR_FILE ? item->size : 0;
    ret->mtime = item->mtime_ns / 1000000000;
    (void) strcpy(ret->path, item->path);
    (void) strcpy(ret->target, link ? item->target : "");
    return 0;
}

/* The content of a file: as many bytes as were announced, or nothing at all if it is left out. */
static int put_content(struct tar_out *out, struct stream *stream, bool wanted, struct err *err)
{
    uint64_t left = out->entry.size;
    const void *data;
    uint32_t len;
    int r;

    while ((r = files_read_next(stream, &data, &len, err)) == 1) {
        if (len > left)
            return err_set(err, ERR_PROTOCOL, "the sandbox sent more than it announced");
        left -= len;
        if (wanted && put(out, data, len, err) < 0)
            return -1;
    }
    if (r == 0 && left > 0)
        return err_set(err, ERR_PROTOCOL, "the sandbox sent less than it announced");
    return r < 0 ? -1 : wanted ? put_zeros(out, tar_padding(out->entry.size), err) : 0;
}

/* A file that the policy says is not to be read is not in the archive. */
static int put_entry(struct tar_out *out, struct ops *ops, const struct ops_file *file, bool single,
                     struct stream *stream, const struct agent_reply *item, struct err *err)
{
    struct err why;
    bool wanted;
    ssize_t n;

    if (entry_of(item, &out->entry, err) < 0)
        return -1;
    wanted = single || ops_file_pack_may(ops, file, out->entry.path, &why) == 0;
    if (wanted) {
        n = tar_put_head(out->head, sizeof out->head, &out->entry, err);
        if (n < 0 || put(out, out->head, (size_t) n, err) < 0)
            return -1;
    }
    return out->entry.type == TAR_FILE ? put_content(out, stream, wanted, err) : 0;
}

static int put_tree(struct tar_out *out, struct ops *ops, const struct ops_file *file, bool single,
                    struct stream *stream, struct err *err)
{
    struct agent_reply item;
    int r;

    while ((r = stream_item(stream, &item, err)) == 1)
        if (put_entry(out, ops, file, single, stream, &item, err) < 0)
            return -1;
    if (r < 0 || put_zeros(out, TAR_END_SIZE, err) < 0 ||
        pass_on(out, out->buf, out->have, true, err) < 0)
        return -1;
    return exchange_end(out->x, err);
}

static const char *tar_type(bool gzip)
{
    return gzip ? "application/gzip" : "application/x-tar";
}

int v1_tar_get(struct exchange *x, struct err *err)
{
    auto_free struct tar_out *out = calloc(1, sizeof *out);
    auto_free struct file_info *info = calloc(1, sizeof *info);
    bool gzip = false, readable = false;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    struct stream stream;
    int r;

    if (!out || !info)
        return err_set(err, ERR_NO_MEMORY, "no memory for a download");
    if (v1_query_file(x, &file, err) < 0 || query_bool(x, "gzip", &gzip, err) < 0 ||
        query_bool(x, "skip_unreadable", &readable, err) < 0)
        return -1;
    out->x = x;
    if (gzip && !(out->gzip = gzip_new(err)))
        return -1;
    r = ops_file_pack(&ops, &file, readable ? AGENT_READABLE : 0, &stream, info, err);
    if (r == 0) {
        r = exchange_begin(x, 200, tar_type(gzip), -1, err);
        if (r == 0 && exchange_head(x)->method == METHOD_HEAD)
            r = exchange_end(x, err);
        else if (r == 0)
            r = put_tree(out, &ops, &file, info->type == ENTRY_FILE, &stream, err);
        stream_close(&stream);
    }
    gzip_free(out->gzip);
    return r;
}

/* ---- upload ---- */

static int take_body(struct exchange *x, struct ops_tar *in, char *buf, struct err *err)
{
    ssize_t n;

    while ((n = exchange_read(x, buf, PIECE, err)) > 0)
        if (ops_tar_take(in, buf, (size_t) n, err) < 0)
            return -1;
    return n < 0 ? -1 : 0;
}

int v1_tar_put(struct exchange *x, struct err *err)
{
    auto_free struct ops_tar *in = calloc(1, sizeof *in);
    auto_free char *buf = malloc(PIECE);
    uint64_t entries, bytes;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    bool parents = true;
    int r;

    if (!in || !buf)
        return err_set(err, ERR_NO_MEMORY, "no memory for an upload");
    if (v1_query_file(x, &file, err) < 0 || query_bool(x, "parents", &parents, err) < 0 ||
        exchange_accept_encoding(x, err) < 0)
        return -1;
    if (ops_tar_begin(&ops, &file, parents ? AGENT_PARENTS : 0, in, err) < 0)
        return -1;
    r = take_body(x, in, buf, err);
    if (ops_tar_end(in, r, &entries, &bytes, err) < 0)
        return -1;
    return exchange_reply_json(
        x, 200,
        json_pack("{s:I, s:I}", "entries", (json_int_t) entries, "bytes", (json_int_t) bytes), err);
}
