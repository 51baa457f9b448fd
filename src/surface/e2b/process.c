/* process.Process, but for its two streams of events: list, input, size and signals of processes that run. */
#include "surface/e2b/process.h"

#include "base/own.h"
#include "server/form/form.h"
#include "surface/e2b/envd.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define PTY_ROWS    24
#define PTY_COLUMNS 80
#define SIDE_MOST   9999

/* ---- shared ---- */

int process_select(struct exchange *x, json_t *message, struct ops_process *ret, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *selector = NULL;
    const char *tag = NULL;
    int64_t pid = 0;

    if (rpc_object(message, "process", &selector, err) < 0 ||
        rpc_int(selector, "pid", 0, UINT32_MAX, &pid, err) < 0 ||
        rpc_text(selector, "tag", &tag, err) < 0)
        return -1;
    if (pid > 0)
        tag = NULL;
    if (pid == 0 && (!tag || !tag[0]))
        return rpc_field(selector, "pid")
                   ? err_set(err, ERR_NO_PROCESS, "process with pid 0 not found")
                   : err_set(err, ERR_INVALID, "process: a pid or a tag is needed");
    return ops_process_find(&ops, exchange_param(x, "sandbox"), (uint32_t) pid, tag, ret, err);
}

/* One that has ended is no longer there for other requests. */
static int select_running(struct exchange *x, json_t *message, struct ops_process *ret,
                          struct err *err)
{
    if (process_select(x, message, ret, err) < 0)
        return -1;
    return ret->running ? 0
                        : err_set(err, ERR_NO_PROCESS, "process with pid %u not found", ret->pid);
}

int process_size(json_t *pty, uint32_t *ret_rows, uint32_t *ret_columns, struct err *err)
{
    int64_t rows = PTY_ROWS, columns = PTY_COLUMNS;
    json_t *size = NULL;

    if (rpc_object(pty, "size", &size, err) < 0 ||
        rpc_int(size, "rows", 1, SIDE_MOST, &rows, err) < 0 ||
        rpc_int(size, "cols", 1, SIDE_MOST, &columns, err) < 0)
        return -1;
    *ret_rows = (uint32_t) rows;
    *ret_columns = (uint32_t) columns;
    return 0;
}

json_t *process_end_json(const struct exec_result *result)
{
    bool exited = result->signal == 0 && result->ended != EXIT_LOST && result->ended != EXIT_NONE &&
                  result->ended != EXIT_TIMEOUT;
    const char *cause = result->ended == EXIT_OOM ? " (the sandbox ran out of memory)" : "";
    char status[64], error[128];
    json_t *json;

    if (exited)
        (void) snprintf(status, sizeof status, "exit status %u", result->exit_code);
    else if (result->signal == 0 && result->ended != EXIT_TIMEOUT)
        (void) snprintf(status, sizeof status, "lost");
    else {
        const char *name = sigdescr_np(result->signal ? (int) result->signal : SIGKILL);

        (void) snprintf(status, sizeof status, "signal: %s", name ? name : "unknown");
        if (status[8] >= 'A' && status[8] <= 'Z') /* lower case, as SDKs know it */
            status[8] = (char) (status[8] + ('a' - 'A'));
    }
    json = json_pack("{s:i, s:b, s:s}", "exitCode", exited ? (int) result->exit_code : -1, "exited",
                     exited, "status", status);
    (void) snprintf(error, sizeof error, "%s%s", status, cause);
    if (!exited || result->exit_code != 0)
        (void) json_object_set_new(json, "error", json_string(error));
    return json;
}

/* ---- List ---- */

static json_t *text(const char *t)
{
    return form_text(t, strlen(t));
}

static int add_process(void *arg, const struct agent_reply *item, struct err *err)
{
    const char *at = item->args.data;
    json_t *args, *config, *json;

    if (!(item->flags & AGENT_RUNNING))
        return 0;
    args = json_array();
    config = json_pack("{s:o, s:{}}", "cmd", text(item->args.count > 0 ? at : ""), "envs");
    for (uint32_t i = 0; i < item->args.count; i++, at += strlen(at) + 1)
        if (i > 0)
            (void) json_array_append_new(args, text(at));
    (void) json_object_set_new(config, "args", args);
    if (item->cwd)
        (void) json_object_set_new(config, "cwd", text(item->cwd));
    json = json_pack("{s:o, s:I}", "config", config, "pid", (json_int_t) item->pid);
    if (item->tag)
        (void) json_object_set_new(json, "tag", text(item->tag));
    if (json_array_append_new(arg, json) < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for a list");
    return 0;
}

static int list(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    json_t *processes = json_array();
    struct ops ops = ops_of(exchange_caller(x));

    (void) in;
    if (ops_process_list(&ops, exchange_param(x, "sandbox"), add_process, processes, err) < 0) {
        json_decref(processes);
        return -1;
    }
    *ret = json_pack("{s:o}", "processes", processes);
    return 0;
}

int process_list(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, list, err);
}

/* ---- input ---- */

/* ERR_PROTOCOL: what SDKs expect here is "internal". */
static int check_input(const struct ops_process *process, bool to_pty, struct err *err)
{
    if (to_pty && !process->pty)
        return err_set(err, ERR_PROTOCOL, "the process has no terminal: its input is stdin");
    if (!to_pty && process->pty)
        return err_set(err, ERR_PROTOCOL, "the process has a terminal: its input is pty");
    return process->takes_stdin
               ? 0
               : err_set(err, ERR_PROTOCOL, "stdin of the process is not enabled, or closed");
}

static int give_input(struct exchange *x, const struct ops_process *process, json_t *message,
                      struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    auto_free uint8_t *bytes = NULL;
    json_t *input = NULL;
    size_t len = 0;
    bool to_pty;

    if (rpc_object(message, "input", &input, err) < 0)
        return -1;
    to_pty = rpc_field(input, "pty");
    if (rpc_bytes(input, to_pty ? "pty" : "stdin", &bytes, &len, err) < 0)
        return -1;
    if (!bytes)
        return err_set(err, ERR_INVALID, "input: stdin or pty is needed");
    if (check_input(process, to_pty, err) < 0)
        return -1;
    return len > 0 ? ops_process_stdin(&ops, exchange_param(x, "sandbox"), process->proc, bytes,
                                       len, false, err)
                   : 0;
}

static int send_input(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    struct ops_process process;

    (void) ret;
    if (select_running(x, in, &process, err) < 0)
        return -1;
    return give_input(x, &process, in, err);
}

int process_send_input(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, send_input, err);
}

/* One message of StreamInput: start says which process, data follow; keepalives mean nothing. */
static int take_message(struct rpc *rpc, json_t *message, struct ops_process *process,
                        struct err *err)
{
    json_t *start = NULL, *data = NULL;

    if (rpc_object(message, "start", &start, err) < 0 ||
        rpc_object(message, "data", &data, err) < 0)
        return -1;
    if (start && process->proc != 0)
        return err_set(err, ERR_INVALID, "start: only the first message has one");
    if (start)
        return select_running(rpc->x, start, process, err);
    if (process->proc == 0)
        return err_set(err, ERR_INVALID, "start: is what the first message needs");
    return data ? give_input(rpc->x, process, data, err) : 0;
}

static int stream_input(struct rpc *rpc, json_t *in, struct err *err)
{
    struct ops_process process = { .proc = 0 };
    json_t *message;
    int r;

    (void) in;
    while ((r = rpc_next(rpc, &message, err)) == 1) {
        r = take_message(rpc, message, &process, err);
        json_decref(message);
        if (r < 0)
            return -1;
    }
    return r < 0 ? -1 : rpc_send(rpc, json_object(), err);
}

int process_stream_input(struct exchange *x, struct err *err)
{
    return rpc_serve_input(x, stream_input, err);
}

static int close_stdin(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_process process;

    (void) ret;
    if (select_running(x, in, &process, err) < 0)
        return -1;
    if (process.pty)
        return err_set(err, ERR_PROTOCOL, "a terminal's input does not end: send Ctrl+D");
    if (!process.takes_stdin)
        return 0;
    return ops_process_stdin(&ops, exchange_param(x, "sandbox"), process.proc, "", 0, true, err);
}

int process_close_stdin(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, close_stdin, err);
}

/* ---- size and signals ---- */

static int update(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_process process;
    uint32_t rows, columns;
    json_t *pty = NULL;

    (void) ret;
    if (rpc_object(in, "pty", &pty, err) < 0 || process_size(pty, &rows, &columns, err) < 0 ||
        select_running(x, in, &process, err) < 0)
        return -1;
    if (!pty)
        return 0;
    if (!process.pty)
        return err_set(err, ERR_STATE, "the process has no terminal");
    return ops_process_resize(&ops, exchange_param(x, "sandbox"), process.proc, (uint16_t) rows,
                              (uint16_t) columns, err);
}

int process_update(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, update, err);
}

static int send_signal(struct exchange *x, json_t *in, json_t **ret, struct err *err)
{
    static const struct rpc_name signals[] = { { "SIGNAL_SIGTERM", SIGTERM },
                                               { "SIGNAL_SIGKILL", SIGKILL } };
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_process process;
    uint64_t reached;
    int number = 0;

    (void) ret;
    if (rpc_enum(in, "signal", signals, ARRAY_LEN(signals), &number, err) < 0)
        return -1;
    if (number == 0)
        return err_set(err, ERR_INVALID, "signal: is needed");
    if (select_running(x, in, &process, err) < 0)
        return -1;
    if (ops_process_signal(&ops, exchange_param(x, "sandbox"), process.proc, (uint32_t) number,
                           false, &reached, err) == 0)
        return 0;
    if (err->kind == ERR_STATE) /* it ended just now */
        err->kind = ERR_NO_PROCESS;
    return -1;
}

int process_send_signal(struct exchange *x, struct err *err)
{
    return rpc_serve_unary(x, send_signal, err);
}
