#include "direct/session.h"

#include "base/io.h"
#include "base/own.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "direct/session_end.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

/* Theory: one loop, five things that can happen. Output that was received is written before more
 * is asked for, so that a slow reader of ours slows the command and fills no memory here; while it
 * waits, signals still work. Stdin is read only when all earlier input has left, for the same
 * reason. Signals go by a connection of their own: one behind a megabyte of stdin that nobody
 * reads would never arrive. */

#define RETIE_EVERY_MS 200
/* A signal that the agent does not take at once is not worth a hanging Ctrl-C. */
#define SIGNAL_PATIENCE_MS 2000
/* The agent ends a command at its timeout; if it cannot, we do, a little later. */
#define TIMEOUT_GRACE_MS 10000
/* A pipe that poll calls writable takes this much without blocking. */
#define PIPE_PIECE 4096u

enum { ON_AGENT, ON_SIGNAL, ON_STDIN, ON_OUT, ON_LINK, ON_COUNT };

struct pump {
    struct session *session;
    struct exec *exec;
    int signal_fd;
    bool stdin_open;
    bool input_dead; /* the agent takes no more frames */
    struct exec_event out;
    uint32_t out_done; /* bytes of out.data that are written */
    bool have_out;
    bool link_lost;
    uint64_t retie_ms; /* when to try next */
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

static void take_event(struct pump *p)
{
    int r = exec_poll(p->exec, &p->out, &p->end.err);

    if (r < 0)
        finish(p, SESSION_LOST);
    if (r <= 0)
        return;
    if (p->out.type == EXEC_END) {
        p->end.result = p->out.result;
        finish(p, SESSION_ENDED);
        return;
    }
    p->end.missed += p->out.missed;
    p->have_out = p->out.len > 0;
    p->out_done = 0;
}

static int out_fd(const struct pump *p)
{
    return p->out.type == EXEC_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
}

static void write_out(struct pump *p)
{
    uint32_t left = p->out.len - p->out_done;
    struct stat st;
    ssize_t n;

    if (left > PIPE_PIECE && (fstat(out_fd(p), &st) < 0 || !S_ISREG(st.st_mode)))
        left = PIPE_PIECE;
    n = write(out_fd(p), p->out.data + p->out_done, left);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0) {
        /* Nobody reads any more: end as quietly as a command that SIGPIPE ended. */
        p->end.signal = SIGPIPE;
        (void) err_sys(&p->end.err, errno, "write the command's output");
        finish(p, errno == EPIPE ? SESSION_SIGNALLED : SESSION_FAILED);
        return;
    }
    p->out_done += (uint32_t) n;
    p->have_out = p->out_done < p->out.len;
}

static void read_stdin(struct pump *p)
{
    char data[32768];
    ssize_t n = read(STDIN_FILENO, data, sizeof data);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0) {
        (void) exec_stdin(p->exec, data, (uint32_t) n);
        return;
    }
    p->stdin_open = false;
    (void) exec_stdin_end(p->exec);
}

static void flush_input(struct pump *p)
{
    struct err err;

    /* The agent hung up, or the command closed its stdin: what it wrote is still to be read. */
    if (!p->input_dead && exec_flush(p->exec, &err) < 0) {
        p->input_dead = true;
        p->stdin_open = false;
        p->exec->stream.out_have = p->exec->stream.out_sent = 0;
    }
}

static void resize(struct pump *p)
{
    uint16_t rows, columns;

    if (!p->session->terminal || p->input_dead)
        return;
    terminal_size(&rows, &columns);
    (void) exec_resize(p->exec, rows, columns);
}

static void end_by_signal(struct pump *p, int number)
{
    struct session *s = p->session;
    struct err err;

    if (s->tied && session_relink(s, &err) == 0)
        (void) sandbox_destroy(s->link, s->sandbox->id, &err);
    p->end.signal = number;
    finish(p, s->detaches ? SESSION_DETACHED : SESSION_SIGNALLED);
}

static void pass_signal(struct pump *p, int number)
{
    struct session *s = p->session;
    struct err err;
    int patience, r = -1;

    /* At a terminal, keys are bytes: a signal was sent to us from elsewhere, and means us. */
    if ((p->signals++ > 0 || s->terminal) && number != SIGUSR1 && number != SIGUSR2) {
        end_by_signal(p, number);
        return;
    }
    if (session_relink(s, &err) == 0) {
        patience = s->link->patience_ms;
        s->link->patience_ms = SIGNAL_PATIENCE_MS;
        r = exec_kill(s->link, s->sandbox->id, p->exec->proc, (uint32_t) number, 0, NULL, &err);
        s->link->patience_ms = patience;
    }
    if (r < 0 && !p->input_dead)
        (void) exec_signal(p->exec, (uint32_t) number);
}

static void read_signals(struct pump *p)
{
    struct signalfd_siginfo info;

    while (!done(p) && read(p->signal_fd, &info, sizeof info) == (ssize_t) sizeof info) {
        if ((int) info.ssi_signo == SIGWINCH)
            resize(p);
        else
            pass_signal(p, (int) info.ssi_signo);
    }
}

/* The keeper went away. The command continues; when the keeper is back, the sandbox is tied again. */
static void retie(struct pump *p)
{
    struct session *s = p->session;
    struct err err;

    if (p->link_lost && io_now_ms() < p->retie_ms)
        return;
    link_close(s->link);
    p->link_lost = true;
    p->retie_ms = io_now_ms() + RETIE_EVERY_MS;
    if (session_relink(s, &err) < 0)
        return;
    if (!s->tied || sandbox_tie(s->link, s->sandbox->id, &err) == 0 || err.kind == ERR_NO_SANDBOX)
        p->link_lost = false;
}

static int poll_timeout(const struct pump *p)
{
    uint64_t now = io_now_ms();
    int64_t wait = -1;

    if (p->deadline_ms)
        wait = p->deadline_ms > now ? (int64_t) (p->deadline_ms - now) : 0;
    if (p->link_lost && (wait < 0 || wait > RETIE_EVERY_MS))
        wait = RETIE_EVERY_MS;
    return wait > INT32_MAX ? INT32_MAX : (int) wait;
}

static void poll_fill(const struct pump *p, struct pollfd fds[ON_COUNT])
{
    const struct session *s = p->session;
    short agent = 0;

    /* A connection that hung up while output waits for our reader would wake us for nothing. */
    if (!p->have_out)
        agent |= POLLIN;
    if (stream_pending(&p->exec->stream))
        agent |= POLLOUT;
    fds[ON_AGENT] = (struct pollfd){ .fd = agent ? p->exec->stream.fd : -1, .events = agent };
    fds[ON_SIGNAL] = (struct pollfd){ .fd = p->signal_fd, .events = POLLIN };
    fds[ON_STDIN] = (struct pollfd){
        .fd = p->stdin_open && !stream_pending(&p->exec->stream) ? STDIN_FILENO : -1,
        .events = POLLIN,
    };
    fds[ON_OUT] = (struct pollfd){ .fd = p->have_out ? out_fd(p) : -1, .events = POLLOUT };
    fds[ON_LINK] = (struct pollfd){ .fd = s->tied && !p->link_lost ? s->link->fd : -1 };
}

static void step(struct pump *p)
{
    struct pollfd fds[ON_COUNT];
    int n;

    /* First what has been received already: no poll would tell of it. */
    if (!p->have_out)
        take_event(p);
    if (done(p))
        return;
    poll_fill(p, fds);
    n = poll(fds, ON_COUNT, poll_timeout(p));
    if (n < 0)
        return;
    if (fds[ON_SIGNAL].revents)
        read_signals(p);
    if (!done(p) && (fds[ON_LINK].revents || p->link_lost))
        retie(p);
    if (!done(p) && fds[ON_OUT].revents)
        write_out(p);
    if (!done(p) && fds[ON_STDIN].revents)
        read_stdin(p);
    if (!done(p))
        flush_input(p);
    if (!done(p) && p->deadline_ms && io_now_ms() >= p->deadline_ms)
        finish(p, SESSION_TIMED_OUT);
}

int session_run(struct session *s)
{
    struct pump p = { .session = s, .exec = s->exec, .stdin_open = s->stdin_on };
    struct terminal terminal = { 0 };
    sigset_t before;

    p.signal_fd = signals_open(&before);
    if (p.signal_fd < 0) {
        report_note("signals: %s", strerror(errno));
        return err_kind_info(ERR_INTERNAL)->exit_code;
    }
    if (s->timeout_ms)
        p.deadline_ms = io_now_ms() + s->timeout_ms + TIMEOUT_GRACE_MS;
    if (s->terminal && s->stdin_on)
        terminal_raw(&terminal);
    while (!done(&p))
        step(&p);
    terminal_restore(&terminal);
    (void) close(p.signal_fd);
    (void) sigprocmask(SIG_SETMASK, &before, NULL);
    return session_report(s, &p.end);
}

/* As shells have it: 127, there is no such program; 126, it cannot be executed. The agent names the step that failed. */
int session_not_started(const struct err *err)
{
    int code = report_error(err);

    if (strncmp(err->msg, "exec ", 5) != 0)
        return code;
    return err->kind == ERR_NO_PATH || err->kind == ERR_NOT_DIR ? 127 : 126;
}

int session_start(struct session *session, const struct agent_request *request, bool *ret_started)
{
    struct keeper_stats stats;
    struct exec exec;
    struct err err;
    bool started;
    int code;

    session->detaches = !(request->flags & AGENT_KILL_ON_CLOSE);
    session->stdin_on = request->flags & AGENT_STDIN;
    session->terminal = request->flags & AGENT_PTY;
    session->timeout_ms = request->timeout_ms;
    if (!session->is_new && sandbox_stats(session->link, session->sandbox->id, &stats, &err) == 0)
        session->ooms_before = stats.oom_kills;
    started = exec_start(&exec, session->link, session->sandbox->id, request, &err) == 0;
    if (ret_started)
        *ret_started = started;
    if (!started)
        return session_not_started(&err);
    session->exec = &exec;
    code = session_run(session);
    exec_close(&exec);
    return code;
}
