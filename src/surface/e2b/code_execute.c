/* POST /execute: waits for its turn in the context, hands the cell to the kernel (code_cell.c), and passes the kernel's
 * events on until the cell ends.
 *
 * What can go wrong is said in the stream, as an error of the execution, once the stream has begun: the kernel died, the
 * policy refused, the language is not installed. Only a sandbox that is gone cuts the connection.
 */
#include "surface/e2b/code.h"

#include "base/own.h"
#include "server/guard/quota.h"
#include "surface/e2b/code_cell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TURN_MS  200 /* how often one who waits looks for its client */
#define OUT_SIZE 32768

struct execution {
    struct exchange *x;
    struct ops ops;
    struct code_context *context;
    struct code_cell cell;
    char *out; /* OUT_SIZE: what goes to the client with the next write */
    size_t out_len;
};

/* ---- to the client: what cannot be written any more means that it is gone ---- */

static void send_out(struct execution *e)
{
    struct err ignored;

    if (e->out_len > 0 && !e->cell.gone && exchange_write(e->x, e->out, e->out_len, &ignored) < 0)
        e->cell.gone = true;
    e->out_len = 0;
}

static int put(void *context, const char *data, size_t len, struct err *err)
{
    struct execution *e = context;

    if (e->out_len + len > OUT_SIZE)
        send_out(e);
    if (e->cell.gone)
        return 0;
    if (len > OUT_SIZE) {
        if (exchange_write(e->x, data, len, err) < 0)
            e->cell.gone = true;
        return 0;
    }
    memcpy(e->out + e->out_len, data, len);
    e->out_len += len;
    return 0;
}

static void put_json(struct execution *e, json_t *event)
{
    auto_free char *text = event ? json_dumps(event, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    struct err ignored;

    if (text) {
        (void) put(e, text, strlen(text), &ignored);
        (void) put(e, "\n", 1, &ignored);
    }
    json_decref(event);
    send_out(e);
}

static void put_error(struct execution *e, const char *name, const char *value)
{
    json_t *text = json_string(value);

    put_json(e, json_pack("{s:s, s:s, s:o, s:s}", "type", "error", "name", name, "value",
                          text ? text : json_string("it cannot be written in UTF-8"), "traceback",
                          ""));
}

static void print_now(char out[40])
{
    struct timespec now;
    struct tm tm;
    char date[24];

    (void) clock_gettime(CLOCK_REALTIME, &now);
    (void) gmtime_r(&now.tv_sec, &tm);
    (void) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    (void) snprintf(out, 40, "%s.%06ldZ", date, now.tv_nsec / 1000);
}

/* ---- from the kernel ---- */

static void on_event(void *to, const struct code_event *event)
{
    struct execution *e = to;
    struct err ignored;
    char now[40];

    print_now(now);
    (void) code_event_put(event, now, put, e, &ignored);
}

static void on_too_big(void *to)
{
    put_error(to, "ResultTooBig",
              "a result or a piece of output was dropped: it has more "
              "than 32 MiB, or too many are running");
}

static void on_flush(void *to)
{
    send_out(to);
}

static void on_silence(void *to)
{
    put_json(to, json_pack("{s:s}", "type", "keepalive"));
}

static const struct code_sink sink = {
    .event = on_event, .too_big = on_too_big, .flush = on_flush, .silence = on_silence
};

/* ---- the cell ---- */

static void tell_death(struct execution *e)
{
    const struct exec_result *result = &e->cell.result;
    char text[CODE_WORDS_MAX + 200], *words = e->cell.words;
    size_t len = strlen(words);

    while (len > 0 && strchr("\r\n ", words[len - 1]))
        words[--len] = '\0';
    (void) snprintf(text, sizeof text,
                    "the kernel ended (%s %" PRIu32 ") before the cell did; %s%s%s",
                    ops_exit_reason(result), ops_exit_code(result),
                    result->with_sandbox ? "the sandbox ran out of memory, and ended as a whole"
                                         : "the next cell gets a new one",
                    len ? ": " : "", words);
    put_error(e, "UnexpectedEndOfExecution", text);
}

static int run_cell(struct execution *e, struct err *err)
{
    enum code_ending ending;

    if (ops_cell_judge(&e->ops, e->context->sandbox, &e->cell.cell, err) < 0) {
        put_error(e, err->kind == ERR_DENIED ? "PolicyError" : "ExecutionError", err->msg);
        return 0;
    }
    ending = code_cell_run(&e->cell, err);
    if (ending == CODE_LOST)
        return -1;
    if (ending == CODE_NO_KERNEL) {
        put_error(e, "KernelError", err->msg);
        return 0;
    }
    if (e->cell.malformed > 0)
        put_json(e, json_pack("{s:s, s:s, s:s}", "type", "stderr", "text",
                              "[lines that are not events were dropped]\n", "timestamp", ""));
    if (ending != CODE_ENDED)
        tell_death(e);
    return 0;
}

/* ---- the request ---- */

/* -1: the client went away. */
static int wait_turn(struct execution *e, const struct code_turn *turn)
{
    unsigned waited = 0;

    while (!code_turn_wait(e->context, turn, TURN_MS)) {
        waited += TURN_MS;
        if (exchange_gone(e->x))
            return -1;
        if (waited % CODE_SILENCE_MS == 0)
            on_silence(e);
        if (e->cell.gone)
            return -1;
    }
    return 0;
}

static int run_in_turn(struct execution *e, const struct code_request *request,
                       const struct code_turn *turn, struct err *err)
{
    const struct code_language *language = e->context->language;

    e->cell.cell = (struct ops_cell){ .program = language->program,
                                      .option = language->option,
                                      .code = request->code };
    if (code_cell_say(&e->cell,
                      json_pack("{s:s, s:O?}", "code", request->code, "env", request->env),
                      err) < 0)
        return -1;
    return wait_turn(e, turn) == 0 ? run_cell(e, err) : 0;
}

static int begin_stream(struct execution *e, struct err *err)
{
    if (!(e->out = malloc(OUT_SIZE)))
        return err_set(err, ERR_NO_MEMORY, "no memory for the execution");
    if (code_cell_init(&e->cell, err) < 0 ||
        exchange_add_header(e->x, "Cache-Control", "no-cache", err) < 0 ||
        exchange_add_header(e->x, "X-Accel-Buffering", "no", err) < 0)
        return -1;
    return exchange_begin(e->x, 200, "application/x-ndjson", -1, err);
}

/* In the queue before the answer begins: a client that has the head of the answer is before all that ask later. */
static int stream(struct execution *e, const struct code_request *request, struct err *err)
{
    struct code_turn turn;
    int r;

    code_turn_join(e->context, &turn);
    r = begin_stream(e, err);
    if (r == 0)
        r = run_in_turn(e, request, &turn, err);
    code_turn_leave(e->context, &turn);
    if (r < 0)
        return -1;
    put_json(e, json_pack("{s:s}", "type", "end_of_execution"));
    if (e->cell.gone)
        return err_set(err, ERR_UNAVAILABLE, "the client went away");
    return exchange_end(e->x, err);
}

static int execute(struct exchange *x, const struct code_request *request, struct err *err)
{
    struct execution e = { .x = x, .ops = ops_of(exchange_caller(x)) };
    int r;

    if (code_context_find(&e.ops, exchange_param(x, "sandbox"), request->context_id,
                          request->language, &e.context, err) < 0)
        return -1;
    e.cell = (struct code_cell){ .ops = &e.ops, .context = e.context, .sink = &sink, .to = &e };
    if (quota_stream_begin(exchange_caller(x), err) < 0) {
        code_registry_put(e.context);
        return -1;
    }
    r = stream(&e, request, err);
    quota_stream_end(exchange_caller(x));
    code_registry_put(e.context);
    code_cell_done(&e.cell);
    free(e.out);
    return r;
}

int code_execute(struct exchange *x, struct err *err)
{
    struct code_request request = { .body = NULL };
    int r;

    if (exchange_json(x, &request.body, err) < 0)
        return -1;
    r = code_request_read(&request, err);
    if (r == 0)
        r = execute(x, &request, err);
    json_decref(request.body);
    return r;
}
