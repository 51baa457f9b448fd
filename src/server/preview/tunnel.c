/* One thread, two descriptors, as in relay.c: each turn of the loop moves what can be moved, in both directions, and only when nothing
 * did is there a poll.
 *
 * To the client goes one frame at a time, from `out`. What is to be sent next is decided when the frame before has left
 * (next_frame): an answer to a ping, then bytes of the port, then its end, then the close. So no frame is ever cut in two by another,
 * and no client can make the server keep a queue. */
#include "server/preview/tunnel.h"

#include "base/io.h"
#include "base/own.h"
#include "http/ws.h"
#include "server/guard/audit.h"
#include "server/guard/quota.h"
#include "server/ops/ops.h"
#include "server/preview/slots.h"
#include "server/serve/exchange_own.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define IN_MAX       32768 /* read of the client at once */
#define PIECE        65536 /* of the port, in one frame */
#define CONTROL_MAX  128   /* of a text message of the client's */
#define PING_MS      20000
#define CROWDED_MS   1000 /* patience with a client while too many stand still; see conn.h */
#define CLOSE_MS     5000 /* for the client to take the last frames, and to close */
#define DROP_IDLE_MS 1000

static const char end_text[] = "{\"type\":\"end\"}";

struct tunnel {
    struct exchange *x;
    struct ops ops;
    const char *sandbox;
    int fd; /* the port; MSG_DONTWAIT */

    /* To the port: what is left of `up`, a part of `in`; then the rest of `in`. */
    struct ws_reader reader;
    struct slice up;
    size_t in_at, in_have;
    char control[CONTROL_MAX];
    size_t control_len;
    bool up_over;   /* the client has ended its direction */
    bool deaf_port; /* the port takes no more: what still comes is dropped */
    bool left;      /* the client has hung up, and something of what it sent is on its way */

    /* To the client. */
    size_t out_at, out_len;
    bool out_is_bytes; /* of the port; else a frame of our own, which keeps no idle tunnel open */
    char pong[WS_CONTROL_MAX];
    size_t pong_len;
    bool pong_due, ping_due;
    bool down_over; /* the port has ended its direction */
    bool end_sent;
    unsigned close_code; /* 0: not yet */
    char reason[WS_CONTROL_MAX];
    bool close_sent;

    uint64_t moved_ms; /* the last byte that went on, in either direction */
    uint64_t heard_ms; /* the last byte of the client's */
    uint64_t pinged_ms;

    char in[IN_MAX];
    char out[WS_OUT_HEAD_MAX + PIECE];
};

static void close_with(struct tunnel *t, unsigned code, const char *reason)
{
    if (t->close_code)
        return;
    t->close_code = code;
    t->moved_ms = io_now_ms(); /* the patience with the client begins again */
    (void) snprintf(t->reason, sizeof t->reason, "%s", reason);
}

/* ---- towards the port ---- */

static int take_control(struct tunnel *t, const struct ws_event *event)
{
    static const char says[] = "a text message is {\"type\":\"end\"}";
    json_t *json;
    const char *type;

    if (t->control_len + event->data.len > sizeof t->control) {
        close_with(t, WS_CODE_TOO_BIG, "the text message is too long");
        return 1;
    }
    memcpy(t->control + t->control_len, event->data.at, event->data.len);
    t->control_len += event->data.len;
    if (!event->last)
        return 1;
    json = json_loadb(t->control, t->control_len, JSON_REJECT_DUPLICATES, NULL);
    type = json_string_value(json_object_get(json, "type"));
    if (!type || strcmp(type, "end") != 0)
        close_with(t, WS_CODE_POLICY, says);
    else if (!t->up_over) {
        t->up_over = true;
        (void) shutdown(t->fd, SHUT_WR);
    }
    json_decref(json);
    t->control_len = 0;
    return 1;
}

static int take_event(struct tunnel *t, const struct ws_event *event)
{
    switch (event->op) {
    case WS_BINARY:
        if (t->up_over && event->data.len > 0)
            close_with(t, WS_CODE_POLICY, "bytes came behind the end");
        else if (!t->deaf_port)
            t->up = event->data;
        return 1;
    case WS_TEXT:
        return take_control(t, event);
    case WS_PING: /* of several that were not answered yet, the last counts */
        memcpy(t->pong, event->data.at, event->data.len);
        t->pong_len = event->data.len;
        t->pong_due = true;
        return 1;
    case WS_CLOSE:
        close_with(t, event->code == WS_CODE_NONE ? WS_CODE_NORMAL : event->code, "");
        return 1;
    case WS_PONG:
    case WS_CONTINUE:
        break;
    }
    return 1;
}

static int send_up(struct tunnel *t)
{
    ssize_t n = send(t->fd, t->up.at, t->up.len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0) {
        t->deaf_port = true;
        t->up.len = 0;
        return 1;
    }
    t->up.at += n;
    t->up.len -= (size_t) n;
    t->moved_ms = io_now_ms();
    return 1;
}

static int read_client(struct tunnel *t, struct err *err)
{
    struct conn *conn = t->x->conn;
    ssize_t n = conn->have > 0 ? conn_read(conn, t->in, sizeof t->in, 0, err)
                               : conn_recv(conn, t->in, sizeof t->in);

    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        return err_set(err, ERR_UNAVAILABLE, "the client went away");
    t->in_at = 0;
    t->in_have = (size_t) n;
    t->heard_ms = io_now_ms();
    return 1;
}

/* 1: something moved, 0: nothing, -1. */
static int move_up(struct tunnel *t, struct err *err)
{
    struct ws_event event;
    size_t used = 0;
    int rc;

    if (t->up.len > 0)
        return send_up(t);
    if (t->close_code) /* nothing that comes now counts */
        return t->left ? err_set(err, ERR_UNAVAILABLE, "the client went away") : 0;
    if (t->in_at == t->in_have)
        return read_client(t, err);
    rc = ws_read(&t->reader, t->in + t->in_at, t->in_have - t->in_at, &used, &event, err);
    t->in_at += used;
    if (rc < 0)
        close_with(t, t->reader.close_code, err->msg);
    return rc == 1 ? take_event(t, &event) : 1;
}

/* ---- towards the client ---- */

static void put_frame(struct tunnel *t, enum ws_op op, const void *data, size_t len)
{
    size_t head = ws_frame_put(t->out, op, true, len);

    memcpy(t->out + head, data, len);
    t->out_at = 0;
    t->out_len = head + len;
    t->out_is_bytes = false;
}

/* The port has ended well, or its sandbox has ended, which looks the same from here. */
static int on_port_end(struct tunnel *t, struct err *err)
{
    struct ops_sandbox sandbox;

    if (ops_sandbox_get(&t->ops, t->sandbox, &sandbox, err) < 0)
        return -1;
    if (sandbox.life == LIFE_STOPPING || sandbox.life == LIFE_GONE)
        return err_set(err, ERR_NO_SANDBOX, "the sandbox has ended");
    if (sandbox.life != LIFE_RUNNING)
        return err_set(err, ERR_STATE, "the sandbox was paused");
    t->down_over = true;
    return 1;
}

static int read_port(struct tunnel *t, struct err *err)
{
    char head[WS_OUT_HEAD_MAX];
    size_t head_len;
    ssize_t n = recv(t->fd, t->out + WS_OUT_HEAD_MAX, PIECE, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return on_port_end(t, err);
    head_len = ws_frame_put(head, WS_BINARY, true, (uint64_t) n);
    t->out_at = WS_OUT_HEAD_MAX - head_len;
    memcpy(t->out + t->out_at, head, head_len);
    t->out_len = head_len + (size_t) n;
    t->out_is_bytes = true;
    return 1;
}

/* `out` is free: what comes next. */
static int next_frame(struct tunnel *t, struct err *err)
{
    if (t->pong_due) {
        put_frame(t, WS_PONG, t->pong, t->pong_len);
        t->pong_due = false;
    } else if (t->ping_due) {
        put_frame(t, WS_PING, "", 0);
        t->ping_due = false;
    } else if (t->close_code) {
        t->out_at = 0;
        t->out_len = ws_close_put(t->out, t->close_code, t->reason);
        t->close_sent = true;
    } else if (!t->down_over) {
        return read_port(t, err);
    } else if (!t->end_sent) {
        put_frame(t, WS_TEXT, end_text, sizeof end_text - 1);
        t->end_sent = true;
    } else if (t->up_over || t->deaf_port) {
        close_with(t, WS_CODE_NORMAL, "");
    } else {
        return 0;
    }
    return 1;
}

static int move_down(struct tunnel *t, struct err *err)
{
    ssize_t n;

    if (t->left)
        return 0; /* it has no reader */
    if (t->out_len == 0)
        return t->close_sent ? 0 : next_frame(t, err);
    n = conn_send(t->x->conn, t->out + t->out_at, t->out_len);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n < 0)
        return err_set(err, ERR_UNAVAILABLE, "the client went away");
    t->x->sent += (uint64_t) n;
    t->out_at += (size_t) n;
    t->out_len -= (size_t) n;
    if (t->out_is_bytes)
        t->moved_ms = io_now_ms();
    return 1;
}

/* ---- waiting ---- */

/* -1: it was long enough. */
static int check_time(struct tunnel *t, uint64_t now, int *ret_wait, struct err *err)
{
    const struct config *config = app_config(t->x->app);
    const struct conn_waits *waits = t->x->conn->waits;
    bool stands = t->out_len > 0 || t->left;
    uint64_t most = config->relay_idle_ms,
             sign_ms = t->heard_ms > t->moved_ms ? t->heard_ms : t->moved_ms;

    if (t->left && config->body_stall_ms < most)
        most = config->body_stall_ms;
    if (t->close_code && !t->end_sent && CLOSE_MS < most)
        most = CLOSE_MS; /* not if the port has ended well: the client may still want its bytes */
    if (stands && most > CROWDED_MS && atomic_load(&waits->now) > atomic_load(&waits->most))
        most = CROWDED_MS;
    if (now - t->moved_ms >= most)
        return err_set(err, ERR_TIMEOUT, "%s",
                       stands ? "the client stood still" : "nothing went through for too long");
    /* A ping keeps what is on the way awake. The answer may be long in coming, from a program that is not reading now. */
    if (now - sign_ms >= PING_MS && now - t->pinged_ms >= PING_MS) {
        t->pinged_ms = now;
        t->ping_due = true;
    }
    most -= now - t->moved_ms;
    *ret_wait = (int) (most < PING_MS / 4 ? most : PING_MS / 4);
    return 0;
}

/* A client that has hung up while the port is slow has what it sent delivered first. */
static int wait_for_more(struct tunnel *t, struct err *err)
{
    struct conn *conn = t->x->conn;
    bool blocked = t->up.len > 0;
    struct pollfd fds[] = { { .fd = t->fd }, { .fd = t->left ? -1 : conn->fd } };
    int wait = 0, rc;

    if (check_time(t, io_now_ms(), &wait, err) < 0)
        return -1;
    if (t->ping_due && t->out_len == 0 && !t->left)
        return 0;
    if (t->out_len > 0)
        fds[1].events |= conn->write_wants;
    else if (!t->down_over && !t->left)
        fds[0].events |= POLLIN;
    if (blocked)
        fds[0].events |= POLLOUT;
    if (!t->close_code) /* else nothing is read any more, and what is there would wake us for nothing */
        fds[1].events |= blocked ? POLLRDHUP : conn->read_wants;
    if (!fds[0].events)
        fds[0].fd = -1; /* a port that has ended would wake us for nothing */
    atomic_fetch_add(&conn->waits->now, 1);
    rc = poll(fds, ARRAY_LEN(fds), wait);
    atomic_fetch_sub(&conn->waits->now, 1);
    if (rc < 0 && errno != EINTR)
        return err_sys(err, errno, "wait for a port");
    t->left |= blocked && (fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR));
    return 0;
}

static int pass(struct tunnel *t, struct err *err)
{
    while (!t->close_sent || t->out_len > 0) {
        int up = move_up(t, err), down = up < 0 ? -1 : move_down(t, err);

        if (up < 0 || down < 0)
            return -1;
        if (up + down == 0 && wait_for_more(t, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- beginning and end ---- */

/* What was on its way to the client goes first, if the client takes it: else the message would be in the middle of a frame. */
static void explain(struct tunnel *t, const struct err *why)
{
    struct conn *conn = t->x->conn;
    auto_free char *text = NULL;
    struct err ignored;
    json_t *json;

    if (why->kind == ERR_UNAVAILABLE || t->left || t->close_code ||
        conn_write(conn, t->out + t->out_at, t->out_len, CLOSE_MS, &ignored) < 0)
        return;
    json = json_pack("{s:s, s:{s:s, s:s}}", "type", "error", "error", "code",
                     err_kind_info(why->kind)->name, "message", why->msg);
    text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text || strlen(text) > PIECE)
        return;
    put_frame(t, WS_TEXT, text, strlen(text));
    t->out_len += ws_close_put(
        t->out + t->out_len, why->kind == ERR_TIMEOUT ? WS_CODE_GOING_AWAY : WS_CODE_INTERNAL, "");
    (void) conn_write(conn, t->out, t->out_len, CLOSE_MS, &ignored);
}

/* Unread bytes would make the close a reset, which can overtake what was sent. */
static void drop_input(struct tunnel *t)
{
    uint64_t until = io_now_ms() + CLOSE_MS;
    struct err ignored;

    conn_end(t->x->conn);
    while (io_now_ms() < until &&
           conn_read(t->x->conn, t->in, sizeof t->in, DROP_IDLE_MS, &ignored) > 0)
        ;
}

static int run(struct tunnel *t, uint16_t port, struct err *err)
{
    auto_close int fd = -1;
    struct err why;

    if (ops_port_dial(&t->ops, t->sandbox, port, &fd, err) < 0 || exchange_upgrade(t->x, err) < 0)
        return -1;
    audit_note(exchange_caller(t->x), "port.tunnel", t->sandbox, NULL);
    t->fd = fd;
    ws_reader_init(&t->reader, UINT64_MAX);
    t->moved_ms = t->heard_ms = t->pinged_ms = io_now_ms();
    if (pass(t, &why) < 0)
        explain(t, &why);
    drop_input(t);
    return 0;
}

int tunnel_exchange(struct exchange *x, const char *sandbox, uint16_t port, struct err *err)
{
    auto_free struct tunnel *t = malloc(sizeof *t);
    struct caller *caller = exchange_caller(x);
    int rc;

    if (!t)
        return err_set(err, ERR_NO_MEMORY, "no memory for a tunnel");
    memset(t, 0, offsetof(struct tunnel, in));
    t->x = x;
    t->ops = ops_of(caller);
    t->sandbox = sandbox;
    if (slots_take(x, sandbox, err) < 0)
        return -1;
    rc = quota_stream_begin(caller, err);
    if (rc == 0) {
        rc = run(t, port, err);
        quota_stream_end(caller);
    }
    slots_give(x, sandbox);
    return rc;
}
