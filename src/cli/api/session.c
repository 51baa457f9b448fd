#include "cli/api/session.h"

#include "base/io.h"
#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/session_end.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "remote/talk.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

/* Theory: one loop, four things that can happen. Output that was received is written before more is asked for, so that a slow
 * reader of ours slows the command and fills no memory here; while it waits, signals still work. Stdin is read only when all
 * earlier input has left, for the same reason. Signals go by a request of their own: one behind a megabyte of stdin that
 * is not read would never arrive. */

/* The agent ends a command at its timeout; if it cannot, we do, a little later. */
#define TIMEOUT_GRACE_MS 10000
/* A pipe that poll calls writable takes this much without blocking. */
#define PIPE_PIECE 4096u

enum { ON_SERVER, ON_SIGNAL, ON_STDIN, ON_OUT, ON_COUNT };

struct pump {
    struct session *session;
    struct talk *talk;
    int signal_fd;
    bool stdin_open, end_due, input_dead, resize_due;
    struct talk_event out;
    size_t out_done; /* bytes of out.data that are written */
    bool have_out;
    unsigned signals;
    uint64_t deadline_ms; /* 0: none */
    struct session_end end;
};

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

static int signals_open(sigset_t *before)
{
    sigset_t set;

    (void) sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(forwarded); i++)
        (void) sigaddset(&set, forwarded[i]);
    (void) sigaddset(&set, SIGWINCH);
    (void) sigprocmask(SIG_BLOCK, &set, before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void finish(struct pump *p, enum session_how how)
{
    p->end.how = how;
}

static bool done(const struct pump *p)
{
    return p->end.how != SESSION_GOES_ON;
}

static void copy_text(json_t *json, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(json, name));

    if (text)
        (void) snprintf(out, size, "%s", text);
}

static void take_text(struct pump *p, json_t *json)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    struct session *s = p->session;

    if (type && strcmp(type, "sandbox") == 0) {
        copy_text(json, "id", s->sandbox, sizeof s->sandbox);
        copy_text(json, "name", s->name, sizeof s->name);
        s->memory_bytes = (uint64_t) json_integer_value(
            json_object_get(json_object_get(json, "limits"), "memory"));
    } else if (type && strcmp(type, "start") == 0) {
        copy_text(json, "sandbox", s->sandbox, sizeof s->sandbox);
        s->proc = (uint32_t) json_integer_value(json_object_get(json, "proc"));
    } else if (type && strcmp(type, "missed") == 0) {
        p->end.missed += (uint64_t) json_integer_value(json_object_get(json, "bytes"));
    } else if (type && strcmp(type, "end") == 0) {
        p->end.result = json_incref(json);
    } else if (type && strcmp(type, "error") == 0) {
        (void) ask_error(json_object_get(json, "error"), &p->end.err);
        finish(p, s->proc ? SESSION_LOST : SESSION_REFUSED);
    }
}

/* The command's end is the session's when the server has said all: with --wait it has removed the sandbox by then. false:
 * nothing more is here. */
static bool take_event(struct pump *p)
{
    int r = talk_next(p->talk, &p->out, &p->end.err);

    if (r < 0)
        finish(p, p->end.result ? SESSION_ENDED : SESSION_LOST);
    if (r <= 0)
        return false;
    switch (p->out.type) {
    case TALK_TEXT:
        take_text(p, p->out.json);
        json_decref(p->out.json);
        break;
    case TALK_CLOSED:
        (void) err_set(&p->end.err, ERR_UNAVAILABLE, "the server closed the connection");
        finish(p, p->end.result ? SESSION_ENDED : SESSION_LOST);
        break;
    case TALK_STDOUT:
    case TALK_STDERR:
        p->have_out = p->out.len > 0;
        p->out_done = 0;
    }
    return true;
}

static int out_fd(const struct pump *p)
{
    return p->out.type == TALK_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
}

static void write_out(struct pump *p)
{
    size_t left = p->out.len - p->out_done;
    struct stat st;
    ssize_t n;

    if (left > PIPE_PIECE && (fstat(out_fd(p), &st) < 0 || !S_ISREG(st.st_mode)))
        left = PIPE_PIECE;
    n = write(out_fd(p), p->out.data + p->out_done, left);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0) {
        /* The reader is gone: end as quietly as a command that SIGPIPE ended. */
        p->end.signal = SIGPIPE;
        (void) err_sys(&p->end.err, errno, "write the command's output");
        finish(p, errno == EPIPE ? SESSION_SIGNALLED : SESSION_FAILED);
        return;
    }
    p->out_done += (size_t) n;
    p->have_out = p->out_done < p->out.len;
}

static void read_stdin(struct pump *p)
{
    char data[TALK_PIECE];
    ssize_t n = read(STDIN_FILENO, data, sizeof data);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0) {
        (void) talk_stdin(p->talk, data, (size_t) n);
        return;
    }
    p->stdin_open = false;
    p->end_due = true;
}

/* What is due goes as soon as what was before it has left. */
static void flush_input(struct pump *p)
{
    uint16_t rows, columns;
    struct err err;

    if (!p->input_dead && !talk_pending(p->talk)) {
        if (p->end_due)
            p->end_due = !talk_stdin_end(p->talk);
        else if (p->resize_due && p->session->proc) {
            terminal_size(&rows, &columns);
            p->resize_due = !talk_resize(p->talk, rows, columns);
        }
    }
    /* The server hung up: what it wrote is still to be read. */
    if (!p->input_dead && talk_flush(p->talk, &err) < 0) {
        p->input_dead = true;
        p->stdin_open = false;
    }
}

static void pass_signal(struct pump *p, int number)
{
    struct session *s = p->session;
    struct err err;

    /* At a terminal, keys are bytes: a signal was sent to us from elsewhere, and means us. */
    if ((p->signals++ > 0 || s->options->tty || !s->proc) && number != SIGUSR1 &&
        number != SIGUSR2) {
        p->end.signal = number;
        finish(p, s->detaches && s->proc ? SESSION_DETACHED : SESSION_SIGNALLED);
        return;
    }
    if (s->proc)
        (void) server_ask("POST", json_pack("{s:i}", "signal", number), NULL, &err,
                          "/v1/sandboxes/%s/processes/%u/signal", s->sandbox,
                          (unsigned long long) s->proc);
}

static void read_signals(struct pump *p)
{
    struct signalfd_siginfo info;

    while (!done(p) && read(p->signal_fd, &info, sizeof info) == (ssize_t) sizeof info) {
        if ((int) info.ssi_signo == SIGWINCH)
            p->resize_due = p->session->options->tty;
        else
            pass_signal(p, (int) info.ssi_signo);
    }
}

static int poll_timeout(const struct pump *p)
{
    uint64_t now = io_now_ms(), wait;

    if (!p->deadline_ms)
        return -1;
    wait = p->deadline_ms > now ? p->deadline_ms - now : 0;
    return wait > INT32_MAX ? INT32_MAX : (int) wait;
}

static void poll_fill(const struct pump *p, struct pollfd fds[ON_COUNT])
{
    bool pending = talk_pending(p->talk) && !p->input_dead;
    short server = (short) ((p->have_out ? 0 : POLLIN) | (pending ? POLLOUT : 0));

    /* A connection that hung up while output waits for our reader would wake us for nothing. */
    fds[ON_SERVER] = (struct pollfd){ .fd = server ? talk_fd(p->talk) : -1, .events = server };
    fds[ON_SIGNAL] = (struct pollfd){ .fd = p->signal_fd, .events = POLLIN };
    fds[ON_STDIN] =
        (struct pollfd){ .fd = p->stdin_open && !pending && p->session->proc ? STDIN_FILENO : -1,
                         .events = POLLIN };
    fds[ON_OUT] = (struct pollfd){ .fd = p->have_out ? out_fd(p) : -1, .events = POLLOUT };
}

static void step(struct pump *p)
{
    struct pollfd fds[ON_COUNT];

    /* First what has been received already: no poll would tell of it. */
    while (!p->have_out && !done(p) && take_event(p))
        ;
    if (done(p))
        return;
    poll_fill(p, fds);
    if (poll(fds, ON_COUNT, poll_timeout(p)) < 0)
        return;
    if (fds[ON_SIGNAL].revents)
        read_signals(p);
    if (!done(p) && fds[ON_OUT].revents)
        write_out(p);
    if (!done(p) && fds[ON_STDIN].revents)
        read_stdin(p);
    if (!done(p))
        flush_input(p);
    if (!done(p) && p->deadline_ms && io_now_ms() >= p->deadline_ms)
        finish(p, SESSION_TIMED_OUT);
}

static void pump_run(struct pump *p)
{
    struct session *s = p->session;
    struct terminal terminal = { 0 };
    sigset_t before;

    p->signal_fd = signals_open(&before);
    if (s->options->timeout_ms)
        p->deadline_ms = io_now_ms() + s->options->timeout_ms + TIMEOUT_GRACE_MS;
    if (s->options->tty && p->stdin_open)
        terminal_raw(&terminal);
    while (!done(p))
        step(p);
    terminal_restore(&terminal);
    own_close(&p->signal_fd);
    (void) sigprocmask(SIG_SETMASK, &before, NULL);
}

int session_run(struct session *s)
{
    struct pump p = { .session = s, .stdin_open = command_reads(s->options) };
    auto_free struct talk *talk = malloc(sizeof *talk);
    const struct remote *remote;
    int code;

    if (!talk || server_find(&remote, &p.end.err) < 0 ||
        talk_open(talk, remote, s->order, &p.end.err) < 0)
        return report_error(&p.end.err);
    p.talk = talk;
    pump_run(&p);
    talk_close(talk);
    code = session_report(s, &p.end);
    json_decref(p.end.result);
    return code;
}
