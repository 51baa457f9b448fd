/* tools/call.
 *
 * A short call is answered with JSON. One that runs for a while becomes a stream of events: progress where the client asked for
 * it, at most once a second, and a comment line when there is none, so that no proxy between here and there gives up. */
#include "surface/mcp/mcp.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "surface/mcp/running.h"
#include "surface/tools/tools_text.h"

#include <string.h>

#define PROGRESS_MS  1000
#define MESSAGE_MOST 200 /* bytes of the last line that a progress message shows */

struct run {
    struct mcp_call *call;
    json_t *token;    /* of progress; NULL: not asked for */
    uint64_t bytes;   /* of output so far */
    uint64_t told_ms; /* when the client last heard something */
    char last[MESSAGE_MOST + 1];
};

/* ---- the stream ---- */

static int begin_stream(struct run *run, struct err *err)
{
    struct exchange *x = run->call->x;

    if (exchange_begun(x))
        return 0;
    if (exchange_add_header(x, "X-Accel-Buffering", "no", err) < 0 ||
        exchange_add_header(x, "Cache-Control", "no-cache", err) < 0)
        return -1;
    return exchange_begin(x, 200, "text/event-stream", -1, err);
}

/* take_json: the reference is taken. Compact JSON has no line break. */
static int send_event(struct run *run, json_t *take_json, struct err *err)
{
    auto_free char *text = json_dumps(take_json, JSON_COMPACT), *event = NULL;
    int n = text ? asprintf(&event, "event: message\ndata: %s\n\n", text) : -1;

    json_decref(take_json);
    if (n < 0) {
        event = NULL;
        return err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    }
    return exchange_write(run->call->x, event, (size_t) n, err);
}

static int send_progress(struct run *run, struct err *err)
{
    json_t *params =
        json_pack("{s:O, s:I}", "progressToken", run->token, "progress", (json_int_t) run->bytes);

    if (run->last[0])
        (void) json_object_set_new(params, "message", json_string(run->last));
    return send_event(run,
                      json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method",
                                "notifications/progress", "params", params),
                      err);
}

/* The last whole or begun line, as text. */
static void keep_last(struct run *run, const char *data, size_t len)
{
    const char *line;
    struct text clean = { 0 };

    while (len > 0 && (data[len - 1] == '\n' || data[len - 1] == '\r'))
        len--;
    line = memrchr(data, '\n', len);
    if (line) {
        len -= (size_t) (line + 1 - data);
        data = line + 1;
    }
    if (len == 0)
        return;
    /* Three bytes for one that is no UTF-8. */
    if (text_add_utf8(
            &clean, data,
            text_cut(data, len < MESSAGE_MOST / 3 ? len : MESSAGE_MOST / 3, MESSAGE_MOST)) == 0)
        (void) snprintf(run->last, sizeof run->last, "%s", clean.data);
    free(clean.data);
}

static int watch(void *context, const struct exec_event *event, struct err *err)
{
    struct run *run = context;
    uint64_t now = io_now_ms();

    if (event) {
        run->bytes += event->len;
        keep_last(run, (const char *) event->data, event->len);
        if (!run->token || now - run->told_ms < PROGRESS_MS)
            return 0;
    }
    run->told_ms = now;
    if (begin_stream(run, err) < 0)
        return -1;
    return event ? send_progress(run, err) : exchange_write(run->call->x, ": \n\n", 4, err);
}

static int answer(struct run *run, json_t *take_result, struct err *err)
{
    if (!exchange_begun(run->call->x))
        return mcp_reply(run->call, take_result, err);
    if (send_event(run, mcp_answer(run->call, take_result), err) < 0)
        return -1;
    return exchange_end(run->call->x, err);
}

/* ---- the call ---- */

static const struct tool *find_tool(const char *name)
{
    for (size_t i = 0; i < tools_count; i++)
        if (strcmp(tools_table[i].plain, name) == 0)
            return &tools_table[i];
    return NULL;
}

static const struct mcp_own *find_own(const struct mcp_call *call, const char *name)
{
    for (size_t i = 0; i < mcp_own_count; i++)
        if (strcmp(mcp_owns[i].name, name) == 0 && (!call->pinned || mcp_owns[i].inside))
            return &mcp_owns[i];
    return NULL;
}

/* The arguments, with the sandbox that a pinned client works in. Another one in them is refused: a model may not leave. */
static int pin(const struct mcp_call *call, json_t *arguments, json_t **ret, struct err *err)
{
    const json_t *asked = json_object_get(arguments, "sandbox_id");

    if (call->pinned && asked && !json_is_null(asked) &&
        (!json_is_string(asked) || strcmp(json_string_value(asked), call->pinned) != 0))
        return form_bad(exchange_caller(call->x), err, "sandbox_id",
                        "must be the sandbox of this connection");
    *ret = arguments ? json_copy(arguments) : json_object();
    if (!*ret ||
        (call->pinned && json_object_set_new(*ret, "sandbox_id", json_string(call->pinned)) < 0)) {
        json_decref(take_ptr(ret));
        return err_set(err, ERR_NO_MEMORY, "no memory for the arguments");
    }
    return 0;
}

/* sandbox_id is ours, the rest is the tool's. */
static int run_tool(struct run *run, const struct tool *tool, json_t *arguments, json_t **ret,
                    struct err *err)
{
    struct ops ops = ops_of(exchange_caller(run->call->x));
    json_t *own = json_copy(arguments), *answered = NULL;
    struct tools_order order = {
        .tool = tool, .arguments = own, .watch = watch, .watch_context = run
    };
    int r = form_read(ops.caller, arguments, &tool_where_form, &order.sandbox, err);

    (void) json_object_del(own, "sandbox_id");
    if (r == 0)
        r = tools_call(&ops, &order, &answered, err);
    json_decref(own);
    if (r < 0)
        return -1;
    *ret = mcp_content(tool, answered);
    json_decref(answered);
    return 0;
}

/* A refusal is for the model to read; a client that is gone reads nothing. 202 is the answer to a call that was cancelled. */
static int conclude(struct run *run, struct running *running, int r, json_t *result,
                    struct err *err)
{
    struct exchange *x = run->call->x;

    if (running_cancelled(running)) {
        json_decref(result);
        return exchange_begun(x) ? exchange_end(x, err) : exchange_reply_json(x, 202, NULL, err);
    }
    if (r < 0 && exchange_gone(x))
        return -1;
    if (r < 0 && err->kind == ERR_INTERNAL)
        log_line(LOG_ERROR, "request=%s failed: %s", exchange_id(x), err->msg);
    if (r < 0)
        result = mcp_content_refusal(exchange_caller(x), err);
    return answer(run, result, err);
}

int mcp_tools_call(struct mcp_call *call, struct err *err)
{
    const struct mcp_message *m = &call->message;
    const char *name = mcp_text(m->params, "name"),
               *session = exchange_header(call->x, "Mcp-Session-Id");
    json_t *arguments = json_object_get(m->params, "arguments"), *result = NULL, *pinned = NULL;
    const struct tool *tool = name ? find_tool(name) : NULL;
    const struct mcp_own *own = name ? find_own(call, name) : NULL;
    struct run run = { .call = call,
                       .token = json_object_get(m->meta, "progressToken"),
                       .told_ms = io_now_ms() };
    struct running running = { .name = { exchange_caller(call->x), session ? session : "",
                                         m->id } };
    int r;

    if (!json_is_string(run.token) && !json_is_integer(run.token))
        run.token = NULL;
    if (!tool && !own)
        return mcp_fail(call, 400, MCP_INVALID_PARAMS, "unknown tool: see tools/list", NULL, err);
    if (arguments && !json_is_object(arguments))
        return mcp_fail(call, 400, MCP_INVALID_PARAMS, "arguments is not an object", NULL, err);
    running_add(&running);
    r = pin(call, arguments, &pinned, err);
    if (r == 0)
        r = own ? own->run(call->x, pinned, &result, err)
                : run_tool(&run, tool, pinned, &result, err);
    running_remove(&running);
    json_decref(pinned);
    return conclude(&run, &running, r, result, err);
}
