/* The life of a process:
 *
 *   proc_start forks the shepherd            STARTING
 *   NEWS_STARTED                             RUNNING    the starter gets REPLY
 *   NEWS_ENDED, or the shepherd is gone      ENDED      output may still be in the pipes
 *   pipes at their end, or GRACE_MS later    FINAL      readers get EXIT behind the last byte
 *
 * Descendants that outlive the command stay with the shepherd, which stays until they are gone; a
 * kill reaches them until then. The timeout is the command's own: it is over when the command ends,
 * so that `server &` stays as long as the sandbox. When nothing is left, the record is: struct proc
 * without `live`. */
#include "agent/proc/proc.h"

#include "agent/ops.h"
#include "agent/proc/attach.h"
#include "agent/proc/memory.h"
#include "agent/proc/procs.h"
#include "agent/proc/shepherd.h"
#include "agent/proc/spare.h"
#include "agent/proc/strays.h"
#include "agent/proc/stream.h"
#include "base/io.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define GRACE_MS  100
#define START_MS  30000
#define ANSWER_MS 1000 /* of a spare; one that is not stopped takes an order at once */
#define INSIST_MS 10000

#define TO(phase) (1u << PROC_##phase)

/* Who may follow whom; in brackets, the only functions that make the move. */
static const struct {
    unsigned next;
} phases[] = {
    [PROC_STARTING] = { TO(RUNNING) }, /* [take_news] */
    [PROC_RUNNING] = { TO(ENDED) },    /* [set_ended] */
    [PROC_ENDED] = { TO(FINAL) },      /* [finish_if_whole] */
    [PROC_FINAL] = { 0 },
};
_Static_assert(ARRAY_LEN(phases) == PROC_PHASE_COUNT, "every phase has a row");

static void set_phase(struct proc *proc, enum proc_phase phase)
{
    assert(phases[proc->phase].next & (1u << phase));
    proc->phase = (uint8_t) phase;
}

bool proc_running(const struct proc *proc)
{
    return proc->phase < PROC_FINAL;
}

static void finish_if_whole(struct proc *proc)
{
    struct proc_live *live = proc->live;
    struct agent *agent = proc->agent;

    if (proc->phase != PROC_ENDED || !stream_whole(proc))
        return;
    loop_disarm(&agent->loop, &live->grace);
    for (int i = 0; i < PROC_STREAMS; i++)
        proc->bytes[i] = live->streams[i].final = live->streams[i].ring.end;
    set_phase(proc, PROC_FINAL);
    for (struct reader *reader = live->readers, *next; reader; reader = next) {
        next = reader->next;
        attach_pump(reader);
    }
    procs_unsettle(proc);
}

static void on_grace(struct timer *timer)
{
    struct proc *proc = CONTAINER(timer, struct proc_live, grace)->proc;

    stream_settle(proc);
    finish_if_whole(proc);
}

void proc_output(struct proc *proc)
{
    if (proc->phase == PROC_FINAL)
        procs_trim(proc->agent); /* leftovers of the command that keep writing */
    else
        finish_if_whole(proc);
}

/* Out of memory comes first: who lost a child by it may wait until a limit of time ends it. */
static enum agent_exit how_ended(const struct proc *proc, enum agent_exit seen, int status)
{
    enum agent_exit ended = cpu_exceeded(proc)      ? EXIT_CPU
                            : proc->live->timed_out ? EXIT_TIMEOUT
                                                    : seen;

    if (proc->agent->machine && (ended != seen || memory_could_kill(status)) &&
        memory_kills() > proc->killed_at)
        return EXIT_OOM;
    return ended;
}

static void set_ended(struct proc *proc, enum agent_exit seen, int status)
{
    proc->ended = (uint8_t) how_ended(proc, seen, status);
    if (WIFEXITED(status))
        proc->exit_code = (uint8_t) WEXITSTATUS(status);
    else if (WIFSIGNALED(status))
        proc->signal = (uint8_t) WTERMSIG(status);
    proc->wall_ms = (io_now_us() - proc->started_us) / 1000;
    set_phase(proc, PROC_ENDED);
    loop_disarm(&proc->agent->loop, &proc->live->deadline);
    loop_arm(&proc->agent->loop, &proc->live->grace, GRACE_MS, on_grace);
    finish_if_whole(proc);
}

static void on_insist(struct timer *timer)
{
    struct proc_live *live = CONTAINER(timer, struct proc_live, insist);

    /* It does not do what it is told, or cannot: its children come to us, and on_strays sees to
     * them. */
    if (live->shepherd)
        (void) kill(live->shepherd, SIGKILL);
}

void proc_set_shepherd(struct proc *proc, pid_t pid)
{
    struct proc_live *live = proc->live;

    proc->agent->shepherds -= live->shepherd != 0;
    proc->agent->shepherds += pid != 0;
    live->shepherd = pid;
}

static void start_failed(struct proc *proc, const struct err *err)
{
    struct reader *starter = proc->live->starter;

    proc->live->failed = true;
    if (starter) {
        proc_detach(proc, starter);
        attach_failed(starter, err);
    }
    procs_unsettle(proc);
}

/* The order is still there, or the spare has died with it: the agent forks, as without a spare. */
static void start_again(struct proc *proc)
{
    struct err err;

    if (proc_start_again(proc, &err) || proc->live->shepherd)
        loop_arm(&proc->agent->loop, &proc->live->insist, START_MS, on_insist);
    else
        start_failed(proc, &err);
}

static void on_no_answer(struct timer *timer)
{
    start_again(CONTAINER(timer, struct proc_live, insist)->proc);
}

/* The shepherd is gone, or the proc's no more. */
static void no_shepherd(struct proc *proc)
{
    struct loop *loop = &proc->agent->loop;

    ops_signals_lost(proc->agent, proc);
    proc_set_shepherd(proc, 0);
    proc_close(proc, &proc->live->control);
    own_close(&proc->live->theirs);
    proc_close(proc, &proc->live->in);
    loop_disarm(loop, &proc->live->deadline);
    loop_disarm(loop, &proc->live->insist);
    cpu_disarm(proc);
    procs_unsettle(proc);
}

/* Nothing is left below the shepherd: it waits for the next command, or is told to end. */
static void let_go(struct proc *proc, uint64_t all_us)
{
    if (spare_keep(proc, all_us))
        no_shepherd(proc);
    else
        (void) shutdown(proc->live->control.fd, SHUT_WR);
}

static void take_news(struct proc *proc, const struct shepherd_news *news)
{
    struct proc_live *live = proc->live;

    switch ((enum shepherd_what) news->what) {
    case NEWS_STARTED:
        live->ordered = false;
        proc->pid = news->pid;
        set_phase(proc, PROC_RUNNING);
        if (!live->killed)
            loop_disarm(&proc->agent->loop, &live->insist);
        if (live->starter)
            attach_started(live->starter);
        live->starter = NULL;
        return;
    case NEWS_FAILED:
        live->ordered = false;
        let_go(proc, news->all_us);
        start_failed(proc, &news->err);
        return;
    case NEWS_SIGNALLED:
        ops_signalled(proc->agent, news->cookie, news->count);
        return;
    case NEWS_ENDED:
        proc->cpu_ms = news->cpu_us / 1000;
        cpu_ended(proc, news->cpu_us);
        proc->peak_bytes = news->peak_bytes;
        set_ended(proc, WIFEXITED(news->status) ? EXIT_CODE : EXIT_SIGNAL, news->status);
        if (news->alone)
            let_go(proc, news->all_us);
        return;
    case NEWS_ALONE:
        let_go(proc, news->all_us);
        return;
    case ORDER_START:
    case ORDER_SIGNAL:
    case ORDER_SIGNAL_ALL:
    case ORDER_KILL:
        return;
    }
}

static void read_news(struct proc *proc)
{
    struct watch *control = &proc->live->control;

    while (control->fd >= 0) {
        struct shepherd_news news;
        ssize_t n = recv(control->fd, &news, sizeof news, MSG_DONTWAIT);

        if (n == (ssize_t) sizeof news) {
            take_news(proc, &news);
            continue;
        }
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            loop_pause(&proc->agent->loop, control); /* SIGCHLD is on its way */
        return;
    }
}

void proc_close(struct proc *proc, struct watch *watch)
{
    if (watch->fd < 0)
        return;
    loop_pause(&proc->agent->loop, watch);
    (void) close(watch->fd);
    watch->fd = -1;
}

void proc_on_control(struct watch *watch, uint32_t events)
{
    (void) events;
    read_news(CONTAINER(watch, struct proc_live, control)->proc);
}

bool proc_reaped(struct agent *agent, pid_t pid, int status)
{
    struct proc *proc = proc_of_shepherd(agent, pid);
    struct err err;

    if (!proc)
        return false;
    agent->past_us += proc->live->past_us;
    proc_set_shepherd(proc, 0); /* what its last news say, it is no spare */
    read_news(proc);
    /* Killed, by root inside or by on_insist: its flock is ours now. */
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        strays_end(agent);
    if (proc->phase == PROC_STARTING && proc->live->ordered && !proc->live->killed) {
        start_again(proc);
        return true;
    }
    no_shepherd(proc);
    if (proc->phase == PROC_STARTING && !proc->live->failed) {
        err_set(&err, ERR_INTERNAL, "the process could not be started");
        start_failed(proc, &err);
    }
    if (proc->phase == PROC_RUNNING)
        set_ended(proc, EXIT_LOST, SIGKILL);
    return true;
}

static int give_order(struct proc *proc, const struct shepherd_order *order)
{
    return send(proc->live->control.fd, order, sizeof *order, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1
                                                                                               : 0;
}

int proc_signal(struct proc *proc, uint32_t number, bool all, uint64_t cookie, struct err *err)
{
    struct shepherd_order order = { .what = all ? ORDER_SIGNAL_ALL : ORDER_SIGNAL,
                                    .signal = number,
                                    .cookie = cookie };

    if (!proc->live || !proc->live->shepherd)
        return err_set(err, ERR_STATE, "process %u has ended", proc->handle);
    if (give_order(proc, &order) == 0)
        return 0;
    if (errno == EPIPE || errno == ECONNRESET) /* its SIGCHLD is on its way */
        return err_set(err, ERR_STATE, "process %u has ended", proc->handle);
    return err_sys(err, errno, "signal process %u", proc->handle);
}

void proc_kill(struct proc *proc)
{
    static const struct shepherd_order order = { .what = ORDER_KILL };
    struct agent *agent = proc->agent;

    if (!proc->live || !proc->live->shepherd)
        return;
    /* When the order cannot even be given, on_insist ends the shepherd instead. */
    proc->live->killed = true;
    loop_arm(&agent->loop, &proc->live->insist, give_order(proc, &order) < 0 ? 0 : INSIST_MS,
             on_insist);
    for (size_t i = 0; i < agent->proc_count; i++) {
        struct proc *tied = agent->procs[i];

        if (tied->live && tied->live->tied_to == proc->handle && !tied->live->killed)
            proc_kill(tied);
    }
}

static void on_deadline(struct timer *timer)
{
    struct proc_live *live = CONTAINER(timer, struct proc_live, deadline);

    live->timed_out = live->proc->phase <= PROC_RUNNING;
    proc_kill(live->proc);
}

void proc_set_timers(struct proc *proc, const struct agent_request *request)
{
    if (proc->live->ordered)
        loop_arm(&proc->agent->loop, &proc->live->insist, ANSWER_MS, on_no_answer);
    else
        loop_arm(&proc->agent->loop, &proc->live->insist, START_MS, on_insist);
    if (request->timeout_ms)
        loop_arm(&proc->agent->loop, &proc->live->deadline, request->timeout_ms, on_deadline);
    cpu_started(proc, request->cpu_timeout_ms,
                request->flags & AGENT_DETACH ? NULL : proc->live->starter);
}

void proc_attach(struct proc *proc, struct reader *reader)
{
    if (!proc->live)
        return;
    reader->next = proc->live->readers;
    proc->live->readers = reader;
}

void proc_detach(struct proc *proc, struct reader *reader)
{
    struct proc_live *live = proc->live;

    reader->proc = NULL;
    if (!live)
        return;
    if (live->starter == reader)
        live->starter = NULL;
    for (struct reader **at = &live->readers; *at; at = &(*at)->next)
        if (*at == reader) {
            *at = reader->next;
            break;
        }
    cpu_left(proc, reader);
    proc_drained(proc);
    procs_unsettle(proc);
}

void proc_describe(const struct proc *proc, struct agent_reply *ret)
{
    const struct proc_live *live = proc->live;
    bool running = proc_running(proc);

    *ret = (struct agent_reply){
        .proc = proc->handle,
        .pid = (uint32_t) proc->pid,
        .flags = (running ? AGENT_RUNNING : 0) | (proc->is_pty ? AGENT_IS_PTY : 0) |
                 (running && live->in.fd >= 0 ? AGENT_TAKES_STDIN : 0) |
                 (proc->beside ? AGENT_BESIDE : 0),
        .ended = running ? EXIT_NONE : proc->ended,
        .exit_code = proc->exit_code,
        .signal = proc->signal,
        .wall_ms =
            proc->phase <= PROC_RUNNING ? (io_now_us() - proc->started_us) / 1000 : proc->wall_ms,
        .cpu_ms = proc->phase <= PROC_RUNNING ? cpu_used(proc) : proc->cpu_ms,
        .peak_bytes = proc->peak_bytes,
        .stdout_bytes = running ? live->streams[PROC_STDOUT].ring.end : proc->bytes[PROC_STDOUT],
        .stderr_bytes = running ? live->streams[PROC_STDERR].ring.end : proc->bytes[PROC_STDERR],
        .started_ms = proc->started_ms,
        .agent_cpu_ms = running ? cpu_of_agent(proc) : proc->agent_cpu_ms,
    };
    if (!proc->text)
        return;
    ret->args = (struct texts){ .data = proc->text->text, .len = proc->text->args_len };
    ret->cwd = proc->text->text + proc->text->cwd;
    ret->user = proc->text->text + proc->text->user;
    if (proc->text->text[proc->text->tag])
        ret->tag = proc->text->text + proc->text->tag;
}
