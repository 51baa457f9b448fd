/* POST /execute: waits for its turn in the context, hands the cell to the kernel, and passes the kernel's events on until
 * the cell ends.
 *
 * What can go wrong is said in the stream, as an error of the execution, once the stream has begun: the kernel died, the
 * policy refused, the language is not installed. Only a sandbox that is gone cuts the connection.
 *
 * A client that goes away interrupts its cell: SIGINT, again, and then the kernel is killed. The turn is kept until the
 * kernel is free, so that the next cell never meets this one. */
#include "e2b/code.h"

#include "api/quota.h"
#include "base/io.h"
#include "base/own.h"
#include "e2b/code_event.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define KEEPALIVE_MS 5000
#define TURN_MS      200 /* how often one who waits looks for its client */
#define INTERRUPT_MS 2000
#define INTERRUPTS   3
#define ROOM_FROM    (1u << 20)
#define ROOM_MS      30000
#define OUT_SIZE     32768
#define LAST_WORDS   512

enum ending { ENDED, DIED, NEVER_BEGUN, SANDBOX_GONE };

struct execution {
    struct exchange *x;
    struct ops ops;
    struct code_context *context;
    struct ops_run run;
    char cell[20]; /* its id */
    bool begun, ended, gone;

    char *line; /* what there is of a line that is not whole */
    size_t len, room;
    bool skipping; /* the rest of a line that was too long */
    bool has_room; /* code_room_take */
    uint64_t malformed;

    char words[LAST_WORDS]; /* of a kernel that cannot start: its stderr */
    size_t words_len;

    char *out; /* OUT_SIZE: what goes to the client with the next write */
    size_t out_len;
};

/* ---- to the client: what cannot be written any more means that it is gone ---- */

static void send_out(struct execution *e)
{
    struct err ignored;

    if (e->out_len > 0 && !e->gone && exchange_write(e->x, e->out, e->out_len, &ignored) < 0)
        e->gone = true;
    e->out_len = 0;
}

static int put(void *context, const char *data, size_t len, struct err *err)
{
    struct execution *e = context;

    if (e->out_len + len > OUT_SIZE)
        send_out(e);
    if (e->gone)
        return 0;
    if (len > OUT_SIZE) {
        if (exchange_write(e->x, data, len, err) < 0)
            e->gone = true;
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

    put_json(e,
             json_pack("{s:s, s:s, s:o, s:s}", "type", "error", "name", name, "value",
                       text ? text : json_string("it cannot be said in UTF-8"), "traceback", ""));
}

static void put_keepalive(struct execution *e)
{
    put_json(e, json_pack("{s:s}", "type", "keepalive"));
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

/* What a kernel says that cannot even begin is why. */
static void keep_words(struct execution *e, const char *data, size_t len)
{
    size_t room = sizeof e->words - 1 - e->words_len, n = len < room ? len : room;

    memcpy(e->words + e->words_len, data, n);
    e->words_len += n;
}

static void keep_stderr(struct execution *e, const struct code_event *event)
{
    json_t *text = event->text.len < 8 * LAST_WORDS
                       ? json_loadb(event->text.at, event->text.len, JSON_DECODE_ANY, NULL)
                       : NULL;

    keep_words(e, json_string_value(text) ?: "", json_string_length(text));
    json_decref(text);
}

static void take_line(struct execution *e, const char *line, size_t len)
{
    struct code_event event;
    struct err ignored;
    char now[40];

    if (e->ended)
        return;
    if (code_event_parse(line, len, &event, &ignored) < 0) {
        e->malformed += e->begun;
        return;
    }
    if (event.type == CODE_BEGIN || event.type == CODE_END) {
        if (!code_event_is(&event, e->cell))
            return; /* of a cell that nobody waited for */
        e->begun = true;
        e->ended = event.type == CODE_END;
    }
    if (!e->begun && event.type == CODE_STDERR)
        keep_stderr(e, &event);
    if (!e->begun || e->gone)
        return;
    print_now(now);
    (void) code_event_put(&event, now, put, e, &ignored);
}

static void drop_line(struct execution *e)
{
    if (e->has_room)
        code_room_give();
    e->has_room = false;
    if (e->room > ROOM_FROM) {
        free(take_ptr(&e->line));
        e->room = 0;
    }
    e->len = 0;
}

/* False: the line is too long, or there is no memory for it. */
static bool keep_part(struct execution *e, const char *data, size_t len)
{
    size_t want = e->room ? e->room : 4096;
    char *more;

    while (want < e->len + len)
        want *= 2;
    if (e->len + len > CODE_LINE_MAX)
        return false;
    if (want > ROOM_FROM && !e->has_room && !(e->has_room = code_room_take(ROOM_MS)))
        return false;
    if (want > e->room) {
        if (!(more = realloc(e->line, want)))
            return false;
        e->line = more;
        e->room = want;
    }
    memcpy(e->line + e->len, data, len);
    e->len += len;
    return true;
}

static void take_part(struct execution *e, const char *data, size_t len, bool whole)
{
    if (e->skipping) {
        e->skipping = !whole;
        return;
    }
    if (whole && e->len == 0) {
        take_line(e, data, len);
        return;
    }
    if (!keep_part(e, data, len)) {
        drop_line(e);
        e->skipping = !whole;
        if (e->begun)
            put_error(e, "ResultTooBig",
                      "a result or a piece of output was dropped: it has more "
                      "than 32 MiB, or too many are under way");
        return;
    }
    if (whole) {
        take_line(e, e->line, e->len);
        drop_line(e);
    }
}

static void take_output(struct execution *e, const struct exec_event *event)
{
    const char *at = (const char *) event->data, *end = at + event->len;

    if (event->type == EXEC_STDERR) {
        keep_words(e, (const char *) event->data, event->len);
        return;
    }
    if (event->missed > 0) { /* before we came: what follows begins in the middle of a line */
        drop_line(e);
        e->skipping = true;
    }
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t) (end - at));

        take_part(e, at, (size_t) ((newline ? newline : end) - at), newline != NULL);
        at = newline ? newline + 1 : end;
    }
    send_out(e);
}

/* ---- the cell ---- */

/* The client is gone: from now on it is about the kernel. */
static enum ending interrupt(struct execution *e)
{
    const char *sandbox = e->context->sandbox;
    uint64_t next = 0, count;
    struct err ignored;
    int sent = 0;

    while (!e->ended) {
        uint64_t now = io_now_ms();
        struct exec_event event;
        int r;

        if (now >= next) {
            bool last = sent++ >= INTERRUPTS;

            (void) ops_process_signal(&e->ops, sandbox, e->context->proc, last ? SIGKILL : SIGINT,
                                      last, &count, &ignored);
            next = now + INTERRUPT_MS;
        }
        r = ops_cell_next(&e->ops, &e->run,
                          (int) (next - now < INTERRUPT_MS ? next - now : INTERRUPT_MS), &e->gone,
                          &event, &ignored);
        if (r < 0)
            return SANDBOX_GONE;
        if (r == 1 && event.type == EXEC_END)
            return DIED;
        if (r == 1)
            take_output(e, &event);
    }
    return ENDED;
}

static enum ending follow(struct execution *e, struct exec_result *ret, struct err *err)
{
    while (!e->ended && !e->gone) {
        struct exec_event event;
        int r = ops_cell_next(&e->ops, &e->run, KEEPALIVE_MS, &e->gone, &event, err);

        if (r < 0)
            return SANDBOX_GONE;
        if (r == 0 && !e->gone)
            put_keepalive(e);
        if (r == 1 && event.type == EXEC_END) {
            *ret = event.result;
            return e->begun ? DIED : NEVER_BEGUN;
        }
        if (r == 1)
            take_output(e, &event);
    }
    return e->ended ? ENDED : interrupt(e);
}

static enum ending run_once(struct execution *e, const struct ops_cell *cell,
                            struct exec_result *ret, struct err *err)
{
    enum ending ending;

    e->begun = e->ended = e->skipping = false;
    e->len = e->words_len = 0;
    if (ops_cell_start(&e->ops, e->context->sandbox, cell, &e->run, err) < 0) {
        *ret = (struct exec_result){ .ended = EXIT_LOST };
        return err->kind == ERR_NO_PROCESS ? NEVER_BEGUN : SANDBOX_GONE;
    }
    ending = follow(e, ret, err);
    e->context->from_stdout = e->run.exec.next_offset[0];
    e->context->from_stderr = e->run.exec.next_offset[1];
    ops_run_close(&e->run);
    drop_line(e);
    if (ending == DIED || ending == NEVER_BEGUN)
        e->context->proc = 0;
    return ending;
}

static void tell_death(struct execution *e, const struct exec_result *result)
{
    char text[LAST_WORDS + 200];

    e->words[e->words_len] = '\0';
    while (e->words_len > 0 && strchr("\r\n ", e->words[e->words_len - 1]))
        e->words[--e->words_len] = '\0';
    (void) snprintf(text, sizeof text,
                    "the kernel ended (%s %" PRIu32 ") before the cell did; the "
                    "next cell gets a new one%s%s",
                    ops_exit_reason(result), ops_exit_code(result), e->words_len ? ": " : "",
                    e->words);
    put_error(e, "UnexpectedEndOfExecution", text);
}

static int run_cell(struct execution *e, struct ops_cell *cell, struct err *err)
{
    struct exec_result result = { .ended = EXIT_NONE };
    enum ending ending = NEVER_BEGUN;
    bool fresh = false;

    if (ops_cell_judge(&e->ops, e->context->sandbox, cell, err) < 0) {
        put_error(e, err->kind == ERR_DENIED ? "PolicyError" : "ExecutionError", err->msg);
        return 0;
    }
    /* A kernel that ended between two cells is found out by the second. */
    for (int i = 0; i < 2 && ending == NEVER_BEGUN && !fresh; i++) {
        if (code_context_start(&e->ops, e->context, &fresh, err) < 0) {
            put_error(e, "KernelError", err->msg);
            return 0;
        }
        cell->proc = e->context->proc;
        cell->from_stdout = e->context->from_stdout;
        cell->from_stderr = e->context->from_stderr;
        ending = run_once(e, cell, &result, err);
    }
    if (ending == SANDBOX_GONE)
        return -1;
    if (e->malformed > 0)
        put_json(e, json_pack("{s:s, s:s, s:s}", "type", "stderr", "text",
                              "[lines that are no events were dropped]\n", "timestamp", ""));
    if (ending != ENDED)
        tell_death(e, &result);
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
        if (waited % KEEPALIVE_MS == 0)
            put_keepalive(e);
        if (e->gone)
            return -1;
    }
    return 0;
}

static int run_in_turn(struct execution *e, const struct code_request *request, struct err *err)
{
    const struct code_language *language = e->context->language;
    auto_free char *line = NULL;
    struct ops_cell cell = { .program = language->program,
                             .option = language->option,
                             .code = request->code };
    struct code_turn turn;
    json_t *json =
        json_pack("{s:s, s:s, s:O?}", "id", e->cell, "code", request->code, "env", request->env);
    int r = 0;

    line = json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(json);
    if (!line)
        return err_set(err, ERR_NO_MEMORY, "no memory for the cell");
    cell.line = line;
    cell.line_len = strlen(line) + 1;
    line[cell.line_len - 1] = '\n'; /* in the place of the NUL */
    code_turn_join(e->context, &turn);
    if (wait_turn(e, &turn) == 0)
        r = run_cell(e, &cell, err);
    code_turn_leave(e->context, &turn);
    return r;
}

static int stream(struct execution *e, const struct code_request *request, struct err *err)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, 0) != sizeof number || !(e->out = malloc(OUT_SIZE)))
        return err_set(err, ERR_NO_MEMORY, "no memory for the execution");
    (void) snprintf(e->cell, sizeof e->cell, "%016" PRIx64, number);
    if (exchange_add_header(e->x, "Cache-Control", "no-cache", err) < 0 ||
        exchange_add_header(e->x, "X-Accel-Buffering", "no", err) < 0 ||
        exchange_begin(e->x, 200, "application/x-ndjson", -1, err) < 0)
        return -1;
    if (run_in_turn(e, request, err) < 0)
        return -1;
    put_json(e, json_pack("{s:s}", "type", "end_of_execution"));
    if (e->gone)
        return err_set(err, ERR_UNAVAILABLE, "the client went away");
    return exchange_end(e->x, err);
}

static int execute(struct exchange *x, const struct code_request *request, struct err *err)
{
    struct execution e = { .x = x, .ops = ops_of(x), .run = OPS_RUN_NONE };
    int r;

    if (code_context_find(&e.ops, exchange_param(x, "sandbox"), request->context_id,
                          request->language, &e.context, err) < 0)
        return -1;
    if (quota_stream_begin(x, err) < 0) {
        code_registry_put(e.context);
        return -1;
    }
    r = stream(&e, request, err);
    quota_stream_end(x);
    code_registry_put(e.context);
    free(e.line);
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
