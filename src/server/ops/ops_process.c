/* Processes and ports of a sandbox that are not being followed. */
#include "server/ops/ops_own.h"

#include "base/io.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#define STDIN_PIECE       32768
#define STDIN_PATIENCE_MS 10000

static int items(struct ops *ops, const char *sandbox, enum agent_op op, exec_item_fn each,
                 void *context, struct err *err)
{
    struct link link;
    int r;

    if (ops_box_open(ops, sandbox, &link, NULL, err) < 0)
        return -1;
    r = exec_items(&link, sandbox, op, each, context, err);
    ops_box_close(ops, &link, r, err);
    return r;
}

int ops_process_list(struct ops *ops, const char *sandbox, exec_item_fn each, void *context,
                     struct err *err)
{
    return items(ops, sandbox, AGENT_PROCS, each, context, err);
}

int ops_port_list(struct ops *ops, const char *sandbox, exec_item_fn each, void *context,
                  struct err *err)
{
    return items(ops, sandbox, AGENT_PORTS, each, context, err);
}

int ops_refusal_list(struct ops *ops, const char *sandbox, exec_item_fn each, void *context,
                     struct err *err)
{
    return items(ops, sandbox, AGENT_REFUSALS, each, context, err);
}

static int take_process(void *arg, const struct agent_reply *item, struct err *err)
{
    struct ops_process *one = arg;
    bool running = item->flags & AGENT_RUNNING;

    (void) err;
    if (!one->running || running)
        *one = (struct ops_process){ .proc = item->proc,
                                     .pid = item->pid,
                                     .running = running,
                                     .pty = item->flags & AGENT_IS_PTY,
                                     .takes_stdin = item->flags & AGENT_TAKES_STDIN };
    return 0;
}

static int find(struct ops *ops, const char *sandbox, const struct agent_request *which,
                struct ops_process *ret, struct err *err)
{
    struct ops_process one = { .proc = 0 };
    struct link link;
    int r;

    if (ops_box_open(ops, sandbox, &link, NULL, err) < 0)
        return -1;
    r = exec_find(&link, sandbox, which, take_process, &one, err);
    ops_box_close(ops, &link, r, err);
    if (r < 0)
        return -1;
    if (one.proc != 0)
        *ret = one;
    else if (which->tag)
        return err_set(err, ERR_NO_PROCESS, "process with tag '%.128s' not found", which->tag);
    else if (which->pid)
        return err_set(err, ERR_NO_PROCESS, "process with pid %u not found", which->pid);
    else
        return err_set(err, ERR_NO_PROCESS, "there is no process %u", which->proc);
    return 0;
}

int ops_process_find(struct ops *ops, const char *sandbox, uint32_t pid, const char *tag,
                     struct ops_process *ret, struct err *err)
{
    struct agent_request which = { .pid = pid, .tag = tag };

    return find(ops, sandbox, &which, ret, err);
}

int ops_process_signal(struct ops *ops, const char *sandbox, uint32_t proc, uint32_t number,
                       bool all, uint64_t *ret_count, struct err *err)
{
    struct link link;
    int r;

    if (ops_box_open(ops, sandbox, &link, NULL, err) < 0)
        return -1;
    r = exec_kill(&link, sandbox, proc, number, all ? AGENT_ALL : 0, ret_count, err);
    ops_box_close(ops, &link, r, err);
    ops_audit(ops, "exec.signal", sandbox, r < 0 ? err : NULL);
    return r;
}

/* The agent reads frame by frame, and the next one only when the process took the one before: so when an
 * empty frame behind the data has left our side, the data has arrived. */
static int settle(struct ops_run *run, struct err *err)
{
    uint64_t end = io_now_ms() + STDIN_PATIENCE_MS;

    /* A connection that has ended means that the process has: what was sent was all that it wanted. */
    if (stream_send(&run->exec.stream, FRAME_STDIN, NULL, 0, err) < 0)
        return err->kind == ERR_UNAVAILABLE ? 0 : -1;
    for (;;) {
        struct exec_event event;
        int waiting = 0, r = exec_poll(&run->exec, &event, err);

        if (r < 0)
            return -1;
        if (r == 1)
            return 0;
        if (ioctl(run->exec.stream.fd, SIOCOUTQ, &waiting) < 0)
            return err_sys(err, errno, "look at what was sent");
        if (waiting == 0)
            return 0;
        if (io_now_ms() > end)
            return err_set(err, ERR_TIMEOUT, "the process does not read its stdin");
        (void) poll(NULL, 0, 1);
    }
}

/* No room for so long is the process's doing, not the sandbox's. */
static int send_piece(struct ops_run *run, enum frame_type type, const char *at, uint32_t len,
                      struct err *err)
{
    uint64_t begin = io_now_ms();

    if (stream_send(&run->exec.stream, type, at, len, err) == 0)
        return 0;
    if (err->kind == ERR_UNAVAILABLE && io_now_ms() - begin >= STDIN_PATIENCE_MS)
        return err_set(err, ERR_TIMEOUT, "the process does not read its stdin");
    return -1;
}

static int send_stdin(struct ops_run *run, const char *at, size_t len, bool end, struct err *err)
{
    while (len > 0) {
        uint32_t piece = len < STDIN_PIECE ? (uint32_t) len : STDIN_PIECE;

        if (send_piece(run, FRAME_STDIN, at, piece, err) < 0)
            return -1;
        at += piece;
        len -= piece;
    }
    if (end && send_piece(run, FRAME_STDIN_END, NULL, 0, err) < 0)
        return -1;
    return settle(run, err);
}

int ops_process_stdin(struct ops *ops, const char *sandbox, uint32_t proc, const void *data,
                      size_t len, bool end, struct err *err)
{
    struct agent_request which = { .proc = proc };
    struct ops_process one;
    struct ops_run run;
    int r;

    /* One that has ended takes nothing; one that ends behind this may have ended because of it. */
    if (find(ops, sandbox, &which, &one, err) < 0)
        return -1;
    if (!one.running)
        return err_set(err, ERR_STATE, "the process has ended");
    if (ops_run_attach(ops, sandbox, proc, 0, 0, AGENT_NO_OUTPUT, &run, err) < 0)
        return -1;
    run.exec.stream.patience_ms = STDIN_PATIENCE_MS;
    r = send_stdin(&run, data, len, end, err);
    ops_run_close(&run);
    ops_audit(ops, "exec.stdin", sandbox, r < 0 ? err : NULL);
    return r;
}

int ops_process_resize(struct ops *ops, const char *sandbox, uint32_t proc, uint16_t rows,
                       uint16_t columns, struct err *err)
{
    struct ops_run run;
    int r;

    if (ops_run_attach(ops, sandbox, proc, 0, 0, AGENT_NO_OUTPUT, &run, err) < 0)
        return -1;
    run.exec.stream.patience_ms = STDIN_PATIENCE_MS;
    (void) exec_resize(&run.exec, rows, columns); /* nothing is queued before it: there is room */
    r = exec_flush(&run.exec, err);
    if (r == 0)
        r = settle(&run, err);
    ops_run_close(&run);
    return r;
}

int ops_port_dial(struct ops *ops, const char *sandbox, uint16_t port, int *ret_fd, struct err *err)
{
    struct link link;
    int r;

    if (ops_box_open(ops, sandbox, &link, NULL, err) < 0)
        return -1;
    r = exec_dial(&link, sandbox, port, ret_fd, err);
    ops_box_close(ops, &link, r, err);
    return r;
}
