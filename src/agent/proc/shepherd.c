/* What must hold:
 *   - the command's pid is not reaped before its end is known, so signals to its group cannot go
 * astray: once it is reaped, only processes found below us are signalled, one by one;
 *   - a kill repeats until no process is below: one that was forked during a scan is found by the next, and
 *     a killed process forks no more, so the scans converge;
 *   - the end of a killed command is reported when all are gone, so that its CPU time is whole. */
#include "agent/proc/shepherd.h"

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
    bool alone; /* no children are left */
    int status;
    int signals;
};

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

static void reap(struct shepherd *self)
{
    for (int i = 0; i < REAP_BATCH; i++) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid <= 0) {
            self->alone = pid < 0 && errno == ECHILD;
            return;
        }
        if (pid == self->command && !self->ended) {
            self->ended = true;
            self->status = status;
        }
    }
}

static void report_end(struct shepherd *self)
{
    struct shepherd_news news = { .what = NEWS_ENDED, .status = self->status };
    struct rusage usage;

    if (!self->ended || self->reported)
        return;
    if (getrusage(RUSAGE_CHILDREN, &usage) == 0) {
        news.cpu_us = (uint64_t) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
                      (uint64_t) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
        news.peak_bytes = (uint64_t) usage.ru_maxrss * 1024u;
    }
    tell(&news);
    self->reported = true;
}

/* Everybody below, or those in the command's group. Returns how many were reached. */
static uint32_t signal_below(const struct shepherd *self, int number, bool all)
{
    struct tree tree;
    uint32_t count = 0;

    if (tree_read(&tree, getpid()) < 0)
        return !self->ended && kill(-self->command, number) == 0;
    for (size_t i = 0; i < tree.count; i++) {
        const struct tree_node *node = &tree.nodes[i];

        if (!node->below || node->state == 'Z' || (!all && node->pgrp != self->command))
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

        reap(self);
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

noreturn void shepherd_main(struct spawn *spawn, int control, void (*unburden)(void *), void *data)
{
    struct shepherd self = { .command = -1 };
    struct shepherd_news news = { .what = NEWS_FAILED };
    struct pollfd polled[2];
    sigset_t child;

    (void) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (keep_stdio(spawn->stdio, control, &news.err) == 0)
        self.command = start_command(spawn, &news.err);
    drop_stdio();
    if (self.command < 0) {
        tell(&news);
        _exit(0);
    }
    news.what = NEWS_STARTED;
    news.pid = self.command;
    tell(&news);
    (void) prctl(PR_SET_NAME, "cove-shepherd", 0, 0, 0);
    spawn_done(spawn);
    unburden(data);
    (void) sigemptyset(&child);
    (void) sigaddset(&child, SIGCHLD);
    self.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    polled[0] = (struct pollfd){ .fd = self.signals, .events = POLLIN };
    polled[1] = (struct pollfd){ .fd = SHEPHERD_CONTROL, .events = POLLIN };
    for (;;) {
        struct signalfd_siginfo info;

        /* Emptied before reaping: a child that ends in between raises it again. */
        IGNORE(read(self.signals, &info, sizeof info) < 0);
        reap(&self);
        report_end(&self);
        if (self.alone)
            _exit(0);
        if (poll(polled, 2, -1) > 0 && polled[1].revents)
            take_order(&self);
    }
}
