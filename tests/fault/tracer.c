#include "tracer.h"

#include "base/io.h"
#include "base/own.h"
#include "calls.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>

#define OPTIONS                                                                                    \
    (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEVFORK |      \
     PTRACE_O_TRACEEXEC)

static const char *const role_names[ROLE_COUNT] = {
    [ROLE_NONE] = "nobody",      [ROLE_KEEPER] = "keeper", [ROLE_CHILD] = "child",
    [ROLE_MAKER] = "disk maker", [ROLE_SAVER] = "saver",
};

const char *role_name(enum role role)
{
    return role_names[role];
}

static struct tracee *find(struct tracer *t, pid_t pid)
{
    for (size_t i = 0; i < TRACEES_MAX; i++)
        if (t->tracees[i].pid == pid)
            return &t->tracees[i];
    return NULL;
}

static struct tracee *add(struct tracer *t, pid_t pid, enum role role)
{
    struct tracee *slot = find(t, pid);

    if (!slot)
        slot = find(t, 0);
    if (!slot)
        return NULL;
    if (slot->pid == 0)
        *slot = (struct tracee){ .pid = pid, .running = true };
    if (role != ROLE_NONE)
        slot->role = role;
    return slot;
}

static int seize(struct tracer *t, pid_t pid, enum role role, struct err *err)
{
    struct tracee *e = add(t, pid, role);

    if (!e)
        return err_set(err, ERR_INTERNAL, "too many tracees");
    if (ptrace(PTRACE_SEIZE, pid, NULL, OPTIONS) < 0) {
        e->pid = 0;
        return err_sys(err, errno, "trace the %s", role_name(role));
    }
    /* Without a stop it would not begin to report its calls. */
    (void) ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
    return 0;
}

int tracer_begin(struct tracer *t, const struct injection *what, pid_t keeper, pid_t maker,
                 pid_t child, struct err *err)
{
    *t = (struct tracer){ .what = *what, .patience_ms = 15000, .keeper = keeper };
    if (seize(t, keeper, ROLE_KEEPER, err) < 0)
        return -1;
    if ((what->who == ROLE_MAKER && seize(t, maker, ROLE_MAKER, err) < 0) ||
        (child > 1 && (what->who == ROLE_CHILD || what->victim == ROLE_CHILD) &&
         seize(t, child, ROLE_CHILD, err) < 0)) {
        tracer_end(t);
        return -1;
    }
    return 0;
}

static bool wants_calls(const struct tracer *t, const struct tracee *e)
{
    return !t->done ? e->role == t->what.who : e->fail_with != 0;
}

static void resume(const struct tracer *t, struct tracee *e, int signal)
{
    e->running = true;
    (void) ptrace(wants_calls(t, e) ? PTRACE_SYSCALL : PTRACE_CONT, e->pid, NULL, signal);
}

static void forget(struct tracer *t, struct tracee *e)
{
    (void) t;
    (void) ptrace(PTRACE_DETACH, e->pid, NULL, NULL);
    e->pid = 0;
}

/* What has nothing to tell any more is let go at once. */
static bool needed(const struct tracer *t, const struct tracee *e)
{
    if (t->ending || e->fail_with)
        return e->fail_with != 0;
    if (e->role == ROLE_KEEPER)
        return true;
    return !t->done && (e->role == t->what.who || e->role == t->what.victim);
}

static void let_run(struct tracer *t, struct tracee *e, int signal)
{
    if (needed(t, e))
        resume(t, e, signal);
    else
        forget(t, e);
}

/* Let go first: its parent must be the one that hears of its death, and cannot reap who is traced. */
static void let_die(struct tracee *e)
{
    pid_t pid = e->pid;
    int status;

    e->pid = 0;
    if (!e->running) { /* at a system call: the signal comes with it */
        (void) ptrace(PTRACE_DETACH, pid, NULL, SIGKILL);
        return;
    }
    (void) ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
    if (waitpid(pid, &status, __WALL) < 0 || !WIFSTOPPED(status))
        return; /* it has ended by itself */
    (void) ptrace(PTRACE_DETACH, pid, NULL, NULL);
    (void) kill(pid, SIGKILL);
}

static void kill_victim(struct tracer *t, struct tracee *e)
{
    struct tracee *victim = NULL;

    if (e->role == t->what.victim && e->role != ROLE_KEEPER)
        victim = e;
    for (size_t i = 0; !victim && i < TRACEES_MAX; i++)
        if (t->tracees[i].pid > 1 && t->tracees[i].role == t->what.victim)
            victim = &t->tracees[i];
    if (victim && victim->role == ROLE_KEEPER)
        (void) kill(victim->pid, SIGKILL);
    else if (victim)
        let_die(victim);
    if (t->what.keeper_too)
        (void) kill(t->keeper, SIGKILL);
}

/* The call that is about to begin: is it the one? */
static void on_entry(struct tracer *t, struct tracee *e, const struct __ptrace_syscall_info *info)
{
    const struct call *call = call_find(info->entry.nr);
    uint64_t args[6];

    memcpy(args, info->entry.args, sizeof args);
    if (t->done || t->ending || e->role != t->what.who)
        return;
    if (t->what.victim == ROLE_NONE && !call_can_fail(info->entry.nr, args))
        return;
    if (++t->counted != t->what.n)
        return;
    t->done = true;
    if (call)
        (void) snprintf(t->call, sizeof t->call, "%s", call->name);
    else
        (void) snprintf(t->call, sizeof t->call, "call %u", (unsigned) info->entry.nr);
    if (t->what.victim != ROLE_NONE) {
        kill_victim(t, e);
        return;
    }
    t->errnum = call ? call->errors[t->what.variant % CALL_ERRORS] : ENOMEM;
    e->fail_with = t->errnum;
    /* No such call: the kernel skips it. */
    (void) ptrace(PTRACE_POKEUSER, e->pid, offsetof(struct user_regs_struct, orig_rax), -1L);
}

static void on_call(struct tracer *t, struct tracee *e)
{
    struct __ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, e->pid, sizeof info, &info) <= 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        on_entry(t, e, &info);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && e->fail_with) {
        (void) ptrace(PTRACE_POKEUSER, e->pid, offsetof(struct user_regs_struct, rax),
                      -(long) e->fail_with);
        e->fail_with = 0;
    }
}

/* The keeper's clone3 makes sandboxes, its fork makes disk makers. Where savers are meant it makes no others; they come by either. */
static enum role role_of_born(const struct tracer *t, long nr)
{
    if (t->what.who == ROLE_SAVER || t->what.victim == ROLE_SAVER)
        return ROLE_SAVER;
    return nr == __NR_clone3 ? ROLE_CHILD : ROLE_MAKER;
}

static void on_fork(struct tracer *t, struct tracee *e)
{
    unsigned long pid = 0;
    long nr = ptrace(PTRACE_PEEKUSER, e->pid, offsetof(struct user_regs_struct, orig_rax), NULL);
    enum role role = ROLE_COUNT; /* known, and none of ours */
    struct tracee *born;
    int status;

    (void) ptrace(PTRACE_GETEVENTMSG, e->pid, NULL, &pid);
    if (e->role == ROLE_KEEPER)
        role = role_of_born(t, nr);
    else if (e->role == ROLE_MAKER)
        role = ROLE_MAKER; /* its workers, and mkfs until its exec */
    born = add(t, (pid_t) pid, role);
    if (!born)
        return;
    /* Its first stop may have come before this one. If not, it is waited for here: the parent's many
     * stops would starve it, and one that dies while it is traced is not its parent's to reap. */
    if (born->running && (waitpid(born->pid, &status, __WALL) < 0 || !WIFSTOPPED(status))) {
        born->pid = 0;
        return;
    }
    born->running = false;
    let_run(t, born, 0);
}

static bool is_birth(int event)
{
    return event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_VFORK;
}

static void on_stop(struct tracer *t, pid_t pid, int status)
{
    struct tracee *e = find(t, pid);
    int signal = WSTOPSIG(status), event = status >> 16;

    if (!e)
        e = add(t, pid, ROLE_NONE); /* born; its parent's report comes after it */
    if (!e)
        return;
    e->running = false;
    if (e->role == ROLE_NONE)
        return; /* waits for on_fork */
    if (signal == (SIGTRAP | 0x80))
        on_call(t, e);
    else if (is_birth(event))
        on_fork(t, e);
    else if (event == PTRACE_EVENT_EXEC) {
        forget(t, e);
        return;
    }
    if (e->pid)
        let_run(t, e, event || signal == (SIGTRAP | 0x80) || signal == SIGTRAP ? 0 : signal);
}

static volatile sig_atomic_t alarmed;

static void on_alarm(int number)
{
    (void) number;
    alarmed = 1;
}

/* SIGALRM every so often, from `first_ms` on: one that comes just before a wait is not the last. */
static void set_alarm(int first_ms)
{
    struct sigaction act = { .sa_handler = on_alarm };
    struct itimerval timer = { .it_interval = { .tv_usec = first_ms ? 100000 : 0 },
                               .it_value = { first_ms / 1000, first_ms % 1000 * 1000 } };

    alarmed = 0;
    (void) sigaction(SIGALRM, &act, NULL);
    (void) setitimer(ITIMER_REAL, &timer, NULL);
}

int tracer_serve(struct tracer *t, pid_t client)
{
    int result = -1;

    if (client <= 1)
        return -1;
    set_alarm(t->patience_ms);
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, __WALL);

        if (pid < 0 && errno == EINTR && alarmed) {
            t->timed_out = true;
            if (client > 1) { /* never everybody */
                (void) kill(client, SIGKILL);
                (void) waitpid(client, &status, 0);
            }
            break;
        }
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            break;
        if (pid == client) {
            result = status;
            break;
        }
        if (WIFSTOPPED(status)) {
            on_stop(t, pid, status);
        } else {
            struct tracee *e = find(t, pid);

            if (e)
                e->pid = 0;
            if (pid == t->keeper)
                t->keeper = 0; /* reaped here */
        }
    }
    set_alarm(0);
    return result;
}

/* A running tracee can only be let go from a stop. */
static void stop_and_forget(struct tracer *t, struct tracee *e)
{
    int status;

    if (e->running) {
        (void) ptrace(PTRACE_INTERRUPT, e->pid, NULL, NULL);
        if (waitpid(e->pid, &status, __WALL) < 0 || !WIFSTOPPED(status)) {
            if (e->pid == t->keeper)
                t->keeper = 0;
            e->pid = 0;
            return;
        }
        if (WSTOPSIG(status) == (SIGTRAP | 0x80))
            on_call(t, e);
        else if (is_birth(status >> 16)) /* or the newborn would wait for us for ever */
            on_fork(t, e);
    }
    forget(t, e);
}

void tracer_end(struct tracer *t)
{
    t->ending = true; /* what the keeper does from here on is not the operation any more */
    /* A call that was skipped must still get its result. */
    for (size_t i = 0; i < TRACEES_MAX; i++) {
        struct tracee *e = &t->tracees[i];
        int status;

        while (e->pid && e->fail_with && e->running && waitpid(e->pid, &status, __WALL) == e->pid &&
               WIFSTOPPED(status))
            on_stop(t, e->pid, status);
    }
    set_alarm(5000);
    for (size_t i = 0; i < TRACEES_MAX; i++)
        if (t->tracees[i].pid)
            stop_and_forget(t, &t->tracees[i]);
    set_alarm(0);
}
