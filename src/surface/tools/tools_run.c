/* Bash, BashOutput, KillProcess. */
#include "base/own.h"
#include "server/form/form.h"
#include "surface/tools/tools.h"
#include "surface/tools/tools_shell.h"
#include "surface/tools/tools_text.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define OUTPUT_CHARS    30000u              /* of each stream; more is cut, and said */
#define OUTPUT_BYTES    (4u * OUTPUT_CHARS) /* of which every character fits */
#define TIMEOUT_MOST    3600000u
#define RING_BACKGROUND (1u << 20)

/* ---- answers ---- */

/* One stream as text: cut at a number of characters. */
static int add_stream(struct text *out, const char *data, size_t len, uint64_t total, bool *cut)
{
    size_t keep = text_cut(data ? data : "", len, OUTPUT_CHARS);

    *cut = keep < total;
    if (text_add_utf8(out, data ? data : "", keep) < 0)
        return -1;
    if (*cut)
        return text_addf(out, "\n... [output truncated: %" PRIu64 " bytes in all]\n", total);
    return text_add(out, "", 0);
}

static int put_output(json_t *answer, const struct ops_output *output, struct err *err)
{
    struct text streams[2] = { { 0 } }, all = { 0 };
    uint64_t totals[2] = { output->result.stdout_bytes, output->result.stderr_bytes };
    bool cut[2] = { false, false };
    int r = 0;

    for (int i = 0; i < 2 && r == 0; i++)
        r = add_stream(&streams[i], output->data[i], output->len[i], totals[i], &cut[i]);
    if (r == 0)
        r = text_add(&all, streams[0].data, streams[0].len);
    if (r == 0 && streams[1].len > 0 && all.len > 0 && all.data[all.len - 1] != '\n')
        r = text_add(&all, "\n", 1);
    if (r == 0)
        r = text_add(&all, streams[1].data, streams[1].len);
    if (r == 0) {
        (void) json_object_set_new(answer, "output", json_stringn(all.data, all.len));
        (void) json_object_set_new(answer, "stdout", json_stringn(streams[0].data, streams[0].len));
        (void) json_object_set_new(answer, "stderr", json_stringn(streams[1].data, streams[1].len));
        (void) json_object_set_new(answer, "truncated", json_boolean(cut[0] || cut[1]));
    }
    free(streams[0].data);
    free(streams[1].data);
    free(all.data);
    return r < 0 ? err_set(err, ERR_NO_MEMORY, "no memory for the output") : 0;
}

static void put_result(json_t *answer, const struct exec_result *result)
{
    uint32_t code = ops_exit_code(result);
    const char *reason = ops_exit_reason(result);
    char why[96] = "";

    if (result->ended == EXIT_TIMEOUT)
        (void) snprintf(why, sizeof why, "the command was ended after its timeout");
    else if (result->ended == EXIT_CPU)
        (void) snprintf(why, sizeof why,
                        "the command used more processor time than its cpu_timeout");
    else if (result->ended == EXIT_OOM)
        (void) snprintf(why, sizeof why, "the command was ended: the sandbox ran out of memory");
    else if (result->ended == EXIT_SIGNAL)
        (void) snprintf(why, sizeof why, "the command was ended by signal %u", result->signal);
    else if (code != 0)
        (void) snprintf(why, sizeof why, "exit code %u", code);
    (void) json_object_set_new(answer, "success", json_boolean(code == 0));
    (void) json_object_set_new(answer, "error", why[0] ? json_string(why) : json_null());
    (void) json_object_set_new(answer, "exit_code", json_integer(code));
    (void) json_object_set_new(answer, "exit_reason", json_string(reason));
    (void) json_object_set_new(answer, "duration_ms", json_integer((json_int_t) result->wall_ms));
    (void) json_object_set_new(answer, "resource_usage",
                               json_pack("{s:I, s:I, s:f}", "cpu_ms", (json_int_t) result->cpu_ms,
                                         "memory_peak_bytes", (json_int_t) result->peak_bytes,
                                         "memory_mb", (double) result->peak_bytes / (1024 * 1024)));
}

/* ---- Bash ---- */

struct bash {
    const char *command, *cwd, *user, *description, *session;
    json_t *env;
    uint64_t timeout_ms, timeout_s, cpu_timeout_ms;
    bool background, one_shot, restart;
};

#define AT(member) offsetof(struct bash, member)
/* clang-format off */
static const struct form_field bash_rows[] = {
    { "command", FORM_CONTENT, .at = AT(command), .most = 256 * 1024, .help = "the command to run; may be absent with restart" },
    { "timeout", FORM_COUNT, .at = AT(timeout_ms), 1, TIMEOUT_MOST, "milliseconds after which the command is ended" },
    { "timeout_seconds", FORM_COUNT, .at = AT(timeout_s), 1, TIMEOUT_MOST / 1000, "the same in seconds", .unlisted = true },
    { "cpu_timeout", FORM_COUNT, .at = AT(cpu_timeout_ms), 1, TIMEOUT_MOST, "milliseconds of processor time", .unlisted = true },
    { "run_in_background", FORM_BOOL, .at = AT(background),
      .help = "start it and return at once; its output is read with bash_output", .fallback = "false" },
    { "background", FORM_BOOL, .at = AT(background) },
    { "cwd", FORM_CONTENT, .at = AT(cwd), .most = 4000, .help = "directory for this command (default: where the shell is)" },
    { "working_directory", FORM_CONTENT, .at = AT(cwd), .most = 4000 },
    { "env", FORM_OBJECT, .at = AT(env), .help = "variables for this command" },
    { "user", FORM_CONTENT, .at = AT(user), .most = 63, .help = "user of the sandbox to run as" },
    { "session", FORM_CONTENT, .at = AT(session), .most = SHELL_NAME_MAX,
      .help = "name of the shell whose directory, variables and functions count",
      .schema = "{\"pattern\": \"^[A-Za-z0-9._-]+$\", \"default\": \"main\"}" },
    { "restart", FORM_BOOL, .at = AT(restart), .help = "forget the session's directory, variables and functions first", .fallback = "false" },
    { "one_shot", FORM_BOOL, .at = AT(one_shot), .help = "a shell of its own, which starts fresh and leaves nothing behind", .fallback = "false" },
    { "description", FORM_CONTENT, .at = AT(description), .most = 4096, .help = "what the command does, in a few words" },
    { "dangerouslyDisableSandbox", FORM_IGNORED },
};
/* clang-format on */
#undef AT
const struct form tool_bash_form = FORM_OF(bash_rows);
const struct form tool_bash_body_form = FORM_OF(bash_rows, .beside = &tool_where_form);

static int read_bash(struct tool_call *call, struct bash *bash, struct err *err)
{
    if (form_read(call->ops->caller, call->arguments, &tool_bash_form, bash, err) < 0)
        return -1;
    if (!bash->command && !bash->restart)
        return form_bad(call->ops->caller, err, "command", "is required");
    if (!bash->command)
        bash->command = "";
    if (!bash->command[0] && !bash->restart)
        return form_bad(call->ops->caller, err, "command", "must not be empty");
    if (bash->one_shot && (bash->session || bash->restart))
        return form_bad(call->ops->caller, err, "one_shot", "has no session to name or restart");
    if (!shell_name_ok(bash->session))
        return form_bad(call->ops->caller, err, "session",
                        "must be a name of letters, digits, '.', '_' and '-'");
    if (bash->timeout_s > 0)
        bash->timeout_ms = bash->timeout_s * 1000;
    else if (bash->timeout_ms == 0 && !bash->background)
        bash->timeout_ms = call->session->timeout_ms;
    return 0;
}

static int run_background(struct tool_call *call, struct ops_command *command, struct err *err)
{
    struct ops_run run;
    char said[96];

    command->flags = AGENT_DETACH;
    command->ring_bytes = RING_BACKGROUND;
    if (ops_run_start(call->ops, call->session->sandbox, command, &run, err) < 0)
        return -1;
    (void) snprintf(said, sizeof said, "running in the background as process %u", run.exec.proc);
    (void) json_object_set_new(call->answer, "process_id", json_integer(run.exec.proc));
    (void) json_object_set_new(call->answer, "pid", json_integer(run.exec.pid));
    (void) json_object_set_new(call->answer, "output", json_string(said));
    ops_run_close(&run);
    return 0;
}

static int run_wait(struct tool_call *call, struct ops_command *command, const struct bash *bash,
                    struct err *err)
{
    struct ops_output output;
    int r;

    command->watch = call->watch;
    command->watch_context = call->watch_context;
    if (ops_run_collect(call->ops, call->session->sandbox, command, OUTPUT_BYTES, &output, err) < 0)
        return -1;
    put_result(call->answer, &output.result);
    if (!bash->one_shot && output.result.ended != EXIT_CODE && !output.result.with_sandbox)
        (void) json_object_set_new(call->answer, "error",
                                   shell_kept(json_object_get(call->answer, "error")));
    r = put_output(call->answer, &output, err);
    if (r == 0 && bash->restart && !bash->command[0])
        (void) json_object_set_new(call->answer, "output", json_string("the shell was restarted"));
    ops_output_done(&output);
    return r;
}

int tool_bash(struct tool_call *call, struct err *err)
{
    auto_free const char **env = NULL;
    struct bash bash = { 0 };
    struct ops_command command = { 0 };
    struct shell_call shell;
    char cwd[AGENT_PATH_MAX];
    int r;

    if (read_bash(call, &bash, err) < 0)
        return -1;
    if (bash.env &&
        form_assignments(call->ops->caller, "env", bash.env, &env, &command.env_count, err) < 0)
        return -1;
    if (bash.cwd && session_path(call->session, bash.cwd, cwd, sizeof cwd) < 0)
        return form_bad(call->ops->caller, err, "cwd", "longer than %u bytes", AGENT_PATH_MAX - 1);
    command.env = env;
    command.user = bash.user;
    command.timeout_ms = bash.timeout_ms;
    command.cpu_timeout_ms = bash.cpu_timeout_ms;
    command.watch = call->watch;
    command.watch_context = call->watch_context;
    command.cwd = bash.cwd ? cwd : call->session->workdir[0] ? call->session->workdir : NULL;
    if (bash.one_shot)
        command.command = bash.command;
    else if (shell_wrap(&shell, &command,
                        &(struct shell_ask){ .command = bash.command,
                                             .name = bash.session,
                                             .home = call->session->workdir,
                                             .given = bash.cwd != NULL,
                                             .restart = bash.restart,
                                             .keeps = !bash.background },
                        err) < 0)
        return -1;
    r = bash.background ? run_background(call, &command, err)
                        : run_wait(call, &command, &bash, err);
    if (!bash.one_shot)
        shell_done(&shell);
    return r;
}

/* ---- BashOutput ---- */

struct wanted_process {
    uint32_t proc;
    bool found, running;
    struct exec_result result;
};

static int look_at_process(void *context, const struct agent_reply *item, struct err *err)
{
    struct wanted_process *wanted = context;

    (void) err;
    if (item->proc != wanted->proc)
        return 0;
    wanted->found = true;
    wanted->running = item->flags & AGENT_RUNNING;
    wanted->result = (struct exec_result){ .ended = item->ended,
                                           .exit_code = item->exit_code,
                                           .signal = item->signal,
                                           .wall_ms = item->wall_ms,
                                           .cpu_ms = item->cpu_ms,
                                           .peak_bytes = item->peak_bytes,
                                           .stdout_bytes = item->stdout_bytes,
                                           .stderr_bytes = item->stderr_bytes };
    return 0;
}

static int find_process(struct tool_call *call, uint64_t proc, struct wanted_process *wanted,
                        struct err *err)
{
    *wanted = (struct wanted_process){ .proc = (uint32_t) proc };
    if (ops_process_list(call->ops, call->session->sandbox, look_at_process, wanted, err) < 0)
        return -1;
    if (wanted->found)
        return 0;
    (void) caller_blame(call->ops->caller, "process_id", NULL, NULL);
    return err_set(err, ERR_NO_PROCESS, "there is no process %" PRIu64, proc);
}

/* What is there now, from two offsets on: reads until as much came as was written when we looked. */
static int read_now(struct tool_call *call, const struct wanted_process *wanted, uint64_t from[2],
                    struct text got[2], struct err *err)
{
    uint64_t upto[2] = { wanted->result.stdout_bytes, wanted->result.stderr_bytes };
    struct exec_event event;
    struct ops_run run;
    int r = 1;

    if (from[0] >= upto[0] && from[1] >= upto[1])
        return 0;
    if (ops_run_attach(call->ops, call->session->sandbox, wanted->proc, from[0], from[1], 0, &run,
                       err) < 0)
        return -1;
    while (from[0] < upto[0] || from[1] < upto[1]) {
        r = ops_run_next(call->ops, &run, &event, err);
        if (r <= 0 || event.type == EXEC_END)
            break;
        from[event.type] = event.offset + event.len;
        if (got[event.type].len < OUTPUT_BYTES &&
            text_add(&got[event.type], (const char *) event.data, event.len) < 0)
            r = err_set(err, ERR_NO_MEMORY, "no memory for the output");
    }
    ops_run_close(&run);
    return r < 0 ? -1 : 0;
}

struct output_wish {
    uint64_t proc, from[2];
};

#define AT(member) offsetof(struct output_wish, member)
/* clang-format off */
static const struct form_field output_rows[] = {
    { "process_id", FORM_ID, .at = AT(proc), 1, UINT32_MAX, "the process, as run_in_background named it", .needed = true },
    { "bash_id", FORM_ID, .at = AT(proc), 1, UINT32_MAX },
    { "stdout_from", FORM_COUNT, .at = AT(from[0]), 0, INT64_MAX, "byte of its stdout to begin with", .fallback = "0" },
    { "stderr_from", FORM_COUNT, .at = AT(from[1]), 0, INT64_MAX, "byte of its stderr to begin with", .fallback = "0" },
};
/* clang-format on */
#undef AT
const struct form tool_bash_output_form = FORM_OF(output_rows);

int tool_bash_output(struct tool_call *call, struct err *err)
{
    struct output_wish w = { 0 };
    struct text got[2] = { { 0 } };
    struct wanted_process wanted;
    struct ops_output output;
    int r;

    if (form_read(call->ops->caller, call->arguments, &tool_bash_output_form, &w, err) < 0 ||
        find_process(call, w.proc, &wanted, err) < 0)
        return -1;
    r = read_now(call, &wanted, w.from, got, err);
    if (r == 0 && !wanted.running)
        put_result(call->answer, &wanted.result);
    output = (struct ops_output){ .data = { got[0].data, got[1].data },
                                  .len = { got[0].len, got[1].len } };
    output.result.stdout_bytes = got[0].len;
    output.result.stderr_bytes = got[1].len;
    if (r == 0)
        r = put_output(call->answer, &output, err);
    (void) json_object_set_new(call->answer, "process_id", json_integer((json_int_t) w.proc));
    (void) json_object_set_new(call->answer, "running", json_boolean(wanted.running));
    (void) json_object_set_new(call->answer, "stdout_next", json_integer((json_int_t) w.from[0]));
    (void) json_object_set_new(call->answer, "stderr_next", json_integer((json_int_t) w.from[1]));
    free(got[0].data);
    free(got[1].data);
    return r;
}

/* ---- KillProcess ---- */

static const struct {
    const char *name;
    uint32_t number;
} signals[] = {
    { "KILL", SIGKILL }, { "TERM", SIGTERM }, { "INT", SIGINT },
    { "HUP", SIGHUP },   { "QUIT", SIGQUIT }, { "USR1", SIGUSR1 },
    { "USR2", SIGUSR2 }, { "STOP", SIGSTOP }, { "CONT", SIGCONT },
};

struct kill_wish {
    uint64_t proc;
    const char *name;
};

/* clang-format off */
static const struct form_field kill_rows[] = {
    { "process_id", FORM_ID, .at = offsetof(struct kill_wish, proc), 1, UINT32_MAX,
      "the process, as run_in_background named it", .needed = true },
    { "shell_id", FORM_ID, .at = offsetof(struct kill_wish, proc), 1, UINT32_MAX },
    { "signal", FORM_TEXT, .at = offsetof(struct kill_wish, name), .most = 16,
      .help = "KILL, TERM, INT, HUP, QUIT, USR1, USR2, STOP or CONT", .fallback = "KILL" },
};
/* clang-format on */
const struct form tool_kill_form = FORM_OF(kill_rows);

int tool_kill(struct tool_call *call, struct err *err)
{
    struct kill_wish w = { .name = NULL };
    uint64_t reached = 0;
    uint32_t number = 0;
    struct wanted_process wanted;
    const char *name;
    char said[96];

    if (form_read(call->ops->caller, call->arguments, &tool_kill_form, &w, err) < 0)
        return -1;
    name = strncmp(w.name, "SIG", 3) == 0 ? w.name + 3 : w.name;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (strcmp(signals[i].name, name) == 0)
            number = signals[i].number;
    if (number == 0)
        return form_bad(call->ops->caller, err, "signal",
                        "must be KILL, TERM, INT, HUP, QUIT, USR1, USR2, STOP or CONT");
    if (find_process(call, w.proc, &wanted, err) < 0)
        return -1;
    if (!wanted.running) {
        (void) caller_blame(call->ops->caller, "process_id", NULL, NULL);
        return err_set(err, ERR_STATE, "process %" PRIu64 " has ended already", w.proc);
    }
    if (ops_process_signal(call->ops, call->session->sandbox, (uint32_t) w.proc, number, true,
                           &reached, err) < 0)
        return -1;
    (void) snprintf(said, sizeof said, "sent %s to process %" PRIu64, name, w.proc);
    (void) json_object_set_new(call->answer, "output", json_string(said));
    (void) json_object_set_new(call->answer, "reached", json_integer((json_int_t) reached));
    return 0;
}
