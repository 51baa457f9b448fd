#include "surface/v1/v1.h"

#include "base/own.h"
#include "server/guard/quota.h"

#include <signal.h>
#include <string.h>

#define STDIN_MOST (1024 * 1024)

static json_t *process_json(const struct agent_reply *p)
{
    struct exec_result result = { .ended = (enum agent_exit) p->ended,
                                  .exit_code = p->exit_code,
                                  .signal = p->signal,
                                  .wall_ms = p->wall_ms,
                                  .cpu_ms = p->cpu_ms,
                                  .peak_bytes = p->peak_bytes,
                                  .stdout_bytes = p->stdout_bytes,
                                  .stderr_bytes = p->stderr_bytes };
    bool running = p->flags & AGENT_RUNNING;
    json_t *json = running ? json_pack("{s:I, s:I}", "stdout_bytes", (json_int_t) p->stdout_bytes,
                                       "stderr_bytes", (json_int_t) p->stderr_bytes)
                           : v1_result_json(&result);
    json_t *args = json_array();
    const char *at = p->args.data;

    for (uint32_t i = 0; i < p->args.count; i++, at += strlen(at) + 1)
        (void) json_array_append_new(args, form_text(at, strlen(at)));
    (void) json_object_set_new(json, "proc", json_integer(p->proc));
    (void) json_object_set_new(json, "pid", json_integer(p->pid));
    (void) json_object_set_new(json, "running", json_boolean(running));
    (void) json_object_set_new(json, "pty", json_boolean(p->flags & AGENT_IS_PTY));
    (void) json_object_set_new(json, "args", args);
    (void) json_object_set_new(json, "started_at",
                               form_time(p->started_ms > 0 ? (uint64_t) p->started_ms : 0));
    if (p->cwd)
        (void) json_object_set_new(json, "cwd", form_text(p->cwd, strlen(p->cwd)));
    if (p->tag)
        (void) json_object_set_new(json, "tag", form_text(p->tag, strlen(p->tag)));
    if (p->user)
        (void) json_object_set_new(json, "user", form_text(p->user, strlen(p->user)));
    return json;
}

static int list_items(struct exchange *x, const char *name,
                      json_t *(*convert)(const struct agent_reply *),
                      int (*list)(struct ops *, const char *, exec_item_fn, void *, struct err *),
                      struct err *err)
{
    struct v1_items items = { .array = json_array(), .convert = convert };
    struct ops ops = ops_of(exchange_caller(x));

    if (list(&ops, exchange_param(x, "id"), v1_add_item, &items, err) < 0) {
        json_decref(items.array);
        return -1;
    }
    return exchange_reply_json(x, 200, json_pack("{s:o}", name, items.array), err);
}

int v1_process_list(struct exchange *x, struct err *err)
{
    return list_items(x, "processes", process_json, ops_process_list, err);
}

static json_t *port_json(const struct agent_reply *p)
{
    return json_pack("{s:I, s:o, s:o}", "port", (json_int_t) p->port, "address",
                     form_text(p->address ? p->address : "", p->address ? strlen(p->address) : 0),
                     "program",
                     form_text(p->program ? p->program : "", p->program ? strlen(p->program) : 0));
}

static json_t *refusal_json(const struct agent_reply *r)
{
    return json_pack("{s:o, s:o, s:I, s:I}", "call",
                     form_text(r->name ? r->name : "", r->name ? strlen(r->name) : 0), "program",
                     form_text(r->program ? r->program : "", r->program ? strlen(r->program) : 0),
                     "pid", (json_int_t) r->pid, "count", (json_int_t) r->count);
}

int v1_refusal_list(struct exchange *x, struct err *err)
{
    return list_items(x, "refusals", refusal_json, ops_refusal_list, err);
}

int v1_port_list(struct exchange *x, struct err *err)
{
    return list_items(x, "ports", port_json, ops_port_list, err);
}

static int read_proc(struct exchange *x, uint32_t *ret, struct err *err)
{
    const char *text = exchange_param(x, "proc");
    uint64_t proc;

    if (parse_u64(text, &proc, err) < 0 || proc == 0 || proc > UINT32_MAX)
        return err_set(err, ERR_NO_PROCESS, "there is no process '%.40s'", text);
    *ret = (uint32_t) proc;
    return 0;
}

struct one_process {
    uint32_t proc;
    uint64_t stdout_bytes, stderr_bytes;
    json_t *found;
};

static int find_process(void *arg, const struct agent_reply *item, struct err *err)
{
    struct one_process *one = arg;

    (void) err;
    if (item->proc != one->proc || one->found)
        return 0;
    one->found = process_json(item);
    one->stdout_bytes = item->stdout_bytes;
    one->stderr_bytes = item->stderr_bytes;
    return 0;
}

/* one->proc is what is looked for. */
static int find_one(struct exchange *x, struct one_process *one, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    one->found = NULL;
    if (ops_process_list(&ops, exchange_param(x, "id"), find_process, one, err) < 0) {
        json_decref(one->found);
        return -1;
    }
    return one->found ? 0 : err_set(err, ERR_NO_PROCESS, "there is no process %u", one->proc);
}

static int look_up(struct exchange *x, struct one_process *one, struct err *err)
{
    return read_proc(x, &one->proc, err) < 0 ? -1 : find_one(x, one, err);
}

int v1_process_exists(struct exchange *x, uint32_t proc, struct err *err)
{
    struct one_process one = { .proc = proc };

    if (find_one(x, &one, err) < 0)
        return -1;
    json_decref(one.found);
    return 0;
}

int v1_process_get(struct exchange *x, struct err *err)
{
    struct one_process one;

    return look_up(x, &one, err) < 0 ? -1 : exchange_reply_json(x, 200, one.found, err);
}

/* Looked up first, so that what cannot be is an answer of its own, and not an event of a stream. */
int v1_process_output(struct exchange *x, struct err *err)
{
    uint64_t from = 0, from_stderr = 0;
    struct ops ops = ops_of(exchange_caller(x));
    struct one_process one;
    struct ops_run run;
    int r;

    if (look_up(x, &one, err) < 0)
        return -1;
    json_decref(one.found);
    if (query_count(x, "from", 0, one.stdout_bytes, &from, err) < 0 ||
        query_count(x, "from_stderr", 0, one.stderr_bytes, &from_stderr, err) < 0 ||
        quota_stream_begin(exchange_caller(x), err) < 0)
        return -1;
    r = ops_run_attach(&ops, exchange_param(x, "id"), one.proc, from, from_stderr, 0, &run, err);
    if (r == 0) {
        exchange_resumable(x);
        r = v1_stream_process(x, &run, v1_accepts(x) == V1_SSE, false, err);
        ops_run_close(&run);
    }
    quota_stream_end(exchange_caller(x));
    return r;
}

/* The body is the bytes themselves; ?end=true closes stdin behind them. */
int v1_process_stdin(struct exchange *x, struct err *err)
{
    auto_free char *data = malloc(STDIN_MOST);
    struct ops ops = ops_of(exchange_caller(x));
    bool end = false;
    size_t have = 0;
    uint32_t proc;
    ssize_t n;

    if (!data)
        return err_set(err, ERR_NO_MEMORY, "no memory for stdin");
    if (read_proc(x, &proc, err) < 0 || query_bool(x, "end", &end, err) < 0)
        return -1;
    while (have < STDIN_MOST && (n = exchange_read(x, data + have, STDIN_MOST - have, err)) != 0) {
        if (n < 0)
            return -1;
        have += (size_t) n;
    }
    if (ops_process_stdin(&ops, exchange_param(x, "id"), proc, data, have, end, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, json_pack("{s:I}", "bytes", (json_int_t) have), err);
}

/* A number, or a name with or without SIG. */
static int read_signal(struct exchange *x, json_t *value, uint32_t *ret, struct err *err)
{
    const char *name = json_string_value(value);
    json_int_t number = json_integer_value(value);

    if (name && strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int i = 1; name && i < 32; i++)
        if (strcmp(sigabbrev_np(i), name) == 0)
            number = i;
    if (number < 1 || number > 64)
        return form_bad(exchange_caller(x), err, "signal",
                        "must be a number from 1 to 64 or a name such as TERM");
    *ret = (uint32_t) number;
    return 0;
}

struct signal_body {
    json_t *signal;
    bool all;
};

/* clang-format off */
static const struct form_field signal_fields[] = {
    { "signal", FORM_ANY, .at = offsetof(struct signal_body, signal), .help = "a number, or a name such as TERM", .needed = true,
      .schema = "{\"oneOf\": [{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 64}, {\"type\": \"string\", \"examples\": [\"TERM\"]}]}" },
    { "all", FORM_BOOL, .at = offsetof(struct signal_body, all), .help = "also to every process that it started", .fallback = "false" },
};
/* clang-format on */
const struct form v1_signal_form = FORM_OF(signal_fields);

int v1_process_signal(struct exchange *x, struct err *err)
{
    struct signal_body body = { .all = false };
    struct ops ops = ops_of(exchange_caller(x));
    uint32_t proc, number = 0;
    uint64_t count = 0;
    json_t *json;
    int r;

    if (read_proc(x, &proc, err) < 0 || exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &v1_signal_form, &body, err);
    if (r == 0)
        r = read_signal(x, body.signal, &number, err);
    json_decref(json);
    if (r < 0 ||
        ops_process_signal(&ops, exchange_param(x, "id"), proc, number, body.all, &count, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, json_pack("{s:I}", "reached", (json_int_t) count), err);
}
