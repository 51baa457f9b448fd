/* GET /v1/session: a command over one WebSocket, from the create of its sandbox to its exit code. What `cove run`, `cove exec`
 * and `cove shell` are made of.
 *
 *   client   text     the order, first: {"sandbox": NAME or {create}, "process": {command}, "keep": …, "wait": …}
 *            binary   bytes for stdin
 *            text     {"type": "stdin_end"}, {"type": "resize", "rows": R, "columns": C}
 *   server   text     {"type": "sandbox", …}, {"type": "start", "proc": N, "pid": N}
 *            binary   a byte that names the stream (1 stdout, 2 stderr), then bytes of it
 *            text     {"type": "missed", "bytes": N}, {"type": "end", …}, {"type": "error", "error": {…}}
 *
 * A sandbox that the order creates ends with the connection, unless the order says "keep". Nothing is read ahead: stdin is taken
 * only while the agent has room for it, output only while the client reads.
 *
 * Small messages are collected and sent together before the next wait: a client is woken once, not for each. */
#include "surface/v1/v1.h"

#include "base/io.h"
#include "base/own.h"
#include "http/ws.h"
#include "server/guard/quota.h"
#include "server/ops/ops_tie.h"
#include "server/serve/conn.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define IN_MAX      16384 /* read at once */
#define ORDER_MAX   (4 * 1024 * 1024)
#define CONTROL_MAX 512
#define OUT_MAX     (FRAME_DATA_MAX + 4096)
#define STALL_MS    60000
#define ORDER_MS    60000 /* until the whole order is there */
#define DROP_MS     5000
#define DROP_IDLE   1000
#define PING_MS     20000
#define SILENCE_MS                                                                                 \
    120000 /* of a client elsewhere; one on this host that is gone is noticed at once */

enum { STREAM_OUT = 1, STREAM_ERR = 2 };

struct session {
    struct exchange *x;
    struct ops ops;
    struct ops_run run;
    struct ops_tie tie;
    bool made; /* a new sandbox that is to stay */
    bool tied, running, wait, over;
    bool ordered; /* the whole order was read */
    struct ws_reader reader;
    char in[IN_MAX];
    size_t have, used; /* of `in` */
    char *text;        /* of a text message, as far as it is here */
    size_t text_len, text_max;
    char out[OUT_MAX];
    size_t out_len;
    uint64_t heard_ms, pinged_ms;
};

/* ---- to the client ---- */

static int flush(struct session *s, struct err *err)
{
    size_t len = s->out_len;

    s->out_len = 0;
    return len == 0 ? 0 : conn_write(exchange_conn(s->x), s->out, len, STALL_MS, err);
}

/* stream 0: none is named. */
static int put_frame(struct session *s, enum ws_op op, int stream, const void *data, size_t len,
                     struct err *err)
{
    size_t whole = len + (stream != 0);

    if (s->out_len + WS_OUT_HEAD_MAX + whole > sizeof s->out && flush(s, err) < 0)
        return -1;
    s->out_len += ws_frame_put(s->out + s->out_len, op, true, whole);
    if (stream)
        s->out[s->out_len++] = (char) stream;
    memcpy(s->out + s->out_len, data, len);
    s->out_len += len;
    return 0;
}

static int put_json(struct session *s, json_t *json, struct err *err)
{
    auto_free char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    if (!text || strlen(text) > FRAME_DATA_MAX)
        return err_set(err, ERR_NO_MEMORY, "no memory for a message");
    return put_frame(s, WS_TEXT, 0, text, strlen(text), err);
}

static int put_close(struct session *s, unsigned code, const char *reason, struct err *err)
{
    s->over = true;
    if (s->out_len + WS_CLOSE_FRAME_MAX > sizeof s->out && flush(s, err) < 0)
        return -1;
    s->out_len += ws_close_put(s->out + s->out_len, code, reason);
    return 0;
}

static int put_error(struct session *s, const struct err *why, struct err *err)
{
    json_t *error = json_pack("{s:s, s:o}", "code", err_kind_info(why->kind)->name, "message",
                              form_text(why->msg, strlen(why->msg)));

    return put_json(s, json_pack("{s:s, s:o}", "type", "error", "error", error), err);
}

/* ---- from the client ---- */

static int keep_text(struct session *s, const struct ws_event *event, struct err *err)
{
    char *more;

    if (s->text_len + event->data.len > s->text_max)
        return put_close(s, WS_CODE_TOO_BIG, "the message is too long", err);
    if (exchange_body_room(s->x, s->text_len + event->data.len, err) < 0)
        return -1;
    more = realloc(s->text, s->text_len + event->data.len + 1);
    if (!more)
        return err_set(err, ERR_NO_MEMORY, "no memory for a message");
    s->text = more;
    memcpy(s->text + s->text_len, event->data.at, event->data.len);
    s->text_len += event->data.len;
    return 0;
}

static bool resize(struct session *s, json_t *json)
{
    json_int_t rows = json_integer_value(json_object_get(json, "rows"));
    json_int_t columns = json_integer_value(json_object_get(json, "columns"));

    if (rows < 1 || rows > 9999 || columns < 1 || columns > 9999)
        return false;
    (void) exec_resize(&s->run.exec, (uint16_t) rows, (uint16_t) columns);
    return true;
}

static int take_control(struct session *s, struct err *err)
{
    json_t *json = json_loadb(s->text, s->text_len, JSON_REJECT_DUPLICATES, NULL);
    const char *type = json_string_value(json_object_get(json, "type"));
    bool good = false;

    if (!s->running)
        good = false;
    else if (type && strcmp(type, "stdin_end") == 0)
        good = exec_stdin_end(&s->run.exec);
    else if (type && strcmp(type, "resize") == 0)
        good = resize(s, json);
    json_decref(json);
    s->text_len = 0;
    return good ? 0
                : put_close(s, WS_CODE_POLICY,
                            "a text message is stdin_end or resize, with rows and columns", err);
}

static int take_event(struct session *s, const struct ws_event *event, struct err *err)
{
    switch (event->op) {
    case WS_BINARY:
        if (event->data.len > 0 && s->running)
            (void) exec_stdin(&s->run.exec, event->data.at, (uint32_t) event->data.len);
        return 0;
    case WS_TEXT:
        if (keep_text(s, event, err) < 0)
            return -1;
        return event->last && !s->over ? take_control(s, err) : 0;
    case WS_PING:
        return put_frame(s, WS_PONG, 0, event->data.at, event->data.len, err);
    case WS_CLOSE:
        return put_close(s, event->code == WS_CODE_NONE ? WS_CODE_NORMAL : event->code, "", err);
    case WS_PONG:
    case WS_CONTINUE:
        break;
    }
    return 0;
}

/* 1: an event, 0: all that was read is used. A client that breaks the protocol is told, and cut. */
static int next_event(struct session *s, struct ws_event *ret, struct err *err)
{
    char why[ERR_MSG_MAX];

    while (s->used < s->have) {
        size_t used = 0;
        int r = ws_read(&s->reader, s->in + s->used, s->have - s->used, &used, ret, err);

        s->used += used;
        if (r == 1)
            return 1;
        if (r < 0) {
            (void) snprintf(why, sizeof why, "%s", err->msg);
            return put_close(s, s->reader.close_code, why, err);
        }
    }
    return 0;
}

/* What was read, as far as there is room for it on the way to the agent. */
static int take_input(struct session *s, struct err *err)
{
    struct ws_event event;
    int r;

    while (!s->over && !stream_pending(&s->run.exec.stream) &&
           (r = next_event(s, &event, err)) != 0) {
        if (r < 0 || take_event(s, &event, err) < 0)
            return -1;
        if (exec_flush(&s->run.exec, err) < 0)
            s->run.exec.stream.out_have = s->run.exec.stream.out_sent = 0; /* its end follows */
    }
    return 0;
}

static int read_input(struct session *s, struct err *err)
{
    struct conn *conn = exchange_conn(s->x);
    ssize_t n;

    if (s->used < s->have)
        return 0;
    s->used = s->have = 0;
    if (conn->have > 0) /* behind the head of the request */
        n = conn_read(conn, s->in, sizeof s->in, STALL_MS, err);
    else
        n = conn_recv(conn, s->in, sizeof s->in);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        return err_set(err, ERR_UNAVAILABLE, "the client went away");
    s->have = (size_t) n;
    s->heard_ms = io_now_ms();
    return 0;
}

/* ---- the order ---- */

static int read_order(struct session *s, json_t **ret, struct err *err)
{
    struct conn *conn = exchange_conn(s->x);
    uint64_t now, until = io_now_ms() + ORDER_MS;
    struct ws_event event;
    int r;

    for (;;) {
        ssize_t n;

        r = next_event(s, &event, err);
        if (r < 0 || s->over)
            return err_set(err, ERR_PROTOCOL, "no order came");
        if (r == 1 && event.op == WS_TEXT) {
            if (keep_text(s, &event, err) < 0)
                return -1;
            if (event.last)
                break;
            continue;
        }
        if (r == 1)
            return err_set(err, ERR_INVALID, "the first message is the order, a text");
        now = io_now_ms();
        if (now >= until)
            return err_set(err, ERR_TIMEOUT, "the order took too long to arrive");
        n = conn_read(conn, s->in, sizeof s->in, until - now, err);
        if (n <= 0)
            return n < 0 ? -1 : err_set(err, ERR_UNAVAILABLE, "the client went away");
        s->used = 0;
        s->have = (size_t) n;
    }
    s->ordered = true;
    r = exchange_json_text(s->text, s->text_len, ret, err);
    free(s->text);
    s->text = NULL;
    s->text_len = 0;
    s->text_max = CONTROL_MAX;
    return r;
}

struct order_body {
    json_t *sandbox, *process;
    const char *on_disconnect;
    bool keep, wait;
};
#define AT(field) offsetof(struct order_body, field)

static const char *const kill_or_keep[] = { "kill", "keep", NULL };
static const struct form_field order_fields[] = {
    { "sandbox", FORM_ANY, .at = AT(sandbox) },
    { "process", FORM_OBJECT, .at = AT(process) },
    { "on_disconnect", FORM_TEXT, .at = AT(on_disconnect), .choices = kill_or_keep },
    { "keep", FORM_BOOL, .at = AT(keep) },
    { "wait", FORM_BOOL, .at = AT(wait) },
};
static const struct form order_form = FORM_OF(order_fields);

static int tell_sandbox(struct session *s, const struct ops_sandbox *sandbox, struct err *err)
{
    json_t *json = v1_sandbox_json(sandbox);

    if (json)
        (void) json_object_set_new(json, "type", json_string("sandbox"));
    return put_json(s, json, err);
}

static int make_sandbox(struct session *s, const struct order_body *body, struct ops_sandbox *made,
                        struct err *err)
{
    struct err ignored;

    if (v1_create(s->x, body->sandbox, !body->keep, made, err) < 0)
        return -1;
    if (body->keep) {
        s->made = !made->replayed;
        return 0;
    }
    if (ops_tie(&s->ops, made->id, &s->tie, err) < 0) {
        (void) ops_sandbox_kill(&s->ops, made->id, &ignored);
        return -1;
    }
    s->tied = true;
    return 0;
}

/* The sandbox that is meant; it is made if the order says what it is like. */
static int find_sandbox(struct session *s, const struct order_body *body, char ret[ID_LEN + 1],
                        struct err *err)
{
    struct ops_sandbox made;

    if (json_is_string(body->sandbox))
        return ops_sandbox_resolve(&s->ops, json_string_value(body->sandbox), ret, err);
    if (!json_is_object(body->sandbox))
        return form_bad(exchange_caller(s->x), err, "sandbox",
                        "must be an id, a name, or an object that describes a new sandbox");
    if (make_sandbox(s, body, &made, err) < 0)
        return -1;
    memcpy(ret, made.id, sizeof made.id);
    return tell_sandbox(s, &made, err);
}

static int start(struct session *s, const struct order_body *body, const char *sandbox,
                 struct err *err)
{
    const char *then = body->on_disconnect;
    struct v1_order order;
    int r;

    if (!body->process)
        return s->tied ? 0 : form_bad(exchange_caller(s->x), err, "process", "is required");
    if (v1_order_read(s->x, json_incref(body->process), &order, err) < 0)
        return -1;
    if (!then || strcmp(then, "kill") == 0)
        order.command.flags |= AGENT_KILL_ON_CLOSE;
    r = ops_run_start(&s->ops, sandbox, &order.command, &s->run, err);
    v1_order_done(&order);
    if (r < 0)
        return -1;
    s->running = true;
    return put_json(s,
                    json_pack("{s:s, s:s, s:I, s:I}", "type", "start", "sandbox", sandbox, "proc",
                              (json_int_t) s->run.exec.proc, "pid", (json_int_t) s->run.exec.pid),
                    err);
}

static int begin(struct session *s, struct err *err)
{
    struct order_body body = { .sandbox = NULL };
    char sandbox[ID_LEN + 1] = "";
    json_t *json = NULL;
    int r;

    if (read_order(s, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(s->x), json, &order_form, &body, err);
    if (r == 0)
        r = find_sandbox(s, &body, sandbox, err);
    if (r == 0)
        r = start(s, &body, sandbox, err);
    /* A sandbox that was made for a command that cannot be started is of no use, also where it was to stay. */
    if (r < 0 && s->made && !s->tied && sandbox[0]) {
        struct err ignored;

        (void) ops_sandbox_kill(&s->ops, sandbox, &ignored);
    }
    s->wait = body.wait;
    json_decref(json);
    exchange_give_room(s->x);
    return r;
}

/* ---- from the agent ---- */

static int show_end(struct session *s, const struct exec_result *result, struct err *err)
{
    json_t *json = v1_result_json(result);

    (void) json_object_set_new(json, "type", json_string("end"));
    s->over = true;
    return put_json(s, json, err);
}

static int show_lost(struct session *s, struct err *why, struct err *err)
{
    ops_run_explain(&s->run, why);
    s->over = true;
    return put_error(s, why, err);
}

static int show(struct session *s, struct err *err)
{
    struct exec_event event;
    struct err why;
    int r;

    while (s->running && !s->over && (r = ops_run_poll(&s->ops, &s->run, &event, &why)) != 0) {
        if (r < 0)
            return show_lost(s, &why, err);
        if (event.type == EXEC_END)
            return show_end(s, &event.result, err);
        if (event.missed > 0 &&
            put_json(s,
                     json_pack("{s:s, s:I}", "type", "missed", "bytes", (json_int_t) event.missed),
                     err) < 0)
            return -1;
        if (put_frame(s, WS_BINARY, event.type == EXEC_STDOUT ? STREAM_OUT : STREAM_ERR, event.data,
                      event.len, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the loop ---- */

static int keep_alive(struct session *s, struct err *err)
{
    uint64_t now = io_now_ms();

    if (exchange_conn(s->x)->admin)
        return 0; /* of a client on this host the kernel says when it is gone; it may be stopped for long */
    if (now - s->heard_ms > SILENCE_MS)
        return err_set(err, ERR_TIMEOUT, "the client does not answer");
    if (now - s->heard_ms < PING_MS || now - s->pinged_ms < PING_MS)
        return 0;
    s->pinged_ms = now;
    return put_frame(s, WS_PING, 0, "", 0, err);
}

static int step(struct session *s, struct err *err)
{
    struct conn *conn = exchange_conn(s->x);
    bool pending = s->running && stream_pending(&s->run.exec.stream), full = s->used < s->have;
    /* TLS may hold bytes that no poll shows. */
    bool waiting = !full && (conn->have > 0 || (conn->tls && tls_pending(conn->tls)));
    uint64_t wait_ms = s->running ? (uint64_t) ops_run_wait(&s->run, PING_MS) : PING_MS, tie_ms;
    struct pollfd fds[] = {
        { .fd = s->running ? s->run.exec.stream.fd : -1,
          .events = (short) (POLLIN | (pending ? POLLOUT : 0)) },
        { .fd = conn->fd, .events = full ? POLLRDHUP : POLLIN },
        { .fd = s->tied ? ops_tie_fd(&s->tie) : -1 },
    };

    if (s->tied) {
        ops_tie_keep(&s->ops, &s->tie, &tie_ms);
        wait_ms = tie_ms < wait_ms ? tie_ms : wait_ms;
        fds[2].fd = ops_tie_fd(&s->tie);
    }
    if (flush(s, err) < 0)
        return -1;
    if (poll(fds, ARRAY_LEN(fds), waiting ? 0 : (int) wait_ms) < 0 && errno != EINTR)
        return err_sys(err, errno, "wait for the command");
    if (pending && exec_flush(&s->run.exec, err) < 0)
        s->run.exec.stream.out_have = s->run.exec.stream.out_sent = 0;
    if (full && fds[1].revents)
        return err_set(err, ERR_UNAVAILABLE, "the client went away");
    return !full && (fds[1].revents || waiting) ? read_input(s, err) : 0;
}

static int talk(struct session *s, struct err *err)
{
    int r = show(s, err);

    s->heard_ms = s->pinged_ms = io_now_ms();
    while (r == 0 && !s->over) {
        r = step(s, err);
        if (r == 0)
            r = take_input(s, err);
        if (r == 0)
            r = show(s, err);
        if (r == 0)
            r = keep_alive(s, err);
    }
    return r;
}

/* A client that is still sending its order would get a reset, which can overtake the refusal. */
static void drop_order(struct session *s)
{
    uint64_t until = io_now_ms() + DROP_MS;
    struct err ignored;

    while (io_now_ms() < until &&
           conn_read(exchange_conn(s->x), s->in, sizeof s->in, DROP_IDLE, &ignored) > 0)
        ;
}

/* What the session made ends behind the answer; with "wait", before its last byte. */
static void end(struct session *s, int result, const struct err *why)
{
    struct err ignored;

    if (result < 0)
        (void) put_error(s, why, &ignored);
    if (!s->wait)
        (void) put_close(s, WS_CODE_NORMAL, "", &ignored);
    (void) flush(s, &ignored);
    if (!s->wait)
        conn_end(exchange_conn(s->x));
    if (!s->ordered)
        drop_order(s);
    if (s->running)
        ops_run_close(&s->run);
    if (s->tied)
        ops_untie(&s->ops, &s->tie);
    if (s->wait) {
        (void) put_close(s, WS_CODE_NORMAL, "", &ignored);
        (void) flush(s, &ignored);
    }
}

int v1_session(struct exchange *x, struct err *err)
{
    auto_free struct session *s = malloc(sizeof *s);
    struct err why;
    int r;

    if (!s)
        return err_set(err, ERR_NO_MEMORY, "no memory for a session");
    memset(s, 0, offsetof(struct session, in));
    s->have = s->used = s->text_len = s->out_len = 0;
    s->text = NULL;
    s->text_max = ORDER_MAX;
    s->x = x;
    s->ops = ops_of(exchange_caller(x));
    s->run = OPS_RUN_NONE;
    s->tie = OPS_TIE_NONE;
    if (exchange_upgrade_check(x, err) < 0 || quota_stream_begin(exchange_caller(x), err) < 0)
        return -1;
    r = exchange_upgrade(x, err);
    if (r == 0) {
        ws_reader_init(&s->reader, UINT64_MAX);
        r = begin(s, &why);
        if (r == 0)
            r = talk(s, &why);
        end(s, r, &why);
        r = 0;
    }
    free(s->text);
    quota_stream_end(exchange_caller(x));
    return r;
}
