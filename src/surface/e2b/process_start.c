/* Start and Connect: a process, and the stream of what it says.
 *
 * Nothing is read ahead: a client that does not read stops its own process, and an output of any size passes through one
 * buffer. The process outlives its stream, unless the client's deadline comes first: the agent has that clock, so that
 * the process ends at it also when we do not. */
#include "surface/e2b/envd.h"
#include "surface/e2b/process.h"

#include "base/base64.h"
#include "base/io.h"
#include "base/own.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define PIPE_PIECE 32768 /* of output in one message */
#define PTY_PIECE  16384
/* How much longer than the client's deadline the agent may take to say that the process ended at it. */
#define DEADLINE_GRACE_MS 3000

/* ---- the stream ---- */

#define DATA_HEAD "{\"event\":{\"data\":{\"%s\":\""
#define DATA_TAIL "\"}}}"

struct follow {
    struct rpc *rpc;
    struct ops_run *run;
    bool pty;
    bool bounded; /* the process has the stream's deadline */
    char room[ENVELOPE_HEAD + sizeof DATA_HEAD + 8 + BASE64_SIZE(PIPE_PIECE) + sizeof DATA_TAIL];
};

static int send_piece(struct follow *f, const char *name, const uint8_t *data, size_t len,
                      struct err *err)
{
    char *at = f->room + ENVELOPE_HEAD;

    at += sprintf(at, DATA_HEAD, name);
    base64_put(at, data, len);
    at += BASE64_SIZE(len) - 1;
    memcpy(at, DATA_TAIL, sizeof DATA_TAIL - 1);
    at += sizeof DATA_TAIL - 1;
    return rpc_send_room(f->rpc, f->room, (size_t) (at - f->room) - ENVELOPE_HEAD, err);
}

static int send_output(struct follow *f, const struct exec_event *event, struct err *err)
{
    const char *name = f->pty ? "pty" : event->type == EXEC_STDERR ? "stderr" : "stdout";
    size_t most = f->pty ? PTY_PIECE : PIPE_PIECE;

    for (size_t at = 0; at < event->len; at += most) {
        size_t left = event->len - at;

        if (send_piece(f, name, event->data + at, left < most ? left : most, err) < 0)
            return -1;
    }
    return 0;
}

/* A process that was killed along with its sandbox has no end to tell of: the stream is cut. But that memory ran out is told. */
static int check_sandbox(struct rpc *rpc, const struct exec_result *result, struct err *err)
{
    bool killed =
        (result->signal == SIGKILL && result->ended != EXIT_OOM) || result->ended == EXIT_LOST;
    struct ops_sandbox sandbox;

    if (!killed)
        return 0;
    if (ops_sandbox_get(&rpc->ops, exchange_param(rpc->x, "sandbox"), &sandbox, err) < 0)
        return -1;
    return sandbox.life == LIFE_RUNNING ? 0 : err_set(err, ERR_NO_SANDBOX, "the sandbox was ended");
}

static int send_end(struct follow *f, const struct exec_result *result, struct err *err)
{
    if (check_sandbox(f->rpc, result, err) < 0)
        return -1;
    if (f->bounded && result->ended == EXIT_TIMEOUT)
        return err_set(err, ERR_TIMEOUT, "the process was ended at its deadline");
    return rpc_send(f->rpc, json_pack("{s:{s:o}}", "event", "end", process_end_json(result)), err);
}

static int follow_to_end(struct follow *f, struct err *err)
{
    for (;;) {
        struct exec_event event;
        int r = ops_run_poll(&f->rpc->ops, f->run, &event, err);

        if (r == 1 && event.type == EXEC_END)
            return send_end(f, &event.result, err);
        if (r == 1)
            r = send_output(f, &event, err);
        else if (r == 0)
            r = rpc_wait(f->rpc, f->run->exec.stream.fd, POLLIN, err);
        if (r < 0)
            return -1;
    }
}

static int follow(struct rpc *rpc, struct ops_run *run, uint32_t pid, bool pty, bool bounded,
                  struct err *err)
{
    auto_free struct follow *f = malloc(sizeof *f);

    if (!f)
        return err_set(err, ERR_NO_MEMORY, "no memory for a stream");
    f->rpc = rpc;
    f->run = run;
    f->pty = pty;
    f->bounded = bounded;
    if (bounded && rpc->deadline_ms > 0)
        rpc->deadline_ms += DEADLINE_GRACE_MS;
    rpc->keepalive = "{\"event\":{\"keepalive\":{}}}";
    if (rpc_send(rpc, json_pack("{s:{s:{s:I}}}", "event", "start", "pid", (json_int_t) pid), err) <
        0)
        return -1;
    return follow_to_end(f, err);
}

/* ---- Start ---- */

struct start {
    struct ops_command command;
    const char **args;
    char **env;
};

static void start_done(struct start *start)
{
    for (size_t i = 0; i < start->command.env_count; i++)
        free(start->env[i]);
    free(start->args);
    free(start->env);
}

static int read_args(struct start *start, json_t *process, struct err *err)
{
    const char *cmd = NULL;
    json_t *args = NULL, *arg;
    size_t i;

    if (rpc_text(process, "cmd", &cmd, err) < 0 || rpc_array(process, "args", &args, err) < 0)
        return -1;
    if (!cmd || !cmd[0])
        return err_set(err, ERR_INVALID, "cmd: a command is needed");
    start->args = calloc(json_array_size(args) + 1, sizeof *start->args);
    if (!start->args)
        return err_set(err, ERR_NO_MEMORY, "no memory for arguments");
    start->args[0] = cmd;
    json_array_foreach(args, i, arg)
    {
        if (!json_is_string(arg))
            return err_set(err, ERR_INVALID, "args: texts are needed");
        start->args[i + 1] = json_string_value(arg);
    }
    start->command.args = start->args;
    start->command.arg_count = json_array_size(args) + 1;
    return 0;
}

static int add_env(struct start *start, const char *name, const char *value, struct err *err)
{
    if (name[0] == '\0' || strchr(name, '='))
        return err_set(err, ERR_INVALID, "envs: '%.64s' is not the name of a variable", name);
    if (asprintf(&start->env[start->command.env_count], "%s=%s", name, value) < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for the environment");
    start->command.env_count++;
    return 0;
}

static int read_env(struct start *start, struct rpc *rpc, json_t *process, struct err *err)
{
    const char *const own[][2] = { { "E2B_SANDBOX", "true" },
                                   { "E2B_SANDBOX_ID", exchange_param(rpc->x, "sandbox") },
                                   { "E2B_TEMPLATE_ID", exchange_param(rpc->x, "template") } };
    json_t *envs = NULL, *value;
    const char *name;

    if (rpc_object(process, "envs", &envs, err) < 0)
        return -1;
    start->env = calloc(json_object_size(envs) + ARRAY_LEN(own), sizeof *start->env);
    if (!start->env)
        return err_set(err, ERR_NO_MEMORY, "no memory for the environment");
    start->command.env = (const char *const *) start->env;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (!json_object_get(envs, own[i][0]) && add_env(start, own[i][0], own[i][1], err) < 0)
            return -1;
    json_object_foreach(envs, name, value)
    {
        if (!json_is_string(value))
            return err_set(err, ERR_INVALID, "envs: texts are needed");
        if (add_env(start, name, json_string_value(value), err) < 0)
            return -1;
    }
    return 0;
}

/* Paths of the agent are relative to home already. */
static int read_cwd(struct start *start, json_t *process, struct err *err)
{
    const char *cwd = NULL;

    if (rpc_text(process, "cwd", &cwd, err) < 0)
        return -1;
    if (!cwd || !cwd[0])
        return 0;
    if (cwd[0] == '~' && cwd[1] != '\0' && cwd[1] != '/')
        return err_set(err, ERR_INVALID, "cwd '%.128s' is the home of another user", cwd);
    if (cwd[0] == '~') {
        cwd += 1 + strspn(cwd + 1, "/");
        cwd = cwd[0] ? cwd : ".";
    }
    start->command.cwd = cwd;
    return 0;
}

static int read_start(struct start *start, struct rpc *rpc, json_t *in, struct err *err)
{
    json_t *process = NULL, *pty = NULL;
    bool takes_stdin = true;

    if (rpc_object(in, "process", &process, err) < 0 || rpc_object(in, "pty", &pty, err) < 0 ||
        rpc_bool(in, "stdin", &takes_stdin, err) < 0 ||
        rpc_text(in, "tag", &start->command.tag, err) < 0)
        return -1;
    if (!process)
        return err_set(err, ERR_INVALID, "process: is needed");
    if (read_args(start, process, err) < 0 || read_cwd(start, process, err) < 0 ||
        read_env(start, rpc, process, err) < 0 || rpc_user(rpc->x, &start->command.user, err) < 0)
        return -1;
    if (pty)
        start->command.flags = AGENT_PTY;
    else if (takes_stdin)
        start->command.flags = AGENT_STDIN;
    start->command.timeout_ms = rpc->timeout_ms;
    return pty ? process_size(pty, &start->command.rows, &start->command.columns, err) : 0;
}

/* The agent says that something is not there; SDKs want to know whether it is the directory. And arguments that are too
 * long are no rate limit. */
static int explain(struct start *start, struct rpc *rpc, json_t *in, struct err *err)
{
    const char *said = json_string_value(rpc_field(rpc_field(in, "process"), "cwd"));
    struct ops_file dir = { .sandbox = exchange_param(rpc->x, "sandbox"),
                            .user = start->command.user,
                            .path = start->command.cwd };
    struct file_info info;
    struct err why;

    if (err->kind != ERR_NO_PATH && err->kind != ERR_NOT_DIR && err->kind != ERR_TOO_BIG)
        return -1;
    if (err->kind == ERR_NO_PATH && start->command.cwd &&
        ops_file_stat(&rpc->ops, &dir, 0, &info, &why) < 0 && why.kind == ERR_NO_PATH)
        return err_set(err, ERR_INVALID, "cwd '%.160s' does not exist", said);
    err->kind = ERR_INVALID;
    return err_wrap(err, "error starting process '%.64s'", start->args[0]);
}

/* SDKs run commands by bash. A template that has none, such as alpine's, has another shell. */
static int begin(struct start *start, struct rpc *rpc, struct ops_run *ret, struct err *err)
{
    const char *sandbox = exchange_param(rpc->x, "sandbox");

    if (ops_run_start(&rpc->ops, sandbox, &start->command, ret, err) == 0)
        return 0;
    if (err->kind != ERR_NO_PATH || strcmp(start->args[0], "/bin/bash") != 0 ||
        !strstr(err->msg, "exec "))
        return -1;
    start->args[0] = "/bin/sh";
    return ops_run_start(&rpc->ops, sandbox, &start->command, ret, err);
}

static int start_method(struct rpc *rpc, json_t *in, struct err *err)
{
    struct start start = { .args = NULL };
    struct ops_run run = OPS_RUN_NONE;
    int r = read_start(&start, rpc, in, err);

    if (r == 0) {
        r = begin(&start, rpc, &run, err);
        if (r < 0)
            r = explain(&start, rpc, in, err);
    }
    if (r == 0) {
        r = follow(rpc, &run, run.exec.pid, start.command.flags & AGENT_PTY, true, err);
        ops_run_close(&run);
    }
    start_done(&start);
    return r;
}

int process_start(struct exchange *x, struct err *err)
{
    return rpc_serve_stream(x, start_method, err);
}

/* ---- Connect ---- */

/* What the process said before is part of it, as far as the agent still has it. */
static int connect_method(struct rpc *rpc, json_t *in, struct err *err)
{
    struct ops_process process;
    struct ops_run run;
    int r;

    if (process_select(rpc->x, in, &process, err) < 0 ||
        ops_run_attach(&rpc->ops, exchange_param(rpc->x, "sandbox"), process.proc, 0, 0, 0, &run,
                       err) < 0)
        return -1;
    r = follow(rpc, &run, process.pid, process.pty, false, err);
    ops_run_close(&run);
    return r;
}

int process_connect(struct exchange *x, struct err *err)
{
    return rpc_serve_stream(x, connect_method, err);
}
