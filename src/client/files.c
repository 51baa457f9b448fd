#include "client/files.h"

#include "base/own.h"

#include <string.h>

#define MODE_DEFAULT UINT32_MAX

static void copy_text(char *out, size_t size, const char *text)
{
    (void) snprintf(out, size, "%s", text ? text : "");
}

static void info_from(struct file_info *info, const struct agent_reply *reply)
{
    copy_text(info->path, sizeof info->path, reply->path);
    copy_text(info->target, sizeof info->target, reply->target);
    copy_text(info->owner, sizeof info->owner, reply->owner);
    copy_text(info->group, sizeof info->group, reply->group);
    info->type = (enum agent_entry_type) reply->type;
    info->mode = reply->mode;
    info->uid = reply->uid;
    info->gid = reply->gid;
    info->size = reply->size;
    info->mtime_ns = reply->mtime_ns;
}

static uint32_t mode_field(uint32_t mode)
{
    return mode == MODE_DEFAULT ? 0 : (mode & 07777) | AGENT_MODE_SET;
}

static int open_as(const struct files_at *at, struct agent_request *request, struct stream *ret,
                   struct err *err)
{
    bool told = request->op == AGENT_STAT || request->op == AGENT_LIST ||
                request->op == AGENT_WATCH || request->op == AGENT_WRITE;

    request->user = at->user;
    if (at->as_root)
        request->flags |= agent_ops[request->op].flags & AGENT_AS_ROOT;
    if (told && at->attr_prefix)
        request->name = at->attr_prefix;
    if (request->op == AGENT_WRITE && at->attr_prefix)
        request->attrs = at->attrs;
    return stream_open(ret, at->link, at->sandbox, request, err);
}

/* Operations that continue behind their REPLY: the stream is the caller's to close. ret_info: may be NULL. */
/* The first answer on a connection, which is closed if that is an error. */
static int begun(struct stream *ret, struct file_info *ret_info, struct err *err)
{
    struct agent_reply reply;

    if (stream_reply(ret, FRAME_REPLY, &reply, err) < 0) {
        stream_close(ret);
        return -1;
    }
    if (ret_info)
        info_from(ret_info, &reply);
    return 0;
}

static int begin(const struct files_at *at, struct agent_request *request, struct stream *ret,
                 struct file_info *ret_info, struct err *err)
{
    return open_as(at, request, ret, err) < 0 ? -1 : begun(ret, ret_info, err);
}

/* Operations of one question and one REPLY. `each` may look at the reply while it lasts. */
static int ask(const struct files_at *at, struct agent_request *request, exec_item_fn each,
               void *context, struct err *err)
{
    struct agent_reply reply;
    struct stream stream;
    int r;

    if (open_as(at, request, &stream, err) < 0)
        return -1;
    r = stream_reply(&stream, FRAME_REPLY, &reply, err);
    if (r == 0 && each)
        r = each(context, &reply, err);
    stream_close(&stream);
    return r;
}

static int ask_items(const struct files_at *at, struct agent_request *request, exec_item_fn each,
                     void *context, bool *ret_truncated, struct err *err)
{
    struct agent_reply reply;
    struct stream stream;
    int r;

    if (open_as(at, request, &stream, err) < 0)
        return -1;
    while ((r = stream_item(&stream, &reply, err)) == 1)
        if (each(context, &reply, err) < 0) {
            r = -1;
            break;
        }
    if (r == 0 && ret_truncated)
        *ret_truncated = reply.flags & AGENT_TRUNCATED;
    stream_close(&stream);
    return r;
}

static int keep_info(void *context, const struct agent_reply *reply, struct err *err)
{
    (void) err;
    info_from(context, reply);
    return 0;
}

static int keep_count(void *context, const struct agent_reply *reply, struct err *err)
{
    (void) err;
    if (context)
        *(uint64_t *) context = reply->count;
    return 0;
}

static int keep_existed(void *context, const struct agent_reply *reply, struct err *err)
{
    (void) err;
    if (context)
        *(bool *) context = reply->flags & AGENT_EXISTED;
    return 0;
}

int files_stat(const struct files_at *at, const char *path, uint32_t flags, struct file_info *ret,
               struct err *err)
{
    struct agent_request request = { .op = AGENT_STAT, .path = path, .flags = flags };

    return ask(at, &request, keep_info, ret, err);
}

int files_list(const struct files_at *at, const char *path, uint32_t depth, uint64_t limit,
               exec_item_fn each, void *context, bool *ret_truncated, struct err *err)
{
    struct agent_request request = {
        .op = AGENT_LIST, .path = path, .depth = depth, .limit = limit
    };

    return ask_items(at, &request, each, context, ret_truncated, err);
}

int files_search(const struct files_at *at, const struct agent_request *request, exec_item_fn each,
                 void *context, bool *ret_truncated, struct err *err)
{
    struct agent_request copy = *request;

    if (copy.op != AGENT_GLOB && copy.op != AGENT_GREP)
        return err_set(err, ERR_INVALID, "a search is glob or grep");
    return ask_items(at, &copy, each, context, ret_truncated, err);
}

int files_entries(const struct files_at *at, const struct agent_request *request, exec_item_fn each,
                  void *context, bool *ret_truncated, struct err *err)
{
    struct agent_request copy = *request;

    if (copy.op == AGENT_STAT)
        return ask(at, &copy, each, context, err);
    if (copy.op != AGENT_LIST)
        return err_set(err, ERR_INVALID, "entries come from stat or list");
    return ask_items(at, &copy, each, context, ret_truncated, err);
}

int files_read_open(const struct files_at *at, const char *path, uint64_t offset, uint64_t length,
                    struct stream *ret, struct file_info *ret_info, struct err *err)
{
    struct agent_request request = {
        .op = AGENT_READ, .path = path, .offset = offset, .length = length
    };

    if (open_as(at, &request, ret, err) < 0)
        return -1;
    ret->exact = length >= FILES_PIPED;
    return begun(ret, ret_info, err);
}

int files_read_piped(struct stream *stream, uint32_t *ret_len, struct err *err)
{
    struct frame frame;
    int rc = stream_data_head(stream, ret_len, &frame, err);

    if (rc == 0 && frame.type != FRAME_DATA_END)
        return stream_unexpected(&frame, err);
    /* Without end they would keep us from seeing that the client is gone. */
    if (rc == 1 && *ret_len == 0)
        return err_set(err, ERR_PROTOCOL, "the agent sent a frame of a file without data");
    return rc;
}

int files_read_next(struct stream *stream, const void **ret_data, uint32_t *ret_len,
                    struct err *err)
{
    struct frame frame;

    if (stream_next(stream, &frame, err) < 0)
        return -1;
    if (frame.type == FRAME_DATA_END)
        return 0;
    if (frame.type != FRAME_DATA)
        return stream_unexpected(&frame, err);
    *ret_data = frame.data;
    *ret_len = frame.len;
    return 1;
}

int files_write_open(const struct files_at *at, const char *path, uint32_t mode, uint32_t flags,
                     struct stream *ret, struct err *err)
{
    struct agent_request request = {
        .op = AGENT_WRITE, .path = path, .mode = mode_field(mode), .flags = flags
    };

    return begin(at, &request, ret, NULL, err);
}

int files_write_next(struct stream *stream, const void *data, size_t len, struct err *err)
{
    const char *at = data;

    while (len > 0) {
        uint32_t part = len < FRAME_DATA_MAX ? (uint32_t) len : FRAME_DATA_MAX;

        if (stream_send(stream, FRAME_DATA, at, part, err) < 0)
            return -1;
        at += part;
        len -= part;
    }
    return 0;
}

int files_write_piped(struct stream *stream, int pipe_fd, uint32_t len, struct err *err)
{
    return stream_send_piped(stream, FRAME_DATA, pipe_fd, len, err);
}

int files_write_end(struct stream *stream, struct file_info *ret_info, struct err *err)
{
    struct agent_reply reply;

    if (stream_send(stream, FRAME_DATA_END, NULL, 0, err) < 0 ||
        stream_reply(stream, FRAME_END, &reply, err) < 0)
        return -1;
    if (ret_info)
        info_from(ret_info, &reply);
    return 0;
}

int files_mkdir(const struct files_at *at, const char *path, uint32_t mode, uint32_t flags,
                bool *ret_existed, struct err *err)
{
    struct agent_request request = {
        .op = AGENT_MKDIR, .path = path, .mode = mode_field(mode), .flags = flags
    };

    return ask(at, &request, keep_existed, ret_existed, err);
}

int files_move(const struct files_at *at, const char *path, const char *to, uint32_t flags,
               struct err *err)
{
    struct agent_request request = { .op = AGENT_MOVE, .path = path, .to = to, .flags = flags };

    return ask(at, &request, NULL, NULL, err);
}

int files_remove(const struct files_at *at, const char *path, uint32_t flags, uint64_t *ret_count,
                 struct err *err)
{
    struct agent_request request = { .op = AGENT_REMOVE, .path = path, .flags = flags };

    return ask(at, &request, keep_count, ret_count, err);
}

int files_chmod(const struct files_at *at, const char *path, uint32_t mode, uint32_t flags,
                struct err *err)
{
    struct agent_request request = {
        .op = AGENT_CHMOD, .path = path, .mode = mode_field(mode), .flags = flags
    };

    return ask(at, &request, NULL, NULL, err);
}

static void first_line(char *out, size_t size, const uint8_t *data, uint32_t len)
{
    const uint8_t *end = memchr(data, '\n', len);

    if (end)
        len = (uint32_t) (end - data);
    (void) snprintf(out, size, "%.*s", (int) len, (const char *) data);
}

int files_symlink(const struct files_at *at, const char *target, const char *path, struct err *err)
{
    const char *const words[] = { "ln", "-sfnT", "--", target, path };
    auto_free char *buffer = NULL;
    struct agent_request request = { .user = at->user };
    struct exec_event event = { .type = EXEC_STDOUT };
    struct exec exec;
    char said[160] = "";
    int r;

    if (exec_texts(words, ARRAY_LEN(words), &request.args, &buffer, err) < 0 ||
        exec_start(&exec, at->link, at->sandbox, &request, err) < 0)
        return -1;
    while ((r = exec_next(&exec, &event, err)) == 1 && event.type != EXEC_END)
        if (event.type == EXEC_STDERR && !said[0])
            first_line(said, sizeof said, event.data, event.len);
    exec_close(&exec);
    if (r < 0)
        return -1;
    if (event.result.ended != EXIT_CODE || event.result.exit_code != 0)
        return err_set(err, ERR_DENIED, "%s", said[0] ? said : "ln failed");
    return 0;
}

int files_watch_open(const struct files_at *at, const char *path, uint32_t flags,
                     struct stream *ret, struct err *err)
{
    struct agent_request request = { .op = AGENT_WATCH, .path = path, .flags = flags };

    if (begin(at, &request, ret, NULL, err) < 0)
        return -1;
    ret->patience_ms = -1; /* events come when they come */
    return 0;
}

int files_watch_poll(struct stream *stream, struct agent_reply *ret, struct err *err)
{
    struct frame frame;
    int r = stream_poll(stream, &frame, err);

    if (r <= 0)
        return r;
    if (frame.type == FRAME_END)
        return err_set(err, ERR_NO_PATH, "the watched file or directory is gone");
    if (frame.type != FRAME_ITEM)
        return stream_unexpected(&frame, err);
    return agent_reply_decode(ret, frame.data, frame.len, err) < 0 ? -1 : 1;
}

/* ---- trees ---- */

int files_pack_open(const struct files_at *at, const char *path, uint32_t flags, struct stream *ret,
                    struct file_info *ret_info, struct err *err)
{
    struct agent_request request = { .op = AGENT_PACK, .path = path, .flags = flags };

    return begin(at, &request, ret, ret_info, err);
}

int files_unpack_open(const struct files_at *at, const char *path, uint32_t flags,
                      struct stream *ret, struct err *err)
{
    struct agent_request request = {
        .op = AGENT_UNPACK, .path = path, .flags = flags, .owner = at->owner, .group = at->group
    };

    return begin(at, &request, ret, NULL, err);
}

static int send_record(struct stream *stream, enum frame_type type, const struct agent_reply *reply,
                       struct err *err)
{
    uint8_t data[4 * AGENT_PATH_MAX + 512];
    ssize_t len = agent_reply_encode(reply, data, sizeof data, err);

    return len < 0 ? -1 : stream_send(stream, type, data, (uint32_t) len, err);
}

int files_unpack_entry(struct stream *stream, const struct agent_reply *entry, struct err *err)
{
    return send_record(stream, FRAME_ITEM, entry, err);
}

int files_unpack_entry_end(struct stream *stream, struct err *err)
{
    return stream_send(stream, FRAME_DATA_END, NULL, 0, err);
}

int files_unpack_end(struct stream *stream, uint64_t *ret_entries, uint64_t *ret_bytes,
                     struct err *err)
{
    struct agent_reply reply = { 0 };

    if (send_record(stream, FRAME_END, &reply, err) < 0 ||
        stream_reply(stream, FRAME_END, &reply, err) < 0)
        return -1;
    *ret_entries = reply.count;
    *ret_bytes = reply.total;
    return 0;
}
