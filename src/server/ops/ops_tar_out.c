/* What the agent sends counts as hostile: the archive is made here, one entry at a time, so that none does harm where it is
 * unpacked. Memory is the same for any size. */
#include "server/ops/ops_tar.h"

#include "base/own.h"

#include <string.h>

#define PIECE 65536

struct tar_out {
    ops_tar_sink *sink;
    void *arg;
    struct tar_entry entry;
    char head[TAR_HEAD_MAX];
    size_t have;
    char buf[PIECE]; /* small things go out together */
};

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
            if (out->sink(out->arg, out->buf, PIECE, false, err) < 0)
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

static int put_head(struct tar_out *out, struct err *err)
{
    ssize_t n = tar_put_head(out->head, sizeof out->head, &out->entry, err);

    return n < 0 ? -1 : put(out, out->head, (size_t) n, err);
}

/* A file that the policy says is not to be read is not in the archive. */
static int put_entry(struct tar_out *out, struct ops *ops, const struct ops_file *file, bool single,
                     const char *prefix, struct stream *stream, const struct agent_reply *item,
                     struct err *err)
{
    struct err why;
    bool wanted;

    if (entry_of(item, &out->entry, err) < 0)
        return -1;
    wanted = single || ops_file_pack_may(ops, file, out->entry.path, &why) == 0;
    if (prefix[0] && snprintf(out->entry.path, sizeof out->entry.path, "%s/%s", prefix,
                              item->path) >= (int) sizeof out->entry.path)
        return err_set(err, ERR_TOO_BIG, "'%.80s': a path in it is longer than %u bytes",
                       file->path, TAR_PATH_MAX - 1);
    if (wanted && put_head(out, err) < 0)
        return -1;
    return out->entry.type == TAR_FILE ? put_content(out, stream, wanted, err) : 0;
}

struct tar_out *ops_tar_out_new(ops_tar_sink *sink, void *arg, struct err *err)
{
    struct tar_out *out = calloc(1, sizeof *out);

    if (!out) {
        err_set(err, ERR_NO_MEMORY, "no memory for an archive");
        return NULL;
    }
    out->sink = sink;
    out->arg = arg;
    return out;
}

int ops_tar_out_add(struct tar_out *out, struct ops *ops, const struct ops_file *file, bool single,
                    const char *prefix, struct stream *stream, struct err *err)
{
    struct agent_reply item;
    int r;

    if (prefix[0]) {
        out->entry = (struct tar_entry){ .type = TAR_DIR, .mode = 0755 };
        (void) snprintf(out->entry.path, sizeof out->entry.path, "%s", prefix);
        if (put_head(out, err) < 0)
            return -1;
    }
    while ((r = stream_item(stream, &item, err)) == 1)
        if (put_entry(out, ops, file, single, prefix, stream, &item, err) < 0)
            return -1;
    return r;
}

int ops_tar_out_end(struct tar_out *out, struct err *err)
{
    return put_zeros(out, TAR_END_SIZE, err) < 0
               ? -1
               : out->sink(out->arg, out->buf, out->have, true, err);
}

int ops_tar_pack(struct ops *ops, const struct ops_file *file, bool single, struct stream *stream,
                 ops_tar_sink *sink, void *arg, struct err *err)
{
    auto_free struct tar_out *out = ops_tar_out_new(sink, arg, err);

    return !out || ops_tar_out_add(out, ops, file, single, "", stream, err) < 0
               ? -1
               : ops_tar_out_end(out, err);
}
