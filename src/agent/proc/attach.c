#include "agent/proc/attach.h"

#include <assert.h>
#include <stdlib.h>

static const struct conn_kind attach_kind;

struct reader *attach_new(struct conn *conn, const struct agent_request *request)
{
    struct reader *reader = calloc(1, sizeof *reader);

    if (!reader)
        return NULL;
    reader->conn = conn;
    reader->output = !(request->flags & (AGENT_NO_OUTPUT | AGENT_DETACH)) && !conn->left;
    reader->kill_on_close = request->flags & AGENT_KILL_ON_CLOSE;
    reader->detach = request->flags & AGENT_DETACH;
    conn->kind = &attach_kind;
    conn->data = reader;
    conn_be_patient(conn);
    return reader;
}

void attach_to(struct reader *reader, struct proc *proc)
{
    reader->proc = proc;
    proc_attach(proc, reader);
}

int attach_from(struct reader *reader, const struct agent_request *request, struct err *err)
{
    static const char *const names[] = { "from_stdout", "from_stderr" };
    const uint64_t from[] = { request->from_stdout, request->from_stderr };
    const struct proc *proc = reader->proc;

    for (int i = 0; i < PROC_STREAMS; i++) {
        uint64_t start = proc->live ? proc->live->streams[i].ring.start : proc->bytes[i];
        uint64_t end = proc->live ? proc->live->streams[i].ring.end : proc->bytes[i];

        if (reader->output && from[i] > end)
            return err_set(err, ERR_INVALID, "%s: byte %llu, but only %llu were written", names[i],
                           (unsigned long long) from[i], (unsigned long long) end);
        /* What is no longer kept shows as a jump of the offset. */
        reader->at[i] = from[i] > start ? from[i] : start;
    }
    return 0;
}

void attach_started(struct reader *reader)
{
    struct agent_reply reply = { .proc = reader->proc->handle,
                                 .pid = (uint32_t) reader->proc->pid };

    if (conn_reply(reader->conn, FRAME_REPLY, &reply) < 0)
        return;
    if (reader->detach)
        conn_end(reader->conn);
    conn_flush(reader->conn);
}

void attach_failed(struct reader *reader, const struct err *err)
{
    conn_fail(reader->conn, err);
}

void attach_pump(struct reader *reader)
{
    if (reader->proc->phase != PROC_STARTING && !reader->conn->closed)
        conn_flush(reader->conn);
}

void attach_spare(struct conn *conn)
{
    struct reader *reader = conn->kind == &attach_kind ? conn->data : NULL;

    if (reader)
        reader->kill_on_close = false;
}

uint64_t attach_pin(const struct reader *reader, int stream)
{
    return reader->output ? reader->at[stream] : RING_NO_PIN;
}

/* How far a stream goes for this reader: what a command's leftovers write after its end is not its
 * output. */
static uint64_t end_of(const struct proc *proc, int stream)
{
    if (!proc->live)
        return proc->bytes[stream];
    return proc->phase == PROC_FINAL ? proc->live->streams[stream].final
                                     : proc->live->streams[stream].ring.end;
}

static bool queue_output(struct conn *conn, struct reader *reader, int stream)
{
    static const enum frame_type types[] = { FRAME_STDOUT, FRAME_STDERR };
    struct ring *ring = &reader->proc->live->streams[stream].ring;
    uint64_t end = end_of(reader->proc, stream);
    uint8_t head[FRAME_HEAD + 8];
    uint32_t len;

    if (reader->at[stream] < ring->start)
        reader->at[stream] = ring->start;
    if (reader->at[stream] >= end)
        return false;
    len = end - reader->at[stream] < FRAME_DATA_MAX ? (uint32_t) (end - reader->at[stream])
                                                    : FRAME_DATA_MAX;
    frame_head_put(head, types[stream], len + 8);
    frame_put_u64(head + FRAME_HEAD, reader->at[stream]);
    if (conn_queue(conn, head, sizeof head) < 0)
        return false;
    reader->body = len;
    reader->stream = (uint8_t) stream;
    return true;
}

static bool attach_fill(struct conn *conn)
{
    struct reader *reader = conn->data;
    struct proc *proc = reader->proc;
    struct agent_reply reply = { .kind = 0 };
    int first = reader->stream ^ 1; /* by turns, so that neither starves */

    if (!proc || proc->phase == PROC_STARTING || reader->detach || reader->exited)
        return false;
    if (reader->output && proc->live &&
        (queue_output(conn, reader, first) || queue_output(conn, reader, first ^ 1)))
        return true;
    if (proc->phase != PROC_FINAL || conn->closed)
        return false;
    proc_describe(proc, &reply);
    reply.args = (struct texts){ .len = 0 };
    reply.cwd = reply.tag = reply.user = NULL;
    reply.total = conn->agent->refusals.total - proc->refused_at;
    reader->exited = true;
    if (conn_reply(conn, FRAME_EXIT, &reply) < 0)
        return false;
    conn_end(conn);
    conn_be_patient(conn); /* who read slowly until now may read the end slowly, too */
    return true;
}

static int attach_body(struct conn *conn, struct iovec iov[CONN_BODY_PARTS])
{
    struct reader *reader = conn->data;
    int parts = 0;

    if (reader->body > 0)
        (void) ring_peek(&reader->proc->live->streams[reader->stream].ring,
                         reader->at[reader->stream], reader->body, iov, &parts);
    return parts;
}

static void attach_sent(struct conn *conn, size_t n)
{
    struct reader *reader = conn->data;

    assert(n <= reader->body);
    reader->body -= (uint32_t) n;
    reader->at[reader->stream] += n;
    proc_drained(reader->proc);
}

/* What a client that is gone had sent before goes before the input of the clients that came later. */
static bool must_wait(const struct reader *reader)
{
    const struct proc_live *live = reader->proc->live;

    for (const struct reader *other = live ? live->readers : NULL; other; other = other->next)
        if (other->conn->left && other->conn->id < reader->conn->id)
            return true;
    return false;
}

static enum conn_taken take_stdin(struct reader *reader, struct conn *conn,
                                  const struct frame_head *head, const uint8_t *data,
                                  struct err *err)
{
    struct proc *proc = reader->proc;
    uint32_t done = conn->in_have - conn->in_left;
    uint32_t n;

    if (proc->live && !proc->live->has_in) {
        err_set(err, ERR_STATE, "stdin: this process was started without one");
        return CONN_BAD;
    }
    n = proc_stdin(proc, data + done, head->len - done);
    conn->in_left -= n;
    return conn->in_left == 0 ? CONN_DONE : CONN_LATER;
}

static enum conn_taken take_signal(struct reader *reader, const struct frame_head *head,
                                   const uint8_t *data, struct err *err)
{
    uint32_t number = head->len == 4 ? frame_get_u32(data) : 0;

    if (number < 1 || number > 64) {
        err_set(err, ERR_INVALID, "unknown signal: %u", number);
        return CONN_BAD;
    }
    /* No process is left to reach when it has just ended: not an error, it was on its way. */
    (void) proc_signal(reader->proc, number, false, 0, err);
    return CONN_DONE;
}

static enum conn_taken attach_frame(struct conn *conn, const struct frame_head *head, uint8_t *data,
                                    struct err *err)
{
    struct reader *reader = conn->data;

    if (!reader->proc)
        return CONN_DONE; /* it never started, and the caller is being told */
    if ((head->type == FRAME_STDIN || head->type == FRAME_STDIN_END) && must_wait(reader))
        return CONN_BEHIND;
    if (head->type == FRAME_STDIN)
        return take_stdin(reader, conn, head, data, err);
    if (head->type == FRAME_STDIN_END)
        return proc_stdin_end(reader->proc) ? CONN_DONE : CONN_LATER;
    if (head->type == FRAME_SIGNAL)
        return take_signal(reader, head, data, err);
    if (head->type == FRAME_RESIZE && head->len == 4) {
        proc_resize(reader->proc, frame_get_u16(data), frame_get_u16(data + 2));
        return CONN_DONE;
    }
    err_set(err, ERR_PROTOCOL, "frame '%s' is not allowed here", frame_name(head->type));
    return CONN_BAD;
}

static void wake_others(const struct reader *reader)
{
    const struct proc_live *live = reader->proc->live;

    for (struct reader *other = live ? live->readers : NULL; other; other = other->next)
        if (other != reader)
            conn_retry_soon(other->conn);
}

static void attach_closed(struct conn *conn)
{
    struct reader *reader = conn->data;
    struct proc *proc = reader->proc;

    if (proc) {
        bool unfinished = reader->kill_on_close && proc->phase != PROC_FINAL;

        if (conn->left)
            wake_others(reader);
        proc_detach(proc, reader);
        if (unfinished)
            proc_kill(proc);
    }
    conn->data = NULL;
    free(reader);
}

/* The process does not wait for a reader that is gone. */
static void attach_left(struct conn *conn)
{
    struct reader *reader = conn->data;

    reader->output = false;
    reader->body = 0;
    if (reader->proc && reader->proc->live)
        proc_drained(reader->proc);
}

/* Input for a process that does not end with this client. */
static bool attach_outlives(const struct conn *conn)
{
    const struct reader *reader = conn->data;

    return reader->proc && !reader->kill_on_close && reader->proc->phase != PROC_FINAL;
}

static const struct conn_kind attach_kind = {
    .frame = attach_frame,
    .fill = attach_fill,
    .body = attach_body,
    .sent = attach_sent,
    .closed = attach_closed,
    .left = attach_left,
    .outlives = attach_outlives,
};
