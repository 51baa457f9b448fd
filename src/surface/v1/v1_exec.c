#include "surface/v1/v1.h"

#include "base/own.h"
#include "server/guard/quota.h"

#include <string.h>

#define AT(field)    offsetof(struct exec_body, field)
#define OUTPUT_MOST  (16 * 1024 * 1024)
#define TIMEOUT_MOST 86400000ull
#define RING_LEAST   4096
#define RING_MOST    (16 * 1024 * 1024)

/* One shape for all that starts a process; each route refuses what means nothing to it. */
struct exec_body {
    const char *command, *cwd, *user, *tag, *stream, *on_disconnect;
    json_t *args, *env, *input;
    uint64_t timeout_ms, cpu_timeout_ms, output_limit, output_kept, rows, columns;
    bool pty, keep_input;
};

static const char *const kill_or_keep[] = { "kill", "keep", NULL };

/* clang-format off */
/* What every command has. */
#define COMMAND_FIELDS \
    { "command", FORM_TEXT, .at = AT(command), .help = "run by the user's login shell" }, \
    { "args", FORM_ARRAY, .at = AT(args), .least = 1, .help = "a program and its arguments" }, \
    { "env", FORM_OBJECT, .at = AT(env), .help = "variables of this command" }, \
    { "cwd", FORM_TEXT, .at = AT(cwd), .help = "its directory; default: the template's, or the user's home" }, \
    { "user", FORM_TEXT, .at = AT(user), .help = "whose rights it has; default: the template's user" }, \
    { "tag", FORM_TEXT, .at = AT(tag), .help = "a name of the process in lists" }, \
    { "timeout", FORM_SECONDS, .at = AT(timeout_ms), 1, TIMEOUT_MOST, "seconds until it is ended" }, \
    { "cpu_timeout", FORM_SECONDS, .at = AT(cpu_timeout_ms), 1, TIMEOUT_MOST, \
      "seconds of processor time, of all its processes together" }, \

static const struct form_field exec_fields[] = {
    COMMAND_FIELDS
    { "stdin", FORM_STRING, .at = AT(input), .help = "all of its input; then it ends" },
    { "output_limit", FORM_COUNT, .at = AT(output_limit), 0, OUTPUT_MOST, "bytes of each stream", .fallback = "1048576" },
    { "stream", FORM_TEXT, .at = AT(stream), .help = "answer with events, in this form", .choices = v1_stream_names },
    { "on_disconnect", FORM_TEXT, .at = AT(on_disconnect), .help = "what happens to it when the reader of a stream goes away",
      .choices = kill_or_keep, .schema = "{\"default\": \"kill\"}" },
};
const struct form v1_exec_form = FORM_OF(exec_fields, .help = "command or args");

static const struct form_field process_fields[] = {
    COMMAND_FIELDS
    { "stdin", FORM_BOOL, .at = AT(keep_input), .help = "whether its input stays open", .fallback = "false" },
    { "output_kept", FORM_COUNT, .at = AT(output_kept), RING_LEAST, RING_MOST, "bytes of each stream that can be read again",
      .schema = "{\"default\": 262144}" },
    { "pty", FORM_BOOL, .at = AT(pty), .help = "it has a terminal", .fallback = "false" },
    { "rows", FORM_COUNT, .at = AT(rows), 1, 10000, "height of the terminal" },
    { "columns", FORM_COUNT, .at = AT(columns), 1, 10000, "width of the terminal" },
};
const struct form v1_process_form = FORM_OF(process_fields, .help = "command or args");
/* clang-format on */

/* A request that starts something, from the body to the end of the handler. */
struct exec_order {
    json_t *json; /* owns the texts */
    struct exec_body body;
    const char **args, **env;
    struct ops_command command;
};

static void order_done(struct exec_order *order)
{
    json_decref(order->json);
    free(order->args);
    free(order->env);
}

static int translate(struct exchange *x, struct exec_order *order, struct err *err)
{
    struct exec_body *body = &order->body;
    struct ops_command *command = &order->command;

    if (!body->command == !body->args)
        return form_bad(exchange_caller(x), err, body->command ? "args" : "command",
                        "either a command or args is needed");
    *command = (struct ops_command){ .command = body->command,
                                     .cwd = body->cwd,
                                     .user = body->user,
                                     .tag = body->tag,
                                     .timeout_ms = body->timeout_ms,
                                     .cpu_timeout_ms = body->cpu_timeout_ms,
                                     .ring_bytes = body->output_kept,
                                     .rows = (uint32_t) body->rows,
                                     .columns = (uint32_t) body->columns };
    if (form_texts(exchange_caller(x), "args", body->args, &order->args, &command->arg_count, err) <
            0 ||
        form_assignments(exchange_caller(x), "env", body->env, &order->env, &command->env_count,
                         err) < 0)
        return -1;
    command->args = body->args ? order->args : NULL;
    command->env = order->env;
    return 0;
}

static int order_read(struct exchange *x, struct exec_order *order, const struct form *form,
                      struct err *err)
{
    *order = (struct exec_order){ .json = NULL };
    if (exchange_json(x, &order->json, err) < 0)
        return -1;
    if (form_read(exchange_caller(x), order->json, form, &order->body, err) == 0 &&
        translate(x, order, err) == 0)
        return 0;
    order_done(order);
    return -1;
}

int v1_order_read(struct exchange *x, json_t *take_json, struct v1_order *ret, struct err *err)
{
    struct exec_order order = { .json = take_json };
    int r = form_read(exchange_caller(x), take_json, &v1_process_form, &order.body, err);

    if (r == 0)
        r = translate(x, &order, err);
    order.command.flags =
        (order.body.pty ? AGENT_PTY : 0) | (order.body.keep_input ? AGENT_STDIN : 0);
    *ret = (struct v1_order){ order.json, order.args, order.env, order.command };
    if (r < 0)
        v1_order_done(ret);
    return r;
}

void v1_order_done(struct v1_order *order)
{
    json_decref(order->json);
    free(order->args);
    free(order->env);
    *order = (struct v1_order){ .json = NULL };
}

/* ---- run and wait, run and stream ---- */

static int reply_output(struct exchange *x, const struct ops_output *out, struct err *err)
{
    json_t *json = v1_result_json(&out->result);

    (void) json_object_set_new(json, "proc", json_integer(out->proc));
    (void) json_object_set_new(json, "stdout_truncated", json_boolean(out->truncated[0]));
    (void) json_object_set_new(json, "stderr_truncated", json_boolean(out->truncated[1]));
    if (v1_put_bytes(json, "stdout", out->data[0], out->len[0]) < 0 ||
        v1_put_bytes(json, "stderr", out->data[1], out->len[1]) < 0) {
        json_decref(json);
        return err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    }
    return exchange_reply_json(x, 200, json, err);
}

static int run_and_wait(struct exchange *x, struct exec_order *order, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_output out;
    int r;

    if (exchange_take_room(x, 2 * order->body.output_limit, err) < 0 ||
        ops_run_collect(&ops, exchange_param(x, "id"), &order->command,
                        (size_t) order->body.output_limit, &out, err) < 0)
        return -1;
    r = reply_output(x, &out, err);
    ops_output_done(&out);
    return r;
}

int v1_stream_process(struct exchange *x, struct ops_run *run, bool sse, bool started,
                      struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct v1_stream stream;

    if (v1_stream_begin(&stream, x, sse, err) < 0)
        return -1;
    if (started &&
        v1_stream_event(&stream,
                        json_pack("{s:s, s:I, s:I}", "type", "start", "proc",
                                  (json_int_t) run->exec.proc, "pid", (json_int_t) run->exec.pid),
                        err) < 0)
        return -1;
    return v1_stream_run(&stream, &ops, run, err);
}

static int run_and_stream(struct exchange *x, struct exec_order *order, bool sse, struct err *err)
{
    const char *then = order->body.on_disconnect;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_run run;
    int r;

    if (!then || strcmp(then, "kill") == 0)
        order->command.flags |= AGENT_KILL_ON_CLOSE;
    if (quota_stream_begin(exchange_caller(x), err) < 0)
        return -1;
    r = ops_run_start(&ops, exchange_param(x, "id"), &order->command, &run, err);
    if (r == 0) {
        r = v1_stream_process(x, &run, sse, true, err);
        ops_run_close(&run);
    }
    quota_stream_end(exchange_caller(x));
    return r;
}

int v1_exec(struct exchange *x, struct err *err)
{
    struct exec_order order;
    enum v1_wish wish;
    int r;

    if (order_read(x, &order, &v1_exec_form, err) < 0)
        return -1;
    if (order.body.input) {
        order.command.input = json_string_value(order.body.input);
        order.command.input_len = json_string_length(order.body.input);
    }
    wish = v1_read_wish(x, order.body.stream);
    if (wish == V1_PLAIN && order.body.on_disconnect)
        r = form_bad(exchange_caller(x), err, "on_disconnect", "only of a stream");
    else
        r = wish == V1_PLAIN ? run_and_wait(x, &order, err)
                             : run_and_stream(x, &order, wish == V1_SSE, err);
    order_done(&order);
    return r;
}

/* ---- processes ---- */

int v1_process_start(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct exec_order order;
    struct ops_run run;
    int r;

    if (order_read(x, &order, &v1_process_form, err) < 0)
        return -1;
    order.command.flags =
        AGENT_DETACH | (order.body.pty ? AGENT_PTY : 0) | (order.body.keep_input ? AGENT_STDIN : 0);
    if (!order.body.pty && (order.body.rows || order.body.columns))
        r = form_bad(exchange_caller(x), err, order.body.rows ? "rows" : "columns",
                     "only of a pty");
    else
        r = ops_run_start(&ops, exchange_param(x, "id"), &order.command, &run, err);
    order_done(&order);
    if (r < 0)
        return -1;
    ops_run_close(&run);
    return exchange_reply_json(x, 201,
                               json_pack("{s:I, s:I}", "proc", (json_int_t) run.exec.proc, "pid",
                                         (json_int_t) run.exec.pid),
                               err);
}
