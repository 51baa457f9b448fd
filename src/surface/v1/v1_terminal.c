/* GET …/terminal: a pty over WebSocket. Binary messages are bytes of the terminal, both ways; text messages are JSON
 * about it. The shell does not end with the connection: a client attaches again with ?proc= and ?from=.
 *
 * One loop, three waits: the client has typed, the agent has shown, the agent has room for more. What was typed
 * is read only while there is room for it, so a program that does not read stops its own client. */
#include "surface/v1/v1.h"

#include "base/io.h"
#include "base/own.h"
#include "http/ws.h"
#include "server/guard/quota.h"
#include "server/serve/conn.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define TYPED_MAX   16384 /* read at once */
#define MESSAGE_MAX (1024 * 1024)
#define CONTROL_MAX 512 /* of a text message */
#define STALL_MS    60000
#define PING_MS     20000
#define SILENCE_MS  60000 /* no byte of the client's, not even a pong */

struct terminal {
    struct exchange *x;
    struct ops ops;
    struct ops_run run;
    struct ws_reader reader;
    char typed[TYPED_MAX];
    size_t have, used; /* of typed */
    char control[CONTROL_MAX];
    size_t control_len;
    uint64_t heard_ms, pinged_ms;
    bool over;
};

static int send_frame(struct terminal *t, enum ws_op op, const void *data, size_t len,
                      struct err *err)
{
    char head[WS_OUT_HEAD_MAX];
    struct conn *conn = exchange_conn(t->x);

    if (conn_write(conn, head, ws_frame_put(head, op, true, len), STALL_MS, err) < 0)
        return -1;
    return conn_write(conn, data, len, STALL_MS, err);
}

static int send_json(struct terminal *t, json_t *json, struct err *err)
{
    auto_free char *text = json_dumps(json, JSON_COMPACT);

    json_decref(json);
    return text ? send_frame(t, WS_TEXT, text, strlen(text), err)
                : err_set(err, ERR_NO_MEMORY, "no memory for a message");
}

static int send_close(struct terminal *t, unsigned code, const char *reason, struct err *err)
{
    char frame[WS_CLOSE_FRAME_MAX];

    t->over = true;
    return conn_write(exchange_conn(t->x), frame, ws_close_put(frame, code, reason), STALL_MS, err);
}

/* ---- from the client ---- */

static int resize(struct terminal *t, struct err *err)
{
    json_t *json = json_loadb(t->control, t->control_len, JSON_REJECT_DUPLICATES, NULL);
    const char *type = json_string_value(json_object_get(json, "type"));
    json_int_t rows = json_integer_value(json_object_get(json, "rows"));
    json_int_t columns = json_integer_value(json_object_get(json, "columns"));
    bool good = type && strcmp(type, "resize") == 0 && rows > 0 && rows < 10000 && columns > 0 &&
                columns < 10000;

    json_decref(json);
    t->control_len = 0;
    if (!good)
        return send_close(t, WS_CODE_POLICY,
                          "a text message is {\"type\":\"resize\",\"rows\":R,\"columns\":C}", err);
    (void) exec_resize(&t->run.exec, (uint16_t) rows, (uint16_t) columns);
    return 0;
}

static int take_event(struct terminal *t, const struct ws_event *event, struct err *err)
{
    switch (event->op) {
    case WS_BINARY:
        if (event->data.len > 0)
            (void) exec_stdin(&t->run.exec, event->data.at, (uint32_t) event->data.len);
        return 0;
    case WS_TEXT:
        if (t->control_len + event->data.len > sizeof t->control)
            return send_close(t, WS_CODE_TOO_BIG, "the text message is too long", err);
        memcpy(t->control + t->control_len, event->data.at, event->data.len);
        t->control_len += event->data.len;
        return event->last ? resize(t, err) : 0;
    case WS_PING:
        return send_frame(t, WS_PONG, event->data.at, event->data.len, err);
    case WS_CLOSE:
        return send_close(t, event->code == WS_CODE_NONE ? WS_CODE_NORMAL : event->code, "", err);
    case WS_PONG:
    case WS_CONTINUE:
        break;
    }
    return 0;
}

/* What was read, as far as there is room for it on the way to the agent. */
static int take_typed(struct terminal *t, struct err *err)
{
    while (t->used < t->have && !t->over && !stream_pending(&t->run.exec.stream)) {
        struct ws_event event;
        size_t used = 0;
        int r = ws_read(&t->reader, t->typed + t->used, t->have - t->used, &used, &event, err);

        t->used += used;
        if (r < 0) {
            char why[ERR_MSG_MAX];

            (void) snprintf(why, sizeof why, "%s", err->msg);
            return send_close(t, t->reader.close_code, why, err);
        }
        if (r == 1 && take_event(t, &event, err) < 0)
            return -1;
        if (exec_flush(&t->run.exec, err) < 0)
            t->run.exec.stream.out_have = t->run.exec.stream.out_sent = 0; /* its end follows */
    }
    return 0;
}

static int read_typed(struct terminal *t, struct err *err)
{
    struct conn *conn = exchange_conn(t->x);
    ssize_t n;

    if (t->used < t->have)
        return 0;
    t->used = t->have = 0;
    if (conn->have > 0) /* behind the head of the request */
        n = conn_read(conn, t->typed, sizeof t->typed, STALL_MS, err);
    else
        n = conn_recv(conn, t->typed, sizeof t->typed);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        return err_set(err, ERR_UNAVAILABLE, "the client went away");
    t->have = (size_t) n;
    t->heard_ms = io_now_ms();
    return 0;
}

/* ---- from the agent ---- */

static int show(struct terminal *t, struct err *err)
{
    struct exec_event event;
    int r;

    while (!t->over && (r = ops_run_poll(&t->ops, &t->run, &event, err)) != 0) {
        json_t *json;

        if (r < 0)
            return -1;
        if (event.type != EXEC_END) {
            if (send_frame(t, WS_BINARY, event.data, event.len, err) < 0)
                return -1;
            continue;
        }
        json = v1_result_json(&event.result);
        (void) json_object_set_new(json, "type", json_string("end"));
        if (send_json(t, json, err) < 0)
            return -1;
        return send_close(t, WS_CODE_NORMAL, "the process has ended", err);
    }
    return 0;
}

static int keep_alive(struct terminal *t, struct err *err)
{
    uint64_t now = io_now_ms();

    if (now - t->heard_ms > SILENCE_MS)
        return err_set(err, ERR_TIMEOUT, "the client does not answer");
    if (now - t->heard_ms < PING_MS || now - t->pinged_ms < PING_MS)
        return 0;
    t->pinged_ms = now;
    return send_frame(t, WS_PING, "", 0, err);
}

static int relay(struct terminal *t, struct err *err)
{
    struct conn *conn = exchange_conn(t->x);

    t->heard_ms = t->pinged_ms = io_now_ms();
    while (!t->over) {
        bool pending = stream_pending(&t->run.exec.stream), full = t->used < t->have;
        /* TLS may hold bytes that no poll shows. */
        bool waiting = conn->have > 0 || (conn->tls && tls_pending(conn->tls));
        struct pollfd fds[] = {
            { .fd = t->run.exec.stream.fd, .events = (short) (POLLIN | (pending ? POLLOUT : 0)) },
            { .fd = conn->fd, .events = full ? POLLRDHUP : POLLIN },
        };

        if (poll(fds, ARRAY_LEN(fds), waiting && !full ? 0 : ops_run_wait(&t->run, PING_MS)) < 0 &&
            errno != EINTR)
            return err_sys(err, errno, "wait for the terminal");
        if (pending && exec_flush(&t->run.exec, err) < 0)
            t->run.exec.stream.out_have = t->run.exec.stream.out_sent = 0;
        if (fds[1].revents || waiting) {
            if (full && fds[1].revents)
                return err_set(err, ERR_UNAVAILABLE, "the client went away");
            if (read_typed(t, err) < 0)
                return -1;
        }
        if (take_typed(t, err) < 0 || show(t, err) < 0 || keep_alive(t, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- beginning ---- */

static int start(struct terminal *t, struct err *err)
{
    static const char *const shell[] = { "/bin/sh", "-c", "exec \"${SHELL:-/bin/sh}\" -l" };
    const char *command = exchange_query(t->x, "command");
    uint64_t rows = 24, columns = 80, proc = 0, from = 0;
    const char *sandbox = exchange_param(t->x, "id");
    struct ops_command c = { .command = command,
                             .cwd = exchange_query(t->x, "cwd"),
                             .user = exchange_query(t->x, "user"),
                             .tag = "terminal",
                             .flags = AGENT_PTY };

    if (query_count(t->x, "rows", 1, 9999, &rows, err) < 0 ||
        query_count(t->x, "columns", 1, 9999, &columns, err) < 0 ||
        query_count(t->x, "proc", 1, UINT32_MAX, &proc, err) < 0 ||
        query_count(t->x, "from", 0, INT64_MAX, &from, err) < 0)
        return -1;
    /* Asked for first: what cannot be is an answer, and not the end of a WebSocket. */
    if (proc > 0 && v1_process_exists(t->x, (uint32_t) proc, err) < 0)
        return -1;
    if (proc > 0)
        return ops_run_attach(&t->ops, sandbox, (uint32_t) proc, from, 0, 0, &t->run, err);
    if (!command) {
        c.args = shell;
        c.arg_count = ARRAY_LEN(shell);
    }
    c.rows = (uint32_t) rows;
    c.columns = (uint32_t) columns;
    return ops_run_start(&t->ops, sandbox, &c, &t->run, err);
}

static int talk(struct terminal *t, struct err *err)
{
    struct err why;
    int r;

    if (exchange_upgrade(t->x, err) < 0)
        return -1;
    ws_reader_init(&t->reader, MESSAGE_MAX);
    r = send_json(
        t, json_pack("{s:s, s:I}", "type", "start", "proc", (json_int_t) t->run.exec.proc), &why);
    if (r == 0)
        r = relay(t, &why);
    if (r < 0 && !t->over)
        (void) send_close(t, why.kind == ERR_TIMEOUT ? WS_CODE_GOING_AWAY : WS_CODE_INTERNAL,
                          why.msg, err);
    return 0;
}

int v1_terminal(struct exchange *x, struct err *err)
{
    auto_free struct terminal *t = calloc(1, sizeof *t);
    int r;

    if (!t)
        return err_set(err, ERR_NO_MEMORY, "no memory for a terminal");
    t->x = x;
    t->ops = ops_of(exchange_caller(x));
    t->run = OPS_RUN_NONE;
    /* Whether it can be one, before anything is started for it. */
    if (exchange_upgrade_check(x, err) < 0 || quota_stream_begin(exchange_caller(x), err) < 0)
        return -1;
    r = start(t, err);
    if (r == 0) {
        exchange_resumable(x);
        r = talk(t, err);
        ops_run_close(&t->run);
    }
    quota_stream_end(exchange_caller(x));
    return r;
}
