/* What must hold:
 *   - the command's pid is not reaped before its end is known, so signals to its group cannot go
 * astray: once it is reaped, only processes found below us are signalled, one by one;
 *   - a kill repeats until no process is below: one that was forked during a scan is found by the next, and
 *     a killed process forks no more, so the scans converge;
 *   - the end of a killed command is reported when all are gone, so that its CPU time is whole;
 *   - a shepherd whose command is gone with everything below has nothing of it left but the sums of the
 *     kernel: its descriptors are those of before, and what the order said is wiped. */
#include "agent/proc/shepherd.h"

#include "agent/core/spawn_pack.h"
#include "agent/proc/tree.h"
#include "base/io.h"
#include "base/own.h"
#include "base/sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#if ADDRESS_SANITIZED
#include <sanitizer/asan_interface.h>
#endif

#define CHILD_STACK (48u * 1024u)
#define REAP_BATCH  256
#define KILL_ROUNDS 3

struct shepherd {
    pid_t command;
    bool ended, reported;
    bool alone;      /* no children are left */
    bool told_alone; /* with the end of the command */
    int status;
    int signals;
    bool stay;         /* for another command */
    bool again;        /* this is not its first command */
    uint64_t past_us;  /* processor time of the commands before */
    uint64_t peak_kib; /* of this command's processes that were reaped */
};

/* What arrives of an ORDER_START; the strings in it are used until the command has begun. */
static struct shepherd_start next;

static void tell(const struct shepherd_news *news)
{
    (void) send(SHEPHERD_CONTROL, news, sizeof *news, MSG_NOSIGNAL);
}

struct start {
    const struct spawn *spawn;
    struct err err;
};

static int child_main(void *data)
{
    struct start *start = data;

    spawn_child(start->spawn, &start->err);
    _exit(127);
}

/* The child runs in our memory, on a stack of its own, until it execs or fails: no page is copied,
 * and its error needs no pipe. */
static pid_t start_command(const struct spawn *spawn, struct err *err)
{
    struct start start = { .spawn = spawn };
    char stack[CHILD_STACK] __attribute__((aligned(16)));
    pid_t pid = clone(child_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);

#if ADDRESS_SANITIZED /* the child left this memory without returning from its functions */
    __asan_unpoison_memory_region(stack, sizeof stack);
#endif
    if (pid < 0)
        return err_sys(err, errno, "start a process");
    (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (start.err.kind == ERR_NONE)
        return pid;
    (void) waitpid(pid, NULL, 0);
    *err = start.err;
    return -1;
}

/* The command's stdio takes the place of ours, so that the child inherits it; the rest goes. */
static int keep_stdio(const int stdio[3], int control, struct err *err)
{
    (void) dup3(control, SHEPHERD_CONTROL, O_CLOEXEC);
    for (int i = 0; i < 3; i++)
        if (stdio[i] != 0)
            (void) dup2(stdio[i], i);
    if (io_close_from(SHEPHERD_FDS_FROM, false) < 0)
        return err_sys(err, errno, "close what a command must not hold");
    return 0;
}

static void drop_stdio(void)
{
    for (int i = 0; i < 3; i++)
        (void) dup2(SHEPHERD_NULL, i);
}

/* True: more may wait that no signal announces. */
static bool reap(struct shepherd *self)
{
    for (int i = 0; i < REAP_BATCH; i++) {
        struct rusage usage;
        int status;
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);

        if (pid > 0 && (uint64_t) usage.ru_maxrss > self->peak_kib)
            self->peak_kib = (uint64_t) usage.ru_maxrss;
        if (pid <= 0) {
            self->alone = pid < 0 && errno == ECHILD;
            return false;
        }
        if (pid == self->command && !self->ended) {
            self->ended = true;
            self->status = status;
        }
    }
    return true;
}

/* The kernel's sums are of all commands so far. Of the first one it also knows the peak; gVisor knows that nowhere else. */
static uint64_t children_us(uint64_t *ret_peak_kib)
{
    struct rusage usage;

    if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
        return 0;
    *ret_peak_kib = (uint64_t) usage.ru_maxrss;
    return (uint64_t) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
           (uint64_t) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void report_end(struct shepherd *self)
{
    struct shepherd_news news = { .what = NEWS_ENDED,
                                  .status = self->status,
                                  .alone = self->alone && self->stay };
    uint64_t peak_kib = 0;

    if (!self->ended || self->reported)
        return;
    news.all_us = children_us(&peak_kib);
    news.cpu_us = news.all_us > self->past_us ? news.all_us - self->past_us : 0;
    news.peak_bytes = (self->again ? self->peak_kib : peak_kib) * 1024u;
    tell(&news);
    self->reported = true;
    self->told_alone = news.alone;
}

/* Every process below, or those in the command's group. Returns how many were reached. */
static uint32_t signal_below(const struct shepherd *self, int number, bool all)
{
    struct tree tree;
    uint32_t count = 0;

    if (tree_read(&tree, getpid()) < 0)
        return !self->ended && kill(-self->command, number) == 0;
    for (size_t i = 0; i < tree.count; i++) {
        const struct tree_node *node = &tree.nodes[i];

        if (!node->below || node->dead || (!all && node->pgrp != self->command))
            continue;
        /* One call reaches a whole group at once; it is below, for the others' sake, when counting.
         */
        if (all || self->ended)
            count += kill(node->pid, number) == 0;
        else
            count++;
    }
    tree_done(&tree);
    if (!all && !self->ended && kill(-self->command, number) < 0)
        count = 0;
    return count;
}

static void wait_signal(const struct shepherd *self, int timeout_ms)
{
    struct pollfd p = { .fd = self->signals, .events = POLLIN };
    struct signalfd_siginfo info;

    if (poll(&p, 1, timeout_ms) > 0)
        IGNORE(read(self->signals, &info, sizeof info) < 0);
}

static void kill_all(struct shepherd *self)
{
    for (int round = 0;; round++) {
        uint32_t reached;

        (void) reap(self);
        if (self->alone)
            break;
        reached = signal_below(self, SIGKILL, true);
        /* At once again while a process may still be forking; then the dying get a moment. */
        if (round >= KILL_ROUNDS)
            wait_signal(self, reached ? 1 : 20);
    }
    report_end(self);
}

static void take_order(struct shepherd *self)
{
    struct shepherd_order order;
    struct shepherd_news news = { .what = NEWS_SIGNALLED };
    ssize_t n = recv(SHEPHERD_CONTROL, &order, sizeof order, MSG_DONTWAIT);

    if (n == 0)
        _exit(1); /* no agent: no sandbox */
    if (n != (ssize_t) sizeof order)
        return;
    if (order.what == ORDER_KILL) {
        kill_all(self);
        return;
    }
    news.cookie = order.cookie;
    news.count = signal_below(self, (int) order.signal, order.what == ORDER_SIGNAL_ALL);
    tell(&news);
}

/* Until no process is left below. */
static void tend(struct shepherd *self)
{
    struct pollfd polled[2] = { { .fd = self->signals, .events = POLLIN },
                                { .fd = SHEPHERD_CONTROL, .events = POLLIN } };
    struct shepherd_news news = { .what = NEWS_ALONE };
    uint64_t ignored;

    for (;;) {
        struct signalfd_siginfo info;
        bool more;

        /* Emptied before reaping: a child that ends in between raises it again. */
        IGNORE(read(self->signals, &info, sizeof info) < 0);
        more = reap(self);
        report_end(self);
        if (self->alone)
            break;
        if (poll(polled, 2, more ? 0 : -1) > 0 && polled[1].revents)
            take_order(self);
    }
    news.all_us = children_us(&ignored);
    if (self->stay && !self->told_alone)
        tell(&news);
}

static void tell_failed(const struct err *err)
{
    uint64_t peak_kib = 0;
    struct shepherd_news news = { .what = NEWS_FAILED,
                                  .all_us = children_us(&peak_kib), /* of the try, too */
                                  .err = *err };

    tell(&news);
}

/* Its standard descriptors are ours at this moment. */
static void begin(struct shepherd *self, const struct spawn *spawn)
{
    struct shepherd_news news = { .what = NEWS_STARTED };
    struct err err;

    self->command = start_command(spawn, &err);
    drop_stdio();
    news.pid = self->command;
    if (self->command >= 0)
        tell(&news);
    else
        tell_failed(&err);
}

static void take_stdio(const int *fds, size_t count)
{
    for (int i = 0; i < 3; i++)
        if (next.order.stdio[i] > 0 && next.order.stdio[i] <= count)
            (void) dup2(fds[next.order.stdio[i] - 1], i);
    while (count > 0)
        (void) close(fds[--count]);
}

/* True: the order in `next` was there still. Until then the agent can take the order back (spare.h), so a shepherd that is killed
 * here loses none. What is behind an order that was taken back is for the same command, and is dropped. */
static bool claim_order(void)
{
    struct shepherd_order order;
    ssize_t n = recv(SHEPHERD_CONTROL, &order, sizeof order, MSG_DONTWAIT);

    return n == (ssize_t) sizeof order && order.what == ORDER_START &&
           order.cookie == next.order.cookie;
}

/* Looks at the next order for a command. Orders for the command before, which came too late, are read and passed over. The agent may read
 * such an order first (spare_take_back): what is read in its place is the order for a command, and is ours then. */
static size_t await_order(int fds[3], size_t *ret_fd_count, bool *ret_claimed)
{
    bool look = true;

    for (;;) {
        ssize_t n = io_recv_fds_with(SHEPHERD_CONTROL, &next, sizeof next, fds, 3, ret_fd_count,
                                     look ? MSG_PEEK : MSG_DONTWAIT);

        if (n == 0 || (n < 0 && (look || errno != EAGAIN)))
            _exit(0); /* no more commands */
        *ret_claimed = !look;
        if (n > (ssize_t) sizeof next.order && next.order.what == ORDER_START)
            return (size_t) n - sizeof next.order;
        look = !look;
    }
}

static void begin_next(struct shepherd *self)
{
    int fds[3];
    bool claimed, whole;
    size_t fd_count, len = await_order(fds, &fd_count, &claimed);
    struct spawn spawn = { .argv = NULL };
    struct err err;

    whole = spawn_unpack(&spawn, next.spawn, len) == 0;
    take_stdio(fds, fd_count);
    claimed = claimed || claim_order();
    if (claimed && whole)
        begin(self, &spawn);
    else
        drop_stdio();
    if (claimed && !whole) {
        err_set(&err, ERR_NO_MEMORY, "no memory for another process");
        tell_failed(&err);
    }
    spawn_done(&spawn);
    explicit_bzero(&next, sizeof next.order + len);
}

/* One command behind the other. */
static noreturn void serve(struct shepherd *self)
{
    for (;;) {
        uint64_t ignored;

        if (self->command >= 0)
            tend(self);
        if (!self->stay)
            _exit(0);
        *self = (struct shepherd){ .command = -1,
                                   .signals = self->signals,
                                   .stay = true,
                                   .again = true,
                                   .past_us = children_us(&ignored) };
        begin_next(self);
    }
}

noreturn void shepherd_main(struct spawn *spawn, int control, bool stay, void (*unburden)(void *),
                            void *data)
{
    struct shepherd self = { .command = -1, .stay = stay };
    struct err err;
    sigset_t child;

    (void) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (keep_stdio(spawn->stdio, control, &err) < 0) {
        tell_failed(&err);
        _exit(0);
    }
    begin(&self, spawn);
    (void) prctl(PR_SET_NAME, "cove-shepherd", 0, 0, 0);
    spawn_done(spawn);
    unburden(data);
    (void) sigemptyset(&child);
    (void) sigaddset(&child, SIGCHLD);
    self.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    serve(&self);
}
