#include "agent/proc/spare.h"

#include "agent/core/spawn_pack.h"
#include "agent/proc/shepherd.h"
#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define IDLE_MS   1000
#define WAY_TRIES 1000
#define WAY_NS    100000

/* What is sent, or was taken back; and how much of what was taken back has to be wiped. */
static struct shepherd_start message;
static size_t message_len;

static void on_idle(struct timer *timer)
{
    spare_end(CONTAINER(timer, struct agent, spare.idle));
}

int spare_socket(int pair[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    (void) fcntl(pair[0], F_SETFL, O_NONBLOCK); /* the agent waits for no shepherd */
    return 0;
}

bool spare_wanted(const struct agent *agent)
{
    return !agent->gvisor && !agent->machine && agent->shepherds == 0 && agent->last_handle > 1;
}

/* Root inside has the shepherd's uid, and may set its limits: commands would inherit them, and no process inside
 * could raise what was lowered. Niceness, scheduling, processors and priority of input and output root cannot change
 * there, because the shepherd has a capability that root has not (BOOT_AGENT_CAPS); the files of /proc/PID belong to
 * the host's root. */
static bool has_our_limits(pid_t pid)
{
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit ours, its;

        if (prlimit(0, i, NULL, &ours) < 0 || prlimit(pid, i, NULL, &its) < 0 ||
            ours.rlim_cur != its.rlim_cur || ours.rlim_max != its.rlim_max)
            return false;
    }
    return true;
}

bool spare_keep(struct proc *proc, uint64_t all_us)
{
    struct agent *agent = proc->agent;
    struct proc_live *live = proc->live;
    struct spare *spare = &agent->spare;

    if (live->shepherd == 0 || live->theirs < 0 || agent->shepherds > 1 || spare->pid ||
        agent->being_saved)
        return false;
    /* Strays are the only processes inside that could set limits of a spare. */
    if (agent->stray_timer.at_ms || !has_our_limits(live->shepherd))
        return false;
    loop_pause(&agent->loop, &live->control);
    *spare = (struct spare){ .pid = live->shepherd,
                             .control = take_fd(&live->control.fd),
                             .theirs = take_fd(&live->theirs),
                             .past_us = all_us };
    loop_arm(&agent->loop, &spare->idle, IDLE_MS, on_idle);
    return true;
}

static size_t name_fds(const struct spawn *spawn, int fds[3])
{
    size_t count = 0;

    for (int i = 0; i < 3; i++) {
        bool same = i > 0 && spawn->stdio[i] == spawn->stdio[i - 1];

        if (spawn->stdio[i] > 0 && !same)
            fds[count++] = spawn->stdio[i];
        message.order.stdio[i] = (uint8_t) (spawn->stdio[i] > 0 ? count : 0);
    }
    return count;
}

static bool send_order(const struct spawn *spawn, uint32_t handle, int control)
{
    size_t len = spawn_pack(spawn, message.spawn, sizeof message.spawn), fd_count;
    int fds[3];
    ssize_t n = -1;

    if (len > 0) {
        message.order = (struct shepherd_order){ .what = ORDER_START, .cookie = handle };
        fd_count = name_fds(spawn, fds);
        len += sizeof message.order;
        n = io_send_fds(control, &message, len, fds, fd_count);
    }
    explicit_bzero(&message, len > 0 ? len : sizeof message);
    return n > 0;
}

bool spare_take(struct proc *proc, const struct spawn *spawn)
{
    struct agent *agent = proc->agent;
    struct proc_live *live = proc->live;
    struct spare *spare = &agent->spare;

    if (!spare->pid || spare->ending)
        return false;
    live->control.fd = spare->control;
    if (loop_watch(&agent->loop, &live->control, EPOLLIN) < 0 ||
        !send_order(spawn, proc->handle, spare->control)) {
        loop_pause(&agent->loop, &live->control);
        live->control.fd = -1;
        return false;
    }
    loop_disarm(&agent->loop, &spare->idle);
    live->theirs = spare->theirs;
    live->past_us = spare->past_us;
    live->ordered = true;
    proc_set_shepherd(proc, spare->pid);
    spare->pid = 0;
    return true;
}

bool spare_take_back(struct proc *proc, struct spawn *ret)
{
    struct proc_live *live = proc->live;
    size_t fd_count = 0;
    int fds[3];
    ssize_t n;

    if (!live->ordered)
        return false;
    do { /* orders of before may be in front of it */
        n = io_recv_fds_with(live->theirs, &message, sizeof message, fds, ARRAY_LEN(fds), &fd_count,
                             MSG_DONTWAIT);
    } while (n > 0 && message.order.what != ORDER_START);
    live->ordered = false;
    if (n <= (ssize_t) sizeof message.order)
        return false;
    message_len = (size_t) n;
    if (spawn_unpack(ret, message.spawn, (size_t) n - sizeof message.order) < 0) {
        while (fd_count > 0)
            (void) close(fds[--fd_count]);
        spare_forget_order();
        return false;
    }
    for (int i = 0; i < 3; i++)
        if (message.order.stdio[i] > 0 && message.order.stdio[i] <= fd_count)
            ret->stdio[i] = fds[message.order.stdio[i] - 1];
    return true;
}

void spare_forget_order(void)
{
    explicit_bzero(&message, message_len);
    message_len = 0;
}

void spare_give_up(struct proc *proc)
{
    struct spare *spare = &proc->agent->spare;
    pid_t pid = proc->live->shepherd;

    if (pid == 0)
        return;
    (void) kill(pid, SIGKILL);
    if (spare->pid == 0)
        *spare = (struct spare){
            .pid = pid, .ending = true, .control = -1, .theirs = -1, .past_us = proc->live->past_us
        };
    proc_set_shepherd(proc, 0);
}

static void close_both(struct agent *agent)
{
    loop_disarm(&agent->loop, &agent->spare.idle);
    own_close(&agent->spare.control);
    own_close(&agent->spare.theirs);
}

void spare_end(struct agent *agent)
{
    struct spare *spare = &agent->spare;

    if (spare->pid == 0 || spare->ending)
        return;
    (void) kill(spare->pid, SIGKILL);
    close_both(agent);
    spare->ending = true;
}

bool spare_gone(const struct agent *agent)
{
    return agent->spare.pid == 0;
}

bool spare_reaped(struct agent *agent, pid_t pid)
{
    struct spare *spare = &agent->spare;

    if (spare->pid != pid)
        return false;
    if (!spare->ending) /* another process killed it */
        close_both(agent);
    agent->past_us += spare->past_us;
    spare->pid = 0;
    return true;
}

/* Hardly longer than 1 ms: a killed process that waited in a read. QUIESCE has its own wait. */
static void await_end(struct agent *agent)
{
    const struct timespec moment = { .tv_nsec = WAY_NS };
    pid_t pid = agent->spare.pid;

    for (int i = 0; i < WAY_TRIES && !agent->quiescing; i++) {
        if (waitpid(pid, NULL, WNOHANG) == pid) {
            (void) spare_reaped(agent, pid);
            return;
        }
        (void) nanosleep(&moment, NULL);
    }
}

void spare_make_way(struct agent *agent)
{
    spare_end(agent);
    if (!spare_gone(agent))
        await_end(agent);
}

pid_t spare_fork(struct agent *agent)
{
    pid_t pid = fork();

    if (pid >= 0 || errno != EAGAIN || spare_gone(agent))
        return pid;
    spare_make_way(agent);
    return fork();
}
