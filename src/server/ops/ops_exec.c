/* Following a process: three things can happen next - the agent has an event, the agent has room for more stdin, the
 * client goes away - and one poll waits for all of them. Nothing is read ahead, so a client that does not read stops
 * the process and no other reader. */
#include "server/guard/audit.h"
#include "server/guard/policy_gate.h"
#include "server/guard/quota.h"
#include "server/ops/ops_own.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#define STDIN_PIECE 32768

/* ---- starting ---- */

static size_t name_len(const char *assignment)
{
    return strcspn(assignment, "=");
}

static bool is_set(const struct ops_command *command, const char *assignment)
{
    size_t len = name_len(assignment);

    for (size_t i = 0; i < command->env_count; i++)
        if (name_len(command->env[i]) == len && memcmp(command->env[i], assignment, len) == 0)
            return true;
    return false;
}

/* The sandbox's environment, and over it the command's own. */
static int merge_env(const struct ops_command *command, json_t *box_env, struct texts *ret,
                     char **ret_buffer, struct err *err)
{
    size_t most = command->env_count + json_array_size(box_env), n = 0;
    auto_free const char **items = calloc(most + 1, sizeof *items);

    if (!items)
        return err_set(err, ERR_NO_MEMORY, "no memory for the environment");
    for (size_t i = 0; i < json_array_size(box_env); i++) {
        const char *text = json_string_value(json_array_get(box_env, i));

        if (text && !is_set(command, text))
            items[n++] = text;
    }
    for (size_t i = 0; i < command->env_count; i++)
        items[n++] = command->env[i];
    return n > 0 ? exec_texts(items, n, ret, ret_buffer, err) : 0;
}

static int start(struct link *link, const struct ops_command *command, json_t *box_env,
                 struct ops_run *run, struct err *err)
{
    auto_free char *args = NULL, *env = NULL;
    int fd;
    struct agent_request request = {
        .flags = command->flags | (command->input ? AGENT_STDIN : 0),
        .user = command->user,
        .command = command->command,
        .cwd = command->cwd,
        .tag = command->tag,
        .rows = command->rows,
        .columns = command->columns,
        .timeout_ms = command->timeout_ms,
        .cpu_timeout_ms = command->cpu_timeout_ms,
        .ring_bytes = command->ring_bytes,
    };

    if (command->arg_count > 0 &&
        exec_texts(command->args, command->arg_count, &request.args, &args, err) < 0)
        return -1;
    if (merge_env(command, box_env, &request.env, &env, err) < 0)
        return -1;
    fd = ops_verdict_begin(link, run->sandbox, command->cpu_timeout_ms, &run->verdict, err);
    if (fd < 0)
        return -1;
    run->verdict.measure = command->measure;
    return exec_start_on(&run->exec, fd, link->patience_ms, &request, err);
}

/* What a shell is given to run; NULL: no shell is known of. */
static const char *shell_text(const struct ops_command *command)
{
    return command->command ? command->command : command->shown;
}

/* One text for policy and audit: the command, or args quoted as a shell would need them. */
static int code_of(const struct ops_command *command, char **ret, struct err *err)
{
    const char *text = shell_text(command);
    size_t len = 0;
    FILE *out;

    if (text)
        *ret = strdup(text);
    if (text)
        return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for the command");
    out = open_memstream(ret, &len);
    if (!out)
        return err_set(err, ERR_NO_MEMORY, "no memory for the command");
    for (size_t i = 0; i < command->arg_count; i++) {
        (void) fputs(i > 0 ? " '" : "'", out);
        for (const char *c = command->args[i]; *c; c++)
            if (*c == '\'')
                (void) fputs("'\\''", out);
            else
                (void) fputc(*c, out);
        (void) fputc('\'', out);
    }
    if (fclose(out) == 0)
        return 0;
    free(*ret);
    *ret = NULL;
    return err_set(err, ERR_NO_MEMORY, "no memory for the command");
}

static const char *action_of(const struct ops_command *command)
{
    return command->flags & AGENT_DETACH ? "exec.start" : "exec.run";
}

static void note_start(struct ops *ops, const struct ops_run *run,
                       const struct ops_command *command, const struct err *refusal)
{
    struct audit_facts facts = AUDIT_FACTS;

    facts.code = run->code;
    facts.code_len = strlen(run->code);
    facts.refusal = refusal;
    audit_note(ops->caller, action_of(command), run->sandbox, &facts);
}

static int check_policy(struct ops *ops, const struct ops_command *command, const char *sandbox,
                        struct err *err)
{
    const char *text = shell_text(command);
    struct policy_verdict verdict;
    int r;

    if (quota_policy(ops->caller, err) < 0)
        return -1;
    r = text ? policy_gate_command(ops->app, ops->caller, sandbox, text, &verdict, err)
             : policy_gate_args(ops->app, ops->caller, sandbox, command->args, command->arg_count,
                                &verdict, err);
    quota_policy_used(ops->caller, verdict.cpu_us);
    return r < 0 ? caller_blame(ops->caller, text ? "command" : "args", verdict.rule, "policy") : 0;
}

/* What a template that was built says of commands that do not say it themselves. */
static struct ops_command with_defaults(const struct ops_command *command, const json_t *box_env)
{
    const json_t *first = json_array_get(box_env, 0);
    struct ops_command full = *command;

    if (!full.cwd && !full.user) /* another user's commands begin in that user's home */
        full.cwd = json_string_value(json_object_get(first, "workdir"));
    if (!full.user)
        full.user = json_string_value(json_object_get(first, "user"));
    return full;
}

static int start_checked(struct ops *ops, const struct ops_command *command, struct ops_run *run,
                         struct err *err)
{
    struct ops_command full;
    json_t *box_env = NULL;
    struct link link;
    int r;

    if (ops_box_open(ops, run->sandbox, &link, &box_env, err) < 0)
        return -1;
    r = check_policy(ops, command, run->sandbox, err);
    full = with_defaults(command, box_env);
    if (r == 0)
        r = start(&link, &full, box_env, run, err);
    ops_box_close(ops, &link, r, err);
    json_decref(box_env);
    return r;
}

int ops_run_start(struct ops *ops, const char *sandbox, const struct ops_command *command,
                  struct ops_run *ret, struct err *err)
{
    *ret = OPS_RUN_NONE;
    ret->caller = ops->caller;
    ret->begun_ms = io_now_ms();
    (void) snprintf(ret->sandbox, sizeof ret->sandbox, "%s", sandbox);
    if (code_of(command, &ret->code, err) < 0)
        return -1;
    if (start_checked(ops, command, ret, err) < 0) {
        note_start(ops, ret, command, err);
        free(take_ptr(&ret->code));
        return -1;
    }
    if (command->flags & AGENT_DETACH) {
        note_start(ops, ret, command, NULL);
        free(take_ptr(&ret->code));
    }
    ret->input = command->input;
    ret->input_len = command->input_len;
    ret->feeding = command->input != NULL;
    return 0;
}

int ops_run_attach(struct ops *ops, const char *sandbox, uint32_t proc, uint64_t from_stdout,
                   uint64_t from_stderr, uint32_t flags, struct ops_run *ret, struct err *err)
{
    struct agent_request request = {
        .proc = proc, .from_stdout = from_stdout, .from_stderr = from_stderr, .flags = flags
    };
    struct link link;
    int r, fd;

    *ret = OPS_RUN_NONE;
    (void) snprintf(ret->sandbox, sizeof ret->sandbox, "%s", sandbox);
    if (ops_box_open(ops, sandbox, &link, NULL, err) < 0)
        return -1;
    ret->begun_ms = io_now_ms();
    fd = ops_verdict_begin(&link, sandbox, 0, &ret->verdict, err);
    r = fd < 0 ? -1 : exec_attach_on(&ret->exec, fd, link.patience_ms, &request, err);
    ops_box_close(ops, &link, r, err);
    return r;
}

/* result NULL: the follower went away. */
static void note_end(struct ops_run *run, const struct exec_result *result)
{
    struct err gone = { .kind = ERR_UNAVAILABLE, .msg = "not followed to its end" };
    struct audit_facts facts = AUDIT_FACTS;

    if (!run->code)
        return;
    facts.code = run->code;
    facts.code_len = strlen(run->code);
    facts.duration_ms = (int64_t) (io_now_ms() - run->begun_ms);
    facts.refusal = result ? NULL : &gone;
    if (result) {
        facts.duration_ms = (int64_t) result->wall_ms;
        facts.exit_code = ops_exit_code(result);
        facts.cpu_ms = result->cpu_ms;
        facts.memory_peak_bytes = result->peak_bytes;
        facts.stdout_bytes = result->stdout_bytes;
        facts.stderr_bytes = result->stderr_bytes;
        facts.refused_syscalls =
            result->refused_calls < INT64_MAX ? result->refused_calls : INT64_MAX;
    }
    audit_note(run->caller, "exec.run", run->sandbox, &facts);
    free(take_ptr(&run->code));
}

void ops_run_close(struct ops_run *run)
{
    note_end(run, NULL);
    exec_close(&run->exec);
}

/* ---- following ---- */

static void feed(struct ops_run *run)
{
    struct err ignored;

    while (run->feeding) {
        size_t left = run->input_len - run->input_done;
        uint32_t piece = left < STDIN_PIECE ? (uint32_t) left : STDIN_PIECE;

        if (left == 0) {
            run->feeding = !exec_stdin_end(&run->exec);
            break;
        }
        if (!exec_stdin(&run->exec, run->input + run->input_done, piece))
            break;
        run->input_done += piece;
    }
    /* The agent hung up, or the command closed its stdin: what it wrote is still to be read. */
    if (exec_flush(&run->exec, &ignored) < 0) {
        run->feeding = false;
        run->exec.stream.out_have = run->exec.stream.out_sent = 0;
    }
}

static int wait_for_event(struct ops *ops, struct ops_run *run, int wait_ms, struct err *err)
{
    bool more = stream_pending(&run->exec.stream) || run->feeding;
    struct pollfd fds[] = {
        { .fd = run->exec.stream.fd, .events = (short) (POLLIN | (more ? POLLOUT : 0)) },
        { .fd = ops->caller->fd, .events = POLLRDHUP },
    };
    int n = poll(fds, ARRAY_LEN(fds), wait_ms);

    if (n < 0)
        return errno == EINTR ? 1 : err_sys(err, errno, "wait for the process");
    if (n > 0 && (fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR)))
        return err_set(err, ERR_UNAVAILABLE, "the client went away");
    return n;
}

int ops_run_poll(struct ops *ops, struct ops_run *run, struct exec_event *ret, struct err *err)
{
    int r = exec_poll(&run->exec, ret, err);

    if (r < 0 && ops_verdict_lost(ops, run, err, &ret->result)) {
        ret->type = EXEC_END;
        r = 1;
    }
    if (r == 1 && ret->type == EXEC_END) {
        ops_verdict_end(ops, run, &ret->result);
        metrics_execution(&ops->app->metrics, &ret->result);
        note_end(run, &ret->result);
    } else if (r >= 0) {
        ops_verdict_look(ops, run); /* a command that never stops talking is looked at, too */
    }
    return r;
}

void ops_run_explain(const struct ops_run *run, struct err *err)
{
    if (err->kind == ERR_UNAVAILABLE && run->lost.kind)
        *err = run->lost;
}

int ops_run_next(struct ops *ops, struct ops_run *run, struct exec_event *ret, struct err *err)
{
    uint64_t tick = io_now_ms() + OPS_TICK_MS;

    for (;;) {
        int r = ops_run_poll(ops, run, ret, err);

        if (r != 0)
            return r;
        feed(run);
        r = wait_for_event(ops, run, ops_run_wait(run, OPS_TICK_MS), err);
        if (r < 0)
            return r;
        if (r == 0 && io_now_ms() >= tick)
            return 0;
    }
}

/* ---- the whole answer ---- */

static int keep_output(struct ops_output *out, size_t *room, const struct exec_event *event,
                       size_t most, struct err *err)
{
    int s = event->type == EXEC_STDERR;
    size_t left = most - out->len[s], take = event->len < left ? event->len : left;

    if (take < event->len || event->missed > 0)
        out->truncated[s] = true;
    if (out->len[s] + take + 1 > room[s]) {
        size_t size =
            2 * room[s] > out->len[s] + take + 1 ? 2 * room[s] : out->len[s] + take + 4096;
        char *more = realloc(out->data[s], size);

        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for the output");
        out->data[s] = more;
        room[s] = size;
    }
    memcpy(out->data[s] + out->len[s], event->data, take);
    out->len[s] += take;
    out->data[s][out->len[s]] = '\0';
    return 0;
}

static int collect(struct ops *ops, struct ops_run *run, const struct ops_command *command,
                   size_t most, struct ops_output *out, struct err *err)
{
    struct exec_event event = { .type = EXEC_STDOUT };
    size_t room[2] = { 0 };

    while (event.type != EXEC_END) {
        int r = ops_run_next(ops, run, &event, err);

        if (r < 0)
            return -1;
        if (r == 1 && event.type != EXEC_END && keep_output(out, room, &event, most, err) < 0)
            return -1;
        if (command->watch && event.type != EXEC_END &&
            command->watch(command->watch_context, r == 1 ? &event : NULL, err) < 0)
            return -1;
        if (r == 0)
            event.type = EXEC_STDOUT;
    }
    out->result = event.result;
    return 0;
}

int ops_run_collect(struct ops *ops, const char *sandbox, const struct ops_command *command,
                    size_t output_max, struct ops_output *ret, struct err *err)
{
    struct ops_command own = *command;
    struct ops_output out = { .data = { NULL, NULL } };
    struct ops_run run;
    int r;

    own.flags |= AGENT_KILL_ON_CLOSE;
    if (quota_command_begin(ops->caller, err) < 0)
        return -1;
    r = ops_run_start(ops, sandbox, &own, &run, err);
    if (r == 0) {
        out.proc = run.exec.proc;
        r = collect(ops, &run, command, output_max, &out, err);
        ops_run_close(&run);
    }
    quota_command_end(ops->caller);
    if (r < 0) {
        ops_output_done(&out);
        return -1;
    }
    *ret = out;
    return 0;
}

void ops_output_done(struct ops_output *output)
{
    free(output->data[0]);
    free(output->data[1]);
    output->data[0] = output->data[1] = NULL;
}
