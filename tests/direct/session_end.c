#include "direct/session_end.h"

#include "cli/report.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define CODE_TIMEOUT 124
#define CODE_KILLED  137

/* How long a sandbox whose agent is gone may take to be gone itself. */
#define GONE_PATIENCE_MS 5000

int session_relink(struct session *s, struct err *err)
{
    if (s->link->fd >= 0)
        return 0;
    return link_open(s->link, report_state(), err);
}

static bool ran_out_of_memory(struct session *s)
{
    struct keeper_stats stats;
    struct err err;

    return session_relink(s, &err) == 0 &&
           sandbox_stats(s->link, s->sandbox->id, &stats, &err) == 0 &&
           stats.oom_kills > s->ooms_before;
}

static int out_of_memory(const struct session *s)
{
    char limit[32];

    report_note("out of memory: the sandbox reached its limit of %s",
                report_size(limit, sizeof limit, s->sandbox->limits.memory_bytes));
    return CODE_KILLED;
}

static int timed_out(const struct session *s)
{
    char span[32];

    report_note("timeout: the command ran longer than %s",
                report_span(span, sizeof span, s->timeout_ms));
    return CODE_TIMEOUT;
}

/* Signals that are somebody's wish need no line; a crash does. */
static int ended_by_signal(const struct session *s, uint32_t number)
{
    static const int wished[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGKILL };

    for (size_t i = 0; i < sizeof wished / sizeof wished[0]; i++)
        if ((int) number == wished[i])
            return 128 + (int) number;
    if (!s->quiet)
        report_note("the command was ended by signal %u (%s)", number, strsignal((int) number));
    return 128 + (int) number;
}

/* Out of memory wins over a timeout: a sandbox that is full often ends by that. */
static void judge_memory(struct session *s, struct exec_result *result)
{
    /* A shell whose command was killed ends with 137 of its own accord. */
    bool killed = (result->ended == EXIT_SIGNAL && result->signal == SIGKILL) ||
                  (result->ended == EXIT_CODE && result->exit_code == CODE_KILLED) ||
                  result->ended == EXIT_TIMEOUT || result->ended == EXIT_CPU;

    if (killed && ran_out_of_memory(s))
        result->ended = EXIT_OOM;
}

static int exit_code(const struct session *s, const struct exec_result *result)
{
    switch (result->ended) {
    case EXIT_CODE:
        return (int) result->exit_code;
    case EXIT_SIGNAL:
        return ended_by_signal(s, result->signal);
    case EXIT_TIMEOUT:
        return timed_out(s);
    case EXIT_CPU:
        report_note("cpu_timeout: the command used more CPU time than --cpu-timeout allows");
        return CODE_TIMEOUT;
    case EXIT_OOM:
        return out_of_memory(s);
    case EXIT_LOST:
    case EXIT_NONE:
    case EXIT_COUNT:
        break;
    }
    report_note("how the command ended was lost");
    return err_kind_info(ERR_INTERNAL)->exit_code;
}

static void print_stats(const struct exec_result *r)
{
    (void) fprintf(stderr,
                   "cove: ended=%s code=%u signal=%u wall_ms=%" PRIu64 " cpu_ms=%" PRIu64
                   " peak_bytes=%" PRIu64 " stdout_bytes=%" PRIu64 " stderr_bytes=%" PRIu64 "\n",
                   agent_exit_name(r->ended), r->exit_code, r->signal, r->wall_ms, r->cpu_ms,
                   r->peak_bytes, r->stdout_bytes, r->stderr_bytes);
}

/* The agent is PID 1: when it is gone, so is the sandbox, and the keeper knows why. */
static int lost(struct session *s, struct err *err)
{
    struct err why;

    if (err->kind != ERR_UNAVAILABLE || session_relink(s, &why) < 0)
        return report_error(err);
    s->link->patience_ms = GONE_PATIENCE_MS;
    if (sandbox_wait(s->link, s->sandbox->id, &why) == 0 || why.kind == ERR_NO_SANDBOX)
        (void) err_set(err, ERR_NO_SANDBOX, "the sandbox ended before its command did");
    else if (why.kind == ERR_OOM)
        return out_of_memory(s);
    else if (why.kind != ERR_UNAVAILABLE)
        *err = why;
    s->link->patience_ms = LINK_PATIENCE_MS;
    return report_error(err);
}

int session_report(struct session *s, struct session_end *end)
{
    if (end->missed)
        report_note("%" PRIu64 " bytes of output were dropped before they could be read",
                    end->missed);
    if (end->how == SESSION_ENDED)
        judge_memory(s, &end->result);
    if (end->how == SESSION_ENDED && s->stats)
        print_stats(&end->result);
    switch (end->how) {
    case SESSION_ENDED:
        return exit_code(s, &end->result);
    case SESSION_LOST:
        return lost(s, &end->err);
    case SESSION_FAILED:
        return report_error(&end->err);
    case SESSION_DETACHED:
        report_note("detached: process %u keeps running in %s", s->exec->proc, s->sandbox->id);
        return 128 + end->signal;
    case SESSION_SIGNALLED:
        return 128 + end->signal;
    case SESSION_TIMED_OUT:
        return timed_out(s);
    case SESSION_GOES_ON:
        break;
    }
    return err_kind_info(ERR_INTERNAL)->exit_code;
}
