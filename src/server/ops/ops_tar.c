#include "server/ops/ops_tar.h"

int ops_tar_begin(struct ops *ops, const struct ops_file *file, uint32_t flags, struct ops_tar *ret,
                  struct err *err)
{
    *ret = (struct ops_tar){ .ops = ops };
    return ops_tar_open(ret, file, flags, err);
}

int ops_tar_open(struct ops_tar *in, const struct ops_file *file, uint32_t flags, struct err *err)
{
    in->file = file;
    if (ops_file_unpack(in->ops, file, flags, &in->stream, err) < 0)
        return -1;
    in->open = true;
    return 0;
}

static int send_entry(struct ops_tar *in, struct err *err)
{
    static const enum agent_entry_type types[] = { [TAR_FILE] = ENTRY_FILE,
                                                   [TAR_DIR] = ENTRY_DIR,
                                                   [TAR_LINK] = ENTRY_LINK,
                                                   [TAR_SAME] = ENTRY_FILE };
    const struct tar_entry *e = &in->entry;
    const int64_t most = INT64_MAX / 1000000000 - 1;
    int64_t mtime = e->mtime > most ? most : e->mtime < -most ? -most : e->mtime;
    struct agent_reply item = { .path = e->path,
                                .type = types[e->type],
                                .mode = e->mode,
                                .size = e->size,
                                .mtime_ns = mtime * 1000000000,
                                .target = e->target[0] ? e->target : NULL };

    if (ops_file_unpack_may(in->ops, in->file, e->path, err) < 0)
        return -1;
    if (e->type == TAR_SAME && ops_file_unpack_may(in->ops, in->file, e->target, err) < 0)
        return -1;
    return files_unpack_entry(&in->stream, &item, err);
}

static int take_entry(struct ops_tar *in, struct err *err)
{
    int r = 1;

    in->entry = in->tar.entry;
    if (in->pick)
        r = in->pick(in, err);
    in->left_out = r == 0;
    return r > 0 ? send_entry(in, err) : r;
}

int ops_tar_take(struct ops_tar *in, const char *data, size_t len, struct err *err)
{
    for (size_t at = 0;;) {
        struct slice content;
        size_t used;
        int r = 0, event = tar_read(&in->tar, data + at, len - at, &used, &content, err);

        if (event < 0)
            return -1;
        at += used;
        if (event == TAR_MORE && at == len)
            return 0;
        if (event == TAR_ENTRY)
            r = take_entry(in, err);
        else if (event == TAR_DATA && !in->left_out)
            r = files_write_next(&in->stream, content.at, content.len, err);
        else if (event == TAR_ENTRY_END && !in->left_out && in->entry.type == TAR_FILE)
            r = files_unpack_entry_end(&in->stream, err);
        if (r < 0)
            return -1;
    }
}

int ops_tar_end(struct ops_tar *in, int failed, uint64_t *ret_entries, uint64_t *ret_bytes,
                struct err *err)
{
    int r = failed < 0 ? -1 : tar_read_end(&in->tar, err);
    struct err why;

    *ret_entries = *ret_bytes = 0;
    if (!in->open)
        return r;
    if (r < 0) {
        why = *err;
        (void) ops_file_unpack_end(in->ops, in->file, &in->stream, &why, ret_entries, ret_bytes,
                                   err);
        *err = why;
    } else {
        r = ops_file_unpack_end(in->ops, in->file, &in->stream, NULL, ret_entries, ret_bytes, err);
    }
    stream_close(&in->stream);
    return r;
}
