#include "client/exec.h"

#include "base/own.h"

#include <string.h>

int exec_start_on(struct exec *exec, int fd, int patience_ms, const struct agent_request *request,
                  struct err *err)
{
    struct agent_request copy = *request;
    struct agent_reply reply;

    *exec = EXEC_NONE;
    copy.op = AGENT_EXEC;
    if (stream_start(&exec->stream, fd, patience_ms, &copy, err) < 0)
        return -1;
    if (stream_reply(&exec->stream, FRAME_REPLY, &reply, err) < 0) {
        exec_close(exec);
        return -1;
    }
    exec->proc = reply.proc;
    exec->pid = reply.pid;
    return 0;
}

int exec_start(struct exec *exec, struct link *link, const char *sandbox,
               const struct agent_request *request, struct err *err)
{
    int fd;

    *exec = EXEC_NONE;
    if (link_connect(link, sandbox, &fd, err) < 0)
        return -1;
    return exec_start_on(exec, fd, link->patience_ms, request, err);
}

int exec_attach_on(struct exec *exec, int fd, int patience_ms, const struct agent_request *request,
                   struct err *err)
{
    struct agent_request copy = *request;

    *exec = EXEC_NONE;
    copy.op = AGENT_ATTACH;
    exec->proc = request->proc;
    exec->next_offset[EXEC_STDOUT] = request->from_stdout;
    exec->next_offset[EXEC_STDERR] = request->from_stderr;
    return stream_start(&exec->stream, fd, patience_ms, &copy, err);
}

int exec_attach(struct exec *exec, struct link *link, const char *sandbox,
                const struct agent_request *request, struct err *err)
{
    int fd;

    *exec = EXEC_NONE;
    if (link_connect(link, sandbox, &fd, err) < 0)
        return -1;
    return exec_attach_on(exec, fd, link->patience_ms, request, err);
}

void exec_close(struct exec *exec)
{
    stream_close(&exec->stream);
}

static int output_event(struct exec *exec, const struct frame *frame, struct exec_event *ret,
                        struct err *err)
{
    enum exec_event_type type = frame->type == FRAME_STDOUT ? EXEC_STDOUT : EXEC_STDERR;
    uint64_t *next = &exec->next_offset[type], offset;

    if (frame->len < 8)
        return err_set(err, ERR_PROTOCOL, "the agent sent output without its offset");
    offset = frame_get_u64(frame->data);
    if (offset < *next || offset > UINT64_MAX - frame->len)
        return err_set(err, ERR_PROTOCOL, "the agent sent output of the wrong place");
    *ret = (struct exec_event){ .type = type,
                                .data = frame->data + 8,
                                .len = frame->len - 8,
                                .offset = offset,
                                .missed = offset - *next };
    *next = offset + ret->len;
    return 1;
}

static int end_event(struct exec *exec, const struct frame *frame, struct exec_event *ret,
                     struct err *err)
{
    struct agent_reply r;

    if (agent_reply_decode(&r, frame->data, frame->len, err) < 0)
        return err_wrap(err, "the agent's exit status");
    if (r.ended == EXIT_NONE)
        return err_set(err, ERR_PROTOCOL, "the agent sent an exit status without its kind");
    *ret = (struct exec_event){ .type = EXEC_END,
                                .result = { .ended = (enum agent_exit) r.ended,
                                            .exit_code = r.exit_code,
                                            .signal = r.signal,
                                            .wall_ms = r.wall_ms,
                                            .cpu_ms = r.cpu_ms,
                                            .peak_bytes = r.peak_bytes,
                                            .stdout_bytes = r.stdout_bytes,
                                            .stderr_bytes = r.stderr_bytes,
                                            .refused_calls = r.total,
                                            .beside = r.flags & AGENT_BESIDE,
                                            .agent_cpu_ms = r.agent_cpu_ms } };
    exec->ended = true;
    return 1;
}

static int frame_event(struct exec *exec, const struct frame *frame, struct exec_event *ret,
                       struct err *err)
{
    if (frame->type == FRAME_STDOUT || frame->type == FRAME_STDERR)
        return output_event(exec, frame, ret, err);
    if (frame->type == FRAME_EXIT)
        return end_event(exec, frame, ret, err);
    return stream_unexpected(frame, err);
}

int exec_poll(struct exec *exec, struct exec_event *ret, struct err *err)
{
    struct frame frame;
    int r = stream_poll(&exec->stream, &frame, err);

    return r == 1 ? frame_event(exec, &frame, ret, err) : r;
}

int exec_next(struct exec *exec, struct exec_event *ret, struct err *err)
{
    struct frame frame;

    exec->stream.patience_ms = -1;
    if (stream_next(&exec->stream, &frame, err) < 0)
        return -1;
    return frame_event(exec, &frame, ret, err);
}

int exec_stdin(struct exec *exec, const void *data, uint32_t len)
{
    return stream_queue(&exec->stream, FRAME_STDIN, data, len);
}

int exec_stdin_end(struct exec *exec)
{
    return stream_queue(&exec->stream, FRAME_STDIN_END, NULL, 0);
}

int exec_resize(struct exec *exec, uint16_t rows, uint16_t columns)
{
    uint8_t data[4];

    frame_put_u16(data, rows);
    frame_put_u16(data + 2, columns);
    return stream_queue(&exec->stream, FRAME_RESIZE, data, sizeof data);
}

int exec_signal(struct exec *exec, uint32_t number)
{
    uint8_t data[4];

    frame_put_u32(data, number);
    return stream_queue(&exec->stream, FRAME_SIGNAL, data, sizeof data);
}

int exec_flush(struct exec *exec, struct err *err)
{
    return stream_flush(&exec->stream, err);
}

int exec_kill(struct link *link, const char *sandbox, uint32_t proc, uint32_t number,
              uint32_t flags, uint64_t *ret_count, struct err *err)
{
    struct agent_request request = {
        .op = AGENT_SIGNAL, .proc = proc, .signal = number, .flags = flags
    };
    struct agent_reply reply;
    struct stream stream;
    int r;

    if (stream_open(&stream, link, sandbox, &request, err) < 0)
        return -1;
    r = stream_reply(&stream, FRAME_REPLY, &reply, err);
    if (r == 0 && ret_count)
        *ret_count = reply.count;
    stream_close(&stream);
    return r;
}

int exec_texts(const char *const *items, size_t count, struct texts *ret_texts, char **ret_buffer,
               struct err *err)
{
    size_t len = 0, used = 0;
    char *buffer;

    for (size_t i = 0; i < count; i++)
        len += strlen(items[i]) + 1;
    if (len > AGENT_TEXT_MAX)
        return err_set(err, ERR_TOO_BIG, "arguments or environment of %zu bytes, at most %u", len,
                       AGENT_TEXT_MAX);
    buffer = malloc(len + 1);
    if (!buffer)
        return err_set(err, ERR_NO_MEMORY, "no memory for the arguments");
    for (size_t i = 0; i < count; i++) {
        size_t part = strlen(items[i]) + 1;

        memcpy(buffer + used, items[i], part);
        used += part;
    }
    *ret_texts = (struct texts){ .data = buffer, .len = (uint32_t) len, .count = (uint32_t) count };
    *ret_buffer = buffer;
    return 0;
}

static int items(struct link *link, const char *sandbox, const struct agent_request *request,
                 exec_item_fn each, void *context, struct err *err)
{
    struct agent_reply reply;
    struct stream stream;
    int r;

    if (stream_open(&stream, link, sandbox, request, err) < 0)
        return -1;
    while ((r = stream_item(&stream, &reply, err)) == 1)
        if (each(context, &reply, err) < 0) {
            r = -1;
            break;
        }
    stream_close(&stream);
    return r;
}

int exec_items(struct link *link, const char *sandbox, enum agent_op op, exec_item_fn each,
               void *context, struct err *err)
{
    struct agent_request request = { .op = op };

    return items(link, sandbox, &request, each, context, err);
}

int exec_find(struct link *link, const char *sandbox, const struct agent_request *which,
              exec_item_fn each, void *context, struct err *err)
{
    struct agent_request request = {
        .op = AGENT_PROCS, .proc = which->proc, .pid = which->pid, .tag = which->tag
    };

    return items(link, sandbox, &request, each, context, err);
}

int exec_info(struct link *link, const char *sandbox, struct exec_info *ret, struct err *err)
{
    struct agent_request request = { .op = AGENT_INFO };
    struct agent_reply reply;
    struct stream stream;
    int r;

    if (stream_open(&stream, link, sandbox, &request, err) < 0)
        return -1;
    r = stream_reply(&stream, FRAME_REPLY, &reply, err);
    if (r == 0)
        *ret = (struct exec_info){ .uptime_ms = reply.uptime_ms,
                                   .processes = reply.count,
                                   .refusals = reply.total,
                                   .oom_kills = reply.oom_kills };
    stream_close(&stream);
    return r;
}

int exec_resumed(struct link *link, const char *sandbox, uint64_t slept_ms, struct err *err)
{
    struct agent_request request = { .op = AGENT_RESUMED, .name = "fork", .limit = slept_ms };
    struct agent_reply reply;
    struct stream stream;
    int r;

    if (stream_open(&stream, link, sandbox, &request, err) < 0)
        return -1;
    r = stream_reply(&stream, FRAME_REPLY, &reply, err);
    stream_close(&stream);
    return r;
}

int exec_dial(struct link *link, const char *sandbox, uint16_t port, int *ret_fd, struct err *err)
{
    struct agent_request request = { .op = AGENT_DIAL, .port = port };
    struct agent_reply reply;
    struct stream stream;
    int r;

    if (stream_open(&stream, link, sandbox, &request, err) < 0)
        return -1;
    stream.exact = true;
    r = stream_reply(&stream, FRAME_REPLY, &reply, err);
    if (r == 0)
        *ret_fd = take_fd(&stream.fd);
    stream_close(&stream);
    return r;
}

int exec_owner(struct link *link, const char *sandbox, const char *user,
               const struct exec_ends *ends, struct exec_owner *ret, struct err *err)
{
    struct agent_request request = { .op = AGENT_OWNER,
                                     .flags = ends->datagram ? AGENT_DATAGRAM : 0,
                                     .user = user,
                                     .port = ends->port,
                                     .peer = ends->peer,
                                     .peer_port = ends->peer_port };
    struct agent_reply reply;
    struct stream stream;
    int r;

    if (stream_open(&stream, link, sandbox, &request, err) < 0)
        return -1;
    r = stream_reply(&stream, FRAME_REPLY, &reply, err);
    if (r == 0 && reply.count == 0)
        r = err_set(err, ERR_NO_PATH, "unknown connection");
    if (r == 0) {
        *ret = (struct exec_owner){ .uid = reply.uid, .pid = reply.pid };
        (void) snprintf(ret->program, sizeof ret->program, "%s",
                        reply.program ? reply.program : "");
    }
    stream_close(&stream);
    return r;
}
