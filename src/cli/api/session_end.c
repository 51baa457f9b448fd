#include "cli/api/session_end.h"

#include "base/own.h"
#include "cli/api/server.h"
#include "cli/report.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#define CODE_TIMEOUT 124
#define CODE_KILLED  137

static uint64_t number(json_t *json, const char *name)
{
    return (uint64_t) json_integer_value(json_object_get(json, name));
}

static const char *reason(json_t *result)
{
    const char *text = json_string_value(json_object_get(result, "exit_reason"));

    return text && text[0] && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz_")] ? text : "lost";
}

/* Of a sandbox that was there before, the limit has to be asked for. */
static uint64_t memory_limit(struct session *s)
{
    json_t *sandbox = NULL;
    struct err ignored;

    if (s->memory_bytes == 0 &&
        server_ask("GET", NULL, &sandbox, &ignored, "/v1/sandboxes/%s", s->sandbox) == 0)
        s->memory_bytes = number(json_object_get(sandbox, "limits"), "memory");
    json_decref(sandbox);
    return s->memory_bytes;
}

static int out_of_memory(struct session *s)
{
    char limit[32];

    report_note("out of memory: the sandbox reached its limit of %s",
                report_size(limit, sizeof limit, memory_limit(s)));
    return CODE_KILLED;
}

static int timed_out(const struct session *s)
{
    char span[32];

    report_note("timeout: the command ran longer than %s",
                report_span(span, sizeof span, s->options->timeout_ms));
    return CODE_TIMEOUT;
}

/* Signals that a person sent need no line; a crash does. */
static int ended_by_signal(const struct session *s, int signal)
{
    static const int wished[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGKILL };

    for (size_t i = 0; i < ARRAY_LEN(wished); i++)
        if (signal == wished[i])
            return 128 + signal;
    if (!s->options->quiet)
        report_note("the command was ended by signal %d (%s)", signal, strsignal(signal));
    return 128 + signal;
}

static int exit_code(struct session *s, json_t *result)
{
    const char *why = reason(result);

    if (strcmp(why, "exit") == 0)
        return (int) number(result, "exit_code");
    if (strcmp(why, "signal") == 0)
        return ended_by_signal(s, (int) number(result, "signal"));
    if (strcmp(why, "timeout") == 0)
        return timed_out(s);
    if (strcmp(why, "oom") == 0)
        return out_of_memory(s);
    if (strcmp(why, "cpu_timeout") == 0) {
        report_note("cpu_timeout: the command used more CPU time than --cpu-timeout allows");
        return CODE_TIMEOUT;
    }
    report_note("how the command ended was lost");
    return err_kind_info(ERR_INTERNAL)->exit_code;
}

static void print_stats(json_t *r)
{
    bool exited = strcmp(reason(r), "exit") == 0;

    (void) fprintf(stderr,
                   "cove: ended=%s code=%u signal=%u wall_ms=%" PRIu64 " cpu_ms=%" PRIu64
                   " peak_bytes=%" PRIu64 " stdout_bytes=%" PRIu64 " stderr_bytes=%" PRIu64 "\n",
                   reason(r), exited ? (unsigned) number(r, "exit_code") : 0,
                   (unsigned) number(r, "signal"), number(r, "wall_ms"), number(r, "cpu_ms"),
                   number(r, "peak_bytes"), number(r, "stdout_bytes"), number(r, "stderr_bytes"));
}

/* The agent names the step that failed. */
int session_not_started(const struct err *err)
{
    int code = report_error(err);

    if (strncmp(err->msg, "exec ", 5) != 0)
        return code;
    return err->kind == ERR_NO_PATH || err->kind == ERR_NOT_DIR ? 127 : 126;
}

int session_report(struct session *s, struct session_end *end)
{
    int code;

    if (end->missed)
        report_note("%" PRIu64 " bytes of output were dropped before they could be read",
                    end->missed);
    if (end->how == SESSION_ENDED && s->options->stats)
        print_stats(end->result);
    switch (end->how) {
    case SESSION_ENDED:
        code = exit_code(s, end->result);
        if (s->keeps && !s->options->quiet)
            report_note("kept: %s", s->name[0] ? s->name : s->sandbox);
        return code;
    case SESSION_REFUSED:
        return session_not_started(&end->err);
    case SESSION_LOST:
    case SESSION_FAILED:
        return report_error(&end->err);
    case SESSION_DETACHED:
        report_note("detached: process %u keeps running in %s", s->proc, s->sandbox);
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
