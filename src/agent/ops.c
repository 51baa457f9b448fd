#include "agent/ops.h"

#include "agent/core/rights.h"
#include "agent/door.h"
#include "agent/proc/attach.h"
#include "agent/proc/memory.h"
#include "agent/proc/proc.h"
#include "agent/proc/spare.h"
#include "agent/proc/tree.h"
#include "agent/resumed.h"
#include "agent/worker/worker.h"
#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define WORKER_SOCK    3
#define ANCESTORS_MOST 4096
#define TAG_MAX        257 /* with the NUL */

typedef enum conn_taken handler(struct conn *conn, const struct agent_request *request,
                                struct err *err);

static enum conn_taken answer(struct conn *conn, const struct agent_reply *reply)
{
    if (conn_reply(conn, FRAME_REPLY, reply) == 0) {
        conn_end(conn);
        conn_flush(conn);
    }
    return CONN_DONE;
}

static int find_user(struct conn *conn, const struct agent_request *request, struct user *ret,
                     struct err *err)
{
    const struct spawn_base *base = &conn->agent->base;

    return user_find(AGENT_ETC, request->user ? request->user : base->user, base->root_profile, ret,
                     err);
}

static enum conn_taken op_info(struct conn *conn, const struct agent_request *request,
                               struct err *err)
{
    const struct agent *agent = conn->agent;
    struct agent_reply reply = { .version = AGENT_VERSION,
                                 .uptime_ms = io_now_ms() - agent->started_ms,
                                 .total = agent->refusals.total,
                                 .oom_kills = agent->machine ? (uint32_t) memory_kills() : 0 };

    (void) request;
    (void) err;
    for (size_t i = 0; i < agent->proc_count; i++)
        reply.count += proc_running(agent->procs[i]);
    return answer(conn, &reply);
}

/* The process started by EXEC that the asker of sudo descends from: its end is the end of what sudo
 * starts. */
static uint32_t owner_of(struct agent *agent, pid_t pid)
{
    for (int i = 0; i < ANCESTORS_MOST && pid > 1; i++) {
        const struct proc *proc = proc_of_shepherd(agent, pid);
        struct tree_node node;

        if (proc)
            return proc->handle;
        if (!tree_node_of(pid, &node))
            return 0;
        pid = node.ppid;
    }
    return 0;
}

static int check_exec(const struct conn *conn, const struct agent_request *request, struct err *err)
{
    if ((request->flags & AGENT_DETACH) && (request->flags & AGENT_KILL_ON_CLOSE))
        return err_set(err, ERR_INVALID, "exec: detach and kill-on-close exclude each other");
    if (conn->sudo != !!(request->flags & AGENT_INHERIT_FDS))
        return err_set(err, ERR_INVALID, "exec: descriptors come with sudo, and only with sudo");
    if (conn->sudo && (conn->fd_count != CONN_FDS || (request->flags & AGENT_PTY)))
        return err_set(err, ERR_INVALID, "exec: sudo sends stdin, stdout and stderr");
    return 0;
}

static enum conn_taken op_exec(struct conn *conn, const struct agent_request *request,
                               struct err *err)
{
    struct proc_request start = { .request = request };
    struct user user;
    struct proc *proc;

    if (check_exec(conn, request, err) < 0 || find_user(conn, request, &user, err) < 0)
        return CONN_BAD;
    start.user = &user;
    if (conn->sudo) {
        start.fds = conn->fds;
        /* gVisor says of every peer that it is the one that asks, which is us. What sudo says of itself does as well: the end of
         * another process of the same sandbox is all that it could wait for instead. */
        start.tied_to =
            owner_of(conn->agent, conn->peer == getpid() ? (pid_t) request->pid : conn->peer);
        if (!start.tied_to) {
            err_set(err, ERR_STATE, "sudo: its process is gone");
            return CONN_BAD;
        }
    }
    start.starter = attach_new(conn, request);
    if (!start.starter) {
        err_set(err, ERR_NO_MEMORY, "no memory for another process");
        return CONN_BAD;
    }
    proc = proc_start(conn->agent, &start, err);
    if (!proc)
        return CONN_BAD;
    attach_to(start.starter, proc);
    if (conn->sudo) { /* the command has its own copies, and what came from inside goes with the
                         asker */
        start.starter->kill_on_close = true;
        for (; conn->fd_count > 0; conn->fd_count--)
            (void) close(conn->fds[conn->fd_count - 1]);
    }
    return CONN_DONE;
}

static struct proc *find_proc(struct conn *conn, const struct agent_request *request,
                              struct err *err)
{
    struct proc *proc = proc_find(conn->agent, request->proc);

    if (!proc)
        err_set(err, ERR_NO_PROCESS, "no process %u", request->proc);
    return proc;
}

static enum conn_taken op_attach(struct conn *conn, const struct agent_request *request,
                                 struct err *err)
{
    struct proc *proc = find_proc(conn, request, err);
    struct reader *reader;

    if (!proc)
        return CONN_BAD;
    reader = attach_new(conn, request);
    if (!reader) {
        err_set(err, ERR_NO_MEMORY, "no memory for another reader");
        return CONN_BAD;
    }
    attach_to(reader, proc);
    if (attach_from(reader, request, err) < 0) {
        reader->kill_on_close = false;
        return CONN_BAD;
    }
    attach_pump(reader);
    return CONN_DONE;
}

static bool nothing_yet(struct conn *conn)
{
    (void) conn;
    return false;
}

static const struct conn_kind waiting_kind = { .fill = nothing_yet };

static enum conn_taken op_signal(struct conn *conn, const struct agent_request *request,
                                 struct err *err)
{
    struct proc *proc = find_proc(conn, request, err);

    if (!proc)
        return CONN_BAD;
    if (request->signal == 0) {
        err_set(err, ERR_INVALID, "signal: none given");
        return CONN_BAD;
    }
    if (proc_signal(proc, request->signal, request->flags & AGENT_ALL, conn->id, err) < 0)
        return CONN_BAD;
    conn->kind = &waiting_kind;
    conn->data = proc; /* borrowed; compared, never followed */
    return CONN_DONE;
}

void ops_signalled(struct agent *agent, uint64_t id, uint32_t count)
{
    struct conn *conn = id ? conn_by_id(agent, id) : NULL;
    struct agent_reply reply = { .count = count };

    if (conn && conn->kind == &waiting_kind)
        (void) answer(conn, &reply);
}

void ops_signals_lost(struct agent *agent, const struct proc *proc)
{
    struct conn *next;
    struct err err;

    err_set(&err, ERR_STATE, "process %u has ended", proc->handle);
    for (struct conn *conn = agent->conns.first; conn; conn = next) {
        next = conn->next;
        if (conn->kind == &waiting_kind && conn->data == proc && !conn->ending)
            conn_fail(conn, &err);
    }
}

/* A list is made item by item, as the caller reads; `id` and `data` remember the place. */
struct cursor {
    uint32_t last;
    uint32_t only; /* PROCS: this handle, if not 0; this pid, if not 0; this tag, if not "" */
    uint32_t pid;
    char tag[TAG_MAX];
};

static void cursor_free(struct conn *conn)
{
    free(conn->data);
    conn->data = NULL;
}

static enum conn_taken start_list(struct conn *conn, const struct conn_kind *kind,
                                  const struct agent_request *request, struct err *err)
{
    struct cursor *cursor = calloc(1, sizeof *cursor);

    if (!cursor) {
        err_set(err, ERR_NO_MEMORY, "no memory for a list");
        return CONN_BAD;
    }
    cursor->only = request->proc;
    cursor->last = request->proc > 0 ? request->proc - 1 : 0;
    cursor->pid = request->pid;
    if (request->tag)
        (void) snprintf(cursor->tag, sizeof cursor->tag, "%s", request->tag);
    conn->data = cursor;
    conn->kind = kind;
    conn_flush(conn);
    return CONN_DONE;
}

static bool end_list(struct conn *conn)
{
    struct agent_reply end = { .kind = 0 };

    if (conn_reply(conn, FRAME_END, &end) < 0)
        return false;
    conn_end(conn);
    return true;
}

static bool is_wanted(const struct cursor *cursor, const struct agent_reply *item)
{
    if (cursor->pid && item->pid != cursor->pid)
        return false;
    return !cursor->tag[0] || (item->tag && strcmp(item->tag, cursor->tag) == 0);
}

static bool fill_procs(struct conn *conn)
{
    struct cursor *cursor = conn->data;
    struct agent_reply item;
    uint32_t most = conn->agent->last_handle;
    bool found = false;

    if (cursor->only && cursor->only < most)
        most = cursor->only;
    while (cursor->last < most && !found) {
        const struct proc *proc = proc_find(conn->agent, ++cursor->last);

        if (proc)
            proc_describe(proc, &item);
        found = proc && is_wanted(cursor, &item);
    }
    if (!found)
        return end_list(conn);
    return conn_reply(conn, FRAME_ITEM, &item) == 0;
}

static bool fill_refusals(struct conn *conn)
{
    struct cursor *cursor = conn->data;
    const struct refusals *refusals = &conn->agent->refusals;
    char room[32];
    const struct refusal *row;
    struct agent_reply item;

    if (cursor->last >= refusals->row_count)
        return end_list(conn);
    row = &refusals->rows[cursor->last++];
    item = (struct agent_reply){ .name = refusals_call_name(row->call, room, sizeof room),
                                 .pid = row->pid,
                                 .program = row->program,
                                 .count = row->count };
    return conn_reply(conn, FRAME_ITEM, &item) == 0;
}

static const struct conn_kind procs_kind = { .fill = fill_procs, .closed = cursor_free };
static const struct conn_kind refusals_kind = { .fill = fill_refusals, .closed = cursor_free };

static enum conn_taken op_procs(struct conn *conn, const struct agent_request *request,
                                struct err *err)
{
    return start_list(conn, &procs_kind, request, err);
}

static enum conn_taken op_refusals(struct conn *conn, const struct agent_request *request,
                                   struct err *err)
{
    return start_list(conn, &refusals_kind, request, err);
}

/* A keeper that gave up closes the connection before it says that we continue: then nothing is to be made ready, however late
 * we come to read the order. */
static bool has_hung_up(const struct conn *conn)
{
    struct pollfd p = { .fd = conn->watch.fd, .events = POLLRDHUP };

    return poll(&p, 1, 0) == 1 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/* The caller reads REPLY at once, and the end of the connection when no other caller is connected any
 * more. */
static void end_quiesce(struct agent *agent)
{
    struct conn *conn = agent->quiescing ? conn_by_id(agent, agent->quiescing) : NULL;
    struct err err;

    if (agent->worker_count > 0 || !spare_gone(agent))
        return;
    agent->quiescing = 0;
    if (!conn || has_hung_up(conn)) {
        agent->being_saved = false;
        return;
    }
    if (resumed_make_ready(agent, &err) < 0) {
        conn_fail(conn, &err);
        return;
    }
    conn_end(conn);
    conn_flush(conn);
}

static enum conn_taken op_quiesce(struct conn *conn, const struct agent_request *request,
                                  struct err *err)
{
    struct agent *agent = conn->agent;
    struct agent_reply reply = { .kind = 0 };

    (void) request;
    (void) err;
    if (has_hung_up(conn)) {
        conn_close(conn);
        return CONN_DONE;
    }
    for (struct conn *other = agent->conns.first, *next; other; other = next) {
        next = other->next;
        if (other == conn || other->sudo)
            continue;
        attach_spare(other);
        conn_close(other);
    }
    door_turn_away(agent);
    for (size_t i = 0; i < agent->worker_count; i++)
        (void) kill(agent->workers[i], SIGKILL);
    spare_end(agent);
    conn->kind = &waiting_kind;
    agent->quiescing = conn->id;
    agent->being_saved = true;
    if (conn_reply(conn, FRAME_REPLY, &reply) == 0)
        conn_flush(conn);
    end_quiesce(agent);
    return CONN_DONE;
}

static enum conn_taken op_resumed(struct conn *conn, const struct agent_request *request,
                                  struct err *err)
{
    struct agent_reply reply = { .kind = 0 };

    if (resumed_now(conn->agent, request->name, request->limit, conn->fd_count ? conn->fds[0] : -1,
                    err) < 0)
        return CONN_BAD;
    conn->agent->being_saved = false;
    if (conn_reply(conn, FRAME_REPLY, &reply) == 0) {
        conn_end(conn);
        conn_flush(conn);
    }
    return CONN_DONE;
}

/* A worker's place is free: for the request that has waited longest. */
static void next_in_turn(struct agent *agent)
{
    struct conn *oldest = NULL;

    for (struct conn *conn = agent->conns.first; conn; conn = conn->next)
        if (conn->kind == &ops_request_kind && conn->in_later && !conn->closed && !conn->ending &&
            (!oldest || conn->id < oldest->id))
            oldest = conn;
    if (oldest)
        conn_retry(oldest);
}

bool ops_worker_reaped(struct agent *agent, pid_t pid)
{
    if (spare_reaped(agent, pid)) {
        end_quiesce(agent);
        return true;
    }
    for (size_t i = 0; i < agent->worker_count; i++) {
        if (agent->workers[i] != pid)
            continue;
        agent->workers[i] = agent->workers[--agent->worker_count];
        end_quiesce(agent);
        next_in_turn(agent);
        return true;
    }
    return false;
}

static void tell_failure(int sock, const struct err *err)
{
    struct agent_reply reply = { .kind = err->kind, .message = err->msg };
    uint8_t frame[FRAME_HEAD + 512];
    struct err ignored;
    ssize_t len =
        agent_reply_encode(&reply, frame + FRAME_HEAD, sizeof frame - FRAME_HEAD, &ignored);

    if (len < 0)
        return;
    frame_head_put(frame, FRAME_ERROR, (uint32_t) len);
    (void) io_write_all(sock, frame, FRAME_HEAD + (size_t) len);
}

/* The child: worker.h says what holds when worker_main runs. */
static noreturn void run_worker(int sock, const struct agent_request *request,
                                const struct user *user, bool root_profile)
{
    struct worker worker = { .sock = WORKER_SOCK, .request = request, .user = user };
    struct err err;
    sigset_t none;

    if (dup3(sock, WORKER_SOCK, O_CLOEXEC) < 0 || io_close_from(WORKER_SOCK + 1, false) < 0) {
        err_sys(&err, errno, "close what a worker must not hold");
        tell_failure(sock, &err);
        _exit(1);
    }
    (void) fcntl(WORKER_SOCK, F_SETFL, fcntl(WORKER_SOCK, F_GETFL) & ~O_NONBLOCK);
    (void) prctl(PR_SET_NAME, "cove-worker", 0, 0, 0);
    (void) signal(SIGPIPE, SIG_IGN);
    (void) signal(SIGXFSZ, SIG_IGN); /* a file that becomes too large is an error to be told */
    (void) umask(022);
    worker.lent = root_profile && (request->flags & AGENT_AS_ROOT);
    if ((worker.lent ? rights_lend(user, &err) : rights_become(user, root_profile, &err)) < 0) {
        tell_failure(WORKER_SOCK, &err);
        _exit(1);
    }
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    _exit(worker_main(&worker));
}

static enum conn_taken start_worker(struct conn *conn, const struct agent_request *request,
                                    struct err *err)
{
    struct agent *agent = conn->agent;
    struct user user;
    pid_t pid;

    if (find_user(conn, request, &user, err) < 0)
        return CONN_BAD;
    if (agent->worker_count == AGENT_WORKERS_MAX) /* its turn comes, or its patience ends */
        return CONN_LATER;
    pid = spare_fork(agent);
    if (pid == 0)
        run_worker(conn->watch.fd, request, &user, agent->base.root_profile);
    if (pid < 0) {
        err_sys(err, errno, "start a worker");
        return CONN_BAD;
    }
    agent->workers[agent->worker_count++] = pid;
    conn->kind = NULL;
    conn_close(conn);
    return CONN_DONE;
}

/* Operations that sudo may use are marked: from inside, nothing else is served. */
static const struct {
    handler *handler;
    bool from_sudo;
} handlers[AGENT_OP_COUNT] = {
    [AGENT_INFO] = { op_info, true },          [AGENT_EXEC] = { op_exec, true },
    [AGENT_ATTACH] = { op_attach, false },     [AGENT_SIGNAL] = { op_signal, false },
    [AGENT_PROCS] = { op_procs, false },       [AGENT_QUIESCE] = { op_quiesce, false },
    [AGENT_REFUSALS] = { op_refusals, false }, [AGENT_RESUMED] = { op_resumed, false },
};

static enum conn_taken take_request(struct conn *conn, const struct frame_head *head, uint8_t *data,
                                    struct err *err)
{
    struct agent_request request;

    if (head->type != FRAME_REQUEST) {
        err_set(err, ERR_PROTOCOL, "frame '%s' before a request", frame_name(head->type));
        return CONN_BAD;
    }
    if (agent_request_decode(&request, data, head->len, err) < 0)
        return CONN_BAD;
    if (conn->sudo && !conn->agent->base.root_profile) {
        err_set(err, ERR_NO_ROOT, "this sandbox was made without root");
        return CONN_BAD;
    }
    if (conn->sudo && !handlers[request.op].from_sudo) {
        err_set(err, ERR_DENIED, "%s: not from inside", agent_ops[request.op].name);
        return CONN_BAD;
    }
    if (agent_ops[request.op].as_user)
        return start_worker(conn, &request, err);
    return handlers[request.op].handler(conn, &request, err);
}

const struct conn_kind ops_request_kind = { .frame = take_request };
