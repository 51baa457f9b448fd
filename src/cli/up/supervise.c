#include "cli/up/supervise.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "cli/up/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define READY_EVERY_MS 10
/* A keeper adopts what is there before it answers; a thousand sandboxes take a few seconds. */
#define SLOW_MS   60000
#define STATE_MAX 256

struct supervisor {
    struct program *programs;
    size_t count;
    void (*announce)(void *with);
    void *with;
    int signal_fd;
    struct notify notify;
    bool announced;
    unsigned asked;    /* how often to stop */
    int code;          /* to end with */
    uint64_t alive_ms; /* when the next sign of life is due */
};

/* What the children get back, and whose children they are. */
static sigset_t children_mask;
static pid_t parent;

static int signals_open(void)
{
    static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
    sigset_t set;

    (void) sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        (void) sigaddset(&set, wanted[i]);
    (void) sigprocmask(SIG_BLOCK, &set, &children_mask);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void supervise_enter(void)
{
    (void) setpgid(0, 0);
    /* Orphans would hold the state and the port against the next `cove up`. Killing loses nothing. */
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(1);
    (void) sigprocmask(SIG_SETMASK, &children_mask, NULL);
}

static const char *state_text(const struct supervisor *s, char *out, size_t size)
{
    static const char *const names[] = {
        [PROGRAM_DOWN] = "down", [PROGRAM_STARTING] = "starting", [PROGRAM_UP] = "up"
    };
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < s->count && n < size; i++)
        if (!s->programs[i].off)
            n += (size_t) snprintf(out + n, size - n, "%s%s %s", n ? ", " : "", s->programs[i].name,
                                   names[s->programs[i].life]);
    return out;
}

static void set_life(struct supervisor *s, struct program *program, enum program_life life)
{
    char text[STATE_MAX];

    program->life = life;
    notify_send(&s->notify, "STATUS=%s", state_text(s, text, sizeof text));
}

/* The last row that runs: what the others stand on comes last. */
static void stop_next(struct supervisor *s)
{
    for (size_t i = s->count; i-- > 0;) {
        struct program *program = &s->programs[i];
        const int by_ask[] = { 0, SIGTERM, program->hurry, SIGKILL };

        if (!program->pid)
            continue;
        if (program->asked < s->asked)
            (void) kill(program->pid, by_ask[s->asked]);
        program->asked = s->asked;
        return;
    }
}

static void stop(struct supervisor *s)
{
    if (s->asked == 0)
        notify_send(&s->notify, "STOPPING=1\nSTATUS=stopping; sandboxes keep running");
    if (s->asked < 3)
        s->asked++;
    stop_next(s);
}

static void give_up(struct supervisor *s, const struct program *program, int status)
{
    char why[64];

    log_line(LOG_ERROR, "%s cannot be started: %s, %u attempt%s; what it said is above",
             program->name, restart_reason(status, why, sizeof why), program->restart.strikes,
             program->restart.strikes == 1 ? "" : "s");
    s->code = restart_exit_code(status);
    stop(s);
}

/* It ended by itself. */
static void ended(struct supervisor *s, struct program *program, int status)
{
    uint64_t now = io_now_ms(), ready = program->life == PROGRAM_UP ? now - program->ready_ms : 0;
    char why[64], when[32] = "at once";
    unsigned wait;

    set_life(s, program, PROGRAM_DOWN);
    if (!restart_again(&program->restart, status, ready, &wait)) {
        give_up(s, program, status);
        return;
    }
    program->start_ms = now + wait;
    if (wait)
        (void) snprintf(when, sizeof when, "in %u ms", wait);
    log_line(LOG_WARNING, "%s ended: %s after %" PRIu64 " ms; starting it again %s", program->name,
             restart_reason(status, why, sizeof why), now - program->began_ms, when);
}

static void reap(struct supervisor *s)
{
    pid_t pid;
    int status;

    /* All children: as PID 1 of a container, orphans of others are ours as well. */
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (size_t i = 0; i < s->count; i++) {
            if (s->programs[i].pid != pid)
                continue;
            s->programs[i].pid = 0;
            if (s->asked)
                stop_next(s);
            else
                ended(s, &s->programs[i], status);
        }
    }
}

static void reload(struct supervisor *s)
{
    bool any = false;

    if (s->announced)
        notify_send(&s->notify, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, io_now_us());
    for (size_t i = 0; i < s->count; i++) {
        struct program *program = &s->programs[i];

        if (program->off || !program->reload)
            continue;
        any = true;
        program->reload(program->with);
        if (program->pid)
            (void) kill(program->pid, SIGHUP);
    }
    if (s->announced)
        notify_send(&s->notify, "READY=1");
    if (!any) /* nothing can be reloaded, so a terminal was closed */
        stop(s);
}

static void take_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof info) == (ssize_t) sizeof info) {
        if (info.ssi_signo == SIGHUP && !s->asked)
            reload(s);
        else if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM)
            stop(s);
    }
}

static bool may_start(const struct supervisor *s, const struct program *program)
{
    if (program->off || program->life != PROGRAM_DOWN || io_now_ms() < program->start_ms)
        return false;
    if (program->restart.was_ready)
        return true;
    for (size_t i = 0; i < s->count; i++)
        if ((program->needs & PROGRAM_BIT(i)) && !s->programs[i].restart.was_ready)
            return false;
    return true;
}

static void start(struct supervisor *s, struct program *program)
{
    struct err err;

    program->began_ms = io_now_ms();
    if (program->start(program->with, &program->pid, &err) == 0) {
        set_life(s, program, PROGRAM_STARTING);
        return;
    }
    log_line(LOG_ERROR, "start %s: %s", program->name, err.msg);
    program->pid = 0;
    ended(s, program, W_EXITCODE(err_kind_info(err.kind)->exit_code, 0));
}

static void look_whether_ready(struct supervisor *s, struct program *program)
{
    uint64_t now = io_now_ms();

    if (program->is_ready(program->with)) {
        if (program->restart.was_ready)
            log_line(LOG_INFO, "%s is up again after %" PRIu64 " ms", program->name,
                     now - program->began_ms);
        program->restart.was_ready = true;
        program->ready_ms = now;
        program->slow = false;
        set_life(s, program, PROGRAM_UP);
    } else if (!program->slow && now - program->began_ms > SLOW_MS) {
        program->slow = true;
        log_line(LOG_WARNING, "%s does not answer yet; still waiting", program->name);
    }
}

static void announce_once(struct supervisor *s)
{
    char text[STATE_MAX];

    for (size_t i = 0; i < s->count; i++)
        if (!s->programs[i].off && s->programs[i].life != PROGRAM_UP)
            return;
    s->announced = true;
    s->announce(s->with);
    notify_send(&s->notify, "READY=1\nSTATUS=%s", state_text(s, text, sizeof text));
}

static void tend(struct supervisor *s)
{
    for (size_t i = 0; i < s->count && !s->asked; i++) {
        struct program *program = &s->programs[i];

        if (may_start(s, program))
            start(s, program);
        if (program->life == PROGRAM_STARTING)
            look_whether_ready(s, program);
    }
    if (!s->announced && !s->asked)
        announce_once(s);
}

static void show_life(struct supervisor *s)
{
    uint64_t now = io_now_ms();

    if (s->notify.watchdog_ms && now >= s->alive_ms) {
        notify_send(&s->notify, "WATCHDOG=1");
        s->alive_ms = now + s->notify.watchdog_ms;
    }
}

static int sooner(int wait, uint64_t at)
{
    uint64_t now = io_now_ms(), left = at > now ? at - now : 0;

    return wait < 0 || left < (uint64_t) wait ? (int) left : wait;
}

/* How long nothing is to be done but for signals; -1: for ever. */
static int wait_of(const struct supervisor *s)
{
    int wait = s->notify.watchdog_ms ? sooner(-1, s->alive_ms) : -1;

    for (size_t i = 0; i < s->count && !s->asked; i++) {
        const struct program *program = &s->programs[i];

        if (program->off)
            continue;
        if (program->life == PROGRAM_STARTING)
            wait = sooner(wait, io_now_ms() + READY_EVERY_MS);
        else if (program->life == PROGRAM_DOWN && (program->restart.was_ready || program->start_ms))
            wait = sooner(wait, program->start_ms);
    }
    return wait;
}

static bool any_runs(const struct supervisor *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->programs[i].pid)
            return true;
    return false;
}

int supervise(struct program *programs, size_t count, void (*announce)(void *with), void *with,
              struct err *err)
{
    auto_close int signal_fd = signals_open();
    struct supervisor s = {
        .programs = programs,
        .count = count,
        .announce = announce,
        .with = with,
        .signal_fd = signal_fd,
    };

    if (signal_fd < 0)
        return err_sys(err, errno, "signals");
    parent = getpid();
    notify_open(&s.notify);
    for (;;) {
        struct pollfd p = { .fd = signal_fd, .events = POLLIN };

        tend(&s);
        show_life(&s);
        if (s.asked && !any_runs(&s))
            break;
        (void) poll(&p, 1, wait_of(&s));
        take_signals(&s);
        reap(&s);
    }
    notify_close(&s.notify);
    return s.code;
}
