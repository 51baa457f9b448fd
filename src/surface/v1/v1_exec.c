#include "surface/v1/v1.h"

#include "base/own.h"
#include "server/guard/quota.h"

#include <string.h>

#define AT(field)     offsetof(struct exec_body, field)
#define OUTPUT_PRESET (1024 * 1024)
#define OUTPUT_MOST   (16 * 1024 * 1024)
#define TIMEOUT_MOST  86400000ull
#define RING_LEAST    4096
#define RING_MOST     (16 * 1024 * 1024)

/* One shape for all that starts a process; each route refuses what means nothing to it. */
struct exec_body {
    const char *command, *cwd, *user, *tag, *stream, *on_disconnect;
    json_t *args, *env, *input;
    uint64_t timeout_ms, cpu_timeout_ms, output_limit, output_kept, rows, columns;
    bool pty;
};

static const struct form_field exec_fields[] = {
    { "command", FORM_TEXT, AT(command), 0, 0 },
    { "args", FORM_ARRAY, AT(args), 0, 0 },
    { "env", FORM_OBJECT, AT(env), 0, 0 },
    { "cwd", FORM_TEXT, AT(cwd), 0, 0 },
    { "user", FORM_TEXT, AT(user), 0, 0 },
    { "tag", FORM_TEXT, AT(tag), 0, 0 },
    { "timeout", FORM_SECONDS, AT(timeout_ms), 1, TIMEOUT_MOST },
    { "cpu_timeout", FORM_SECONDS, AT(cpu_timeout_ms), 1, TIMEOUT_MOST },
    { "stdin", FORM_ANY, AT(input), 0, 0 },
    { "output_limit", FORM_COUNT, AT(output_limit), 0, OUTPUT_MOST },
    { "stream", FORM_TEXT, AT(stream), 0, 0 },
    { "on_disconnect", FORM_TEXT, AT(on_disconnect), 0, 0 },
};

static const struct form_field process_fields[] = {
    { "command", FORM_TEXT, AT(command), 0, 0 },
    { "args", FORM_ARRAY, AT(args), 0, 0 },
    { "env", FORM_OBJECT, AT(env), 0, 0 },
    { "cwd", FORM_TEXT, AT(cwd), 0, 0 },
    { "user", FORM_TEXT, AT(user), 0, 0 },
    { "tag", FORM_TEXT, AT(tag), 0, 0 },
    { "timeout", FORM_SECONDS, AT(timeout_ms), 1, TIMEOUT_MOST },
    { "cpu_timeout", FORM_SECONDS, AT(cpu_timeout_ms), 1, TIMEOUT_MOST },
    { "stdin", FORM_ANY, AT(input), 0, 0 },
    { "output_kept", FORM_COUNT, AT(output_kept), RING_LEAST, RING_MOST },
    { "pty", FORM_BOOL, AT(pty), 0, 0 },
    { "rows", FORM_COUNT, AT(rows), 1, 10000 },
    { "columns", FORM_COUNT, AT(columns), 1, 10000 },
};

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
    if (body->args && json_array_size(body->args) == 0)
        return form_bad(exchange_caller(x), err, "args", "at least one is needed");
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

static int order_read(struct exchange *x, struct exec_order *order, const struct form_field *fields,
                      size_t count, struct err *err)
{
    *order = (struct exec_order){ .body = { .output_limit = OUTPUT_PRESET } };
    if (exchange_json(x, &order->json, err) < 0)
        return -1;
    if (form_read(exchange_caller(x), order->json, fields, count, &order->body, err) == 0 &&
        translate(x, order, err) == 0)
        return 0;
    order_done(order);
    return -1;
}

int v1_order_read(struct exchange *x, json_t *take_json, struct v1_order *ret, struct err *err)
{
    struct exec_order order = { .json = take_json };
    bool input = false, bad = true;

    if (form_read(exchange_caller(x), take_json, process_fields, ARRAY_LEN(process_fields),
                  &order.body, err) == 0 &&
        translate(x, &order, err) == 0) {
        input = json_is_true(order.body.input);
        bad = order.body.input && !json_is_boolean(order.body.input);
        if (bad)
            (void) form_bad(exchange_caller(x), err, "stdin",
                            "true or false is needed: whether it stays open");
    }
    order.command.flags = (order.body.pty ? AGENT_PTY : 0) | (input ? AGENT_STDIN : 0);
    *ret = (struct v1_order){ order.json, order.args, order.env, order.command };
    if (!bad)
        return 0;
    v1_order_done(ret);
    return -1;
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
    else if (strcmp(then, "keep") != 0)
        return form_bad(exchange_caller(x), err, "on_disconnect", "'kill' or 'keep' is needed");
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

    if (order_read(x, &order, exec_fields, ARRAY_LEN(exec_fields), err) < 0)
        return -1;
    if (order.body.input) {
        order.command.input = json_string_value(order.body.input);
        order.command.input_len = json_string_length(order.body.input);
    }
    if (order.body.input && !order.command.input)
        r = form_bad(exchange_caller(x), err, "stdin", "a text is needed");
    else if (v1_read_wish(x, order.body.stream, &wish, err) < 0)
        r = -1;
    else if (wish == V1_PLAIN && order.body.on_disconnect)
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

    if (order_read(x, &order, process_fields, ARRAY_LEN(process_fields), err) < 0)
        return -1;
    order.command.flags = AGENT_DETACH | (order.body.pty ? AGENT_PTY : 0) |
                          (json_is_true(order.body.input) ? AGENT_STDIN : 0);
    if (order.body.input && !json_is_boolean(order.body.input))
        r = form_bad(exchange_caller(x), err, "stdin",
                     "true or false is needed: whether it stays open");
    else if (!order.body.pty && (order.body.rows || order.body.columns))
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
