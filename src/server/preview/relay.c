/* One thread, two descriptors, no waiting but in relay_wait: each turn of the loop moves what can be moved, in both
 * directions, and only when nothing did is there a poll. So bytes that TLS has decrypted and no poll would show are never
 * left behind.
 *
 * Memory is that of struct relay, whatever the size of request and answer: the port is read only when all that came
 * before was taken by the client, the client only when all was taken by the port. */
#include "server/preview/relay_own.h"

#include "base/io.h"
#include "base/own.h"
#include "server/guard/audit.h"
#include "server/guard/quota.h"
#include "server/ops/ops.h"
#include "server/preview/slots.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#define HEAD_MS      60000 /* an answer's head, from its first byte to its last */
#define INTERIM_MAX  16    /* 1xx before an answer */
#define CROWDED_MS   1000  /* patience with a client while too many stand still; see conn.h */
#define WAIT_MOST_MS 5000  /* before it is looked at again how many do */

/* ---- towards the sandbox ---- */

int relay_send_up(struct relay *r)
{
    ssize_t n;

    if (r->up_len == 0)
        return 0;
    n = send(r->fd, r->up + r->up_at, r->up_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0) { /* it does not read on; it may have answered */
        r->up_over = true;
        r->up_len = 0;
        return 1;
    }
    r->up_at += (size_t) n;
    r->up_len -= (size_t) n;
    return 1;
}

/* A piece of the body, framed as the client framed it. */
static int read_body(struct relay *r, struct err *err)
{
    bool chunked = r->x->head.body == HEAD_CHUNKED;
    size_t room = sizeof r->up - CHUNK_HEAD_MAX - RELAY_TAIL;
    char *at = r->up + CHUNK_HEAD_MAX, head[CHUNK_HEAD_MAX];
    ssize_t n = exchange_read(r->x, at, room, err);

    if (n < 0)
        return err->kind == ERR_TIMEOUT ? 0 : -1;
    r->up_at = CHUNK_HEAD_MAX;
    r->up_len = (size_t) n;
    if (chunked && n > 0) {
        size_t len = chunk_head(head, (uint64_t) n);

        r->up_at -= len;
        memcpy(r->up + r->up_at, head, len);
        memcpy(at + n, CHUNK_TAIL, sizeof CHUNK_TAIL - 1);
        r->up_len += len + sizeof CHUNK_TAIL - 1;
    }
    if (n > 0)
        return 1;
    r->body_over = true;
    if (chunked) {
        memcpy(at, CHUNK_LAST, sizeof CHUNK_LAST - 1);
        r->up_len = sizeof CHUNK_LAST - 1;
    }
    return 1;
}

static int move_up(struct relay *r, struct err *err)
{
    if (r->up_over)
        return 0;
    if (r->up_len > 0)
        return relay_send_up(r);
    if (!r->body_over)
        return read_body(r, err);
    r->up_over = true;
    return 0;
}

/* ---- towards the client ---- */

int relay_send_down(struct relay *r, struct err *err)
{
    bool head = r->head_len > 0;
    ssize_t n = head ? conn_send(r->x->conn, r->head + r->head_at, r->head_len)
                     : conn_send(r->x->conn, r->out, r->out_len);

    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n < 0)
        return err_sys(err, errno, "write to the client");
    r->x->sent += (uint64_t) n;
    if (head) {
        r->head_at += (size_t) n;
        r->head_len -= (size_t) n;
    } else {
        r->out += n;
        r->out_len -= (size_t) n;
    }
    return 1;
}

/* What was decoded, framed for the client; with its end, if this was the last. */
static void put_out(struct relay *r, char *at, size_t len)
{
    char head[CHUNK_HEAD_MAX];
    char *end = at + len;

    if (r->x->chunked && len > 0) {
        size_t head_len = chunk_head(head, len);

        at -= head_len;
        memcpy(at, head, head_len);
        memcpy(end, CHUNK_TAIL, sizeof CHUNK_TAIL - 1);
        end += sizeof CHUNK_TAIL - 1;
    }
    if (r->x->chunked && r->down_over) {
        memcpy(end, CHUNK_LAST, sizeof CHUNK_LAST - 1);
        end += sizeof CHUNK_LAST - 1;
    }
    r->out = at;
    r->out_len = (size_t) (end - at);
    /* A short answer leaves in one piece with its head. */
    if (r->head_len > 0 && r->out_len <= sizeof r->head - r->head_at - r->head_len) {
        memcpy(r->head + r->head_at + r->head_len, r->out, r->out_len);
        r->head_len += r->out_len;
        r->out_len = 0;
    }
}

/* Decodes in place: what is decoded is never longer. */
static int take_chunks(struct relay *r, char *at, size_t len, size_t *ret_len, struct err *err)
{
    size_t done = 0, made = 0;

    while (done < len && !chunk_done(&r->chunk)) {
        struct slice data;
        size_t used = 0;
        int rc = chunk_read(&r->chunk, at + done, len - done, &used, &data, err);

        if (rc < 0) {
            err->kind = ERR_PROTOCOL;
            return err_wrap(err, "the answer's body");
        }
        if (rc == 1) {
            memmove(at + made, data.at, data.len);
            made += data.len;
        }
        done += used;
    }
    r->down_over = chunk_done(&r->chunk);
    *ret_len = made;
    return 0;
}

static int take_body(struct relay *r, char *at, size_t len, struct err *err)
{
    if (r->x->head.method == METHOD_HEAD || r->reply.body == REPLY_NO_BODY) {
        r->down_over = true;
        len = 0;
    } else if (r->reply.body == REPLY_LENGTH) {
        len = len < r->left ? len : (size_t) r->left; /* what is behind is dropped */
        r->left -= len;
        r->down_over = r->left == 0;
    } else if (r->reply.body == REPLY_CHUNKED && take_chunks(r, at, len, &len, err) < 0) {
        return -1;
    }
    put_out(r, at, len);
    return 0;
}

static int on_switch(struct relay *r, char *rest, size_t len, struct err *err)
{
    const struct head *head = &r->x->head;

    if (!head->upgrade || head->body != HEAD_NO_BODY || !r->reply.upgrade ||
        reply_get(&r->reply, "Upgrade").len == 0)
        return err_set(err, ERR_PROTOCOL,
                       "the answer switches to a protocol that was not asked for");
    if (relay_interim_head(r, err) < 0)
        return -1;
    r->switched = true;
    r->x->begun = r->x->close = true;
    r->x->status = 101;
    r->out = rest;
    r->out_len = len;
    audit_note(exchange_caller(r->x), "port.upgrade", r->ask->sandbox, NULL);
    return 0;
}

/* 100 only for those who wait for it: others take it for the answer. */
static int on_interim(struct relay *r, size_t rest, struct err *err)
{
    const struct head *head = &r->x->head;

    if (++r->interim > INTERIM_MAX)
        return err_set(err, ERR_PROTOCOL, "more than %d answers come before the answer",
                       INTERIM_MAX);
    if (head->minor == 1 && (r->reply.status != 100 || (head->expect_continue && !r->told_go)) &&
        relay_interim_head(r, err) < 0)
        return -1;
    r->told_go |= r->reply.status == 100;
    memmove(relay_base(r), relay_base(r) + r->reply.len, rest);
    r->in_len = rest;
    r->in_unread = rest > 0;
    r->head_ms = io_now_ms();
    reply_init(&r->reply);
    return 0;
}

static int on_answer(struct relay *r, struct err *err)
{
    size_t rest = r->in_len - r->reply.len;
    char *behind = relay_base(r) + r->reply.len;

    if (r->reply.status == 101)
        return on_switch(r, behind, rest, err);
    if (r->reply.status < 200)
        return on_interim(r, rest, err);
    if (relay_answer_head(r, err) < 0)
        return -1;
    r->left = r->reply.content_length;
    if (take_body(r, behind, rest, err) < 0)
        return -1; /* nothing of it was sent: it can still be refused */
    r->answered = r->x->begun = true;
    r->x->status = r->reply.status;
    return 0;
}

static ssize_t read_port(struct relay *r, char *at, size_t size, struct err *err)
{
    ssize_t n = recv(r->fd, at, size, MSG_DONTWAIT);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return err_set(err, ERR_PROTOCOL, "the server in the sandbox cut the connection");
    return n;
}

static int read_head(struct relay *r, struct err *err)
{
    ssize_t n = 0;
    int rc;

    if (!r->in_unread) {
        errno = 0;
        n = read_port(r, relay_base(r) + r->in_len, RELAY_PIECE - r->in_len, err);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        if (n == 0)
            return err_set(err, ERR_PROTOCOL, "the server in the sandbox closed without an answer");
        if (r->in_len == 0)
            r->head_ms = io_now_ms();
        r->in_len += (size_t) n;
    }
    r->in_unread = false;
    rc = reply_feed(&r->reply, relay_base(r), r->in_len, err);
    if (rc == 0)
        return 1;
    return rc < 0 || on_answer(r, err) < 0 ? -1 : 1;
}

/* An answer without a length ends with its connection, and so does one whose sandbox was killed. */
static int on_port_end(struct relay *r, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(r->x));
    struct ops_sandbox sandbox;

    if (r->reply.body != REPLY_TO_END)
        return err_set(err, ERR_PROTOCOL, "the answer ended early");
    if (ops_sandbox_get(&ops, r->ask->sandbox, &sandbox, err) < 0)
        return -1;
    if (sandbox.life != LIFE_RUNNING)
        return err_set(err, ERR_NO_SANDBOX, "the sandbox was ended");
    r->down_over = true;
    put_out(r, relay_base(r), 0);
    return 1;
}

static int move_down(struct relay *r, struct err *err)
{
    ssize_t n;

    if (r->head_len > 0 || r->out_len > 0)
        return relay_send_down(r, err);
    if (r->down_over)
        return 0;
    if (!r->answered)
        return read_head(r, err);
    errno = 0;
    n = read_port(r, relay_base(r), RELAY_PIECE, err);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0)
        return on_port_end(r, err);
    return take_body(r, relay_base(r), (size_t) n, err) < 0 ? -1 : 1;
}

/* ---- waiting ---- */

static bool pending_down(const struct relay *r)
{
    return r->head_len > 0 || r->out_len > 0;
}

/* The client stood still, or neither side sends anything. */
static int check_time(const struct relay *r, uint64_t now, int *ret_wait, struct err *err)
{
    const struct config *config = app_config(r->x->app);
    uint64_t most = config->relay_idle_ms, since = r->moved_ms;

    struct conn_waits *waits = r->x->conn->waits;
    bool sends = !r->body_over && !r->up_over && r->up_len == 0 && !r->answered;

    if ((pending_down(r) || sends) && config->body_stall_ms < most)
        most = config->body_stall_ms;
    if (pending_down(r) && atomic_load(&waits->now) > atomic_load(&waits->most) &&
        most > CROWDED_MS)
        most = CROWDED_MS;
    if (!r->answered && !r->switched && r->in_len > 0 && !pending_down(r) && HEAD_MS < most) {
        most = HEAD_MS;
        since = r->head_ms;
    }
    if (r->x->caller.visitor && !r->answered && !r->switched && config->visitor_ms < most)
        most = config->visitor_ms;
    if (now - since < most) {
        uint64_t left = since + most - now;

        *ret_wait = left > WAIT_MOST_MS ? WAIT_MOST_MS : (int) left;
        return 0;
    }
    return err_set(err, ERR_TIMEOUT, "%s",
                   pending_down(r) || sends ? "the client stood still"
                                            : "the server in the sandbox did not answer in time");
}

/* Readable, and nothing is wanted of it: its end, or the next request. */
static int check_gone(struct relay *r, short events, struct err *err)
{
    if (!(events & (POLLRDHUP | POLLHUP | POLLERR)))
        return 0;
    if (r->x->conn->tls || (events & (POLLHUP | POLLERR)) || exchange_gone(r->x))
        return err_set(err, ERR_UNAVAILABLE, "the client went away");
    r->deaf = true;
    return 0;
}

int relay_wait(struct relay *r, short port_events, short client_events, struct err *err)
{
    bool reads = client_events & POLLIN;
    struct pollfd fds[] = {
        { .fd = port_events ? r->fd : -1, .events = port_events },
        { .fd = r->x->conn->fd, .events = client_events },
    };
    struct conn_waits *waits = r->x->conn->waits;
    int wait = 0, rc;

    if (!reads && !r->deaf && !r->switched)
        fds[1].events |= POLLRDHUP;
    else if (!client_events && r->deaf)
        fds[1].fd = -1;
    if (check_time(r, io_now_ms(), &wait, err) < 0)
        return -1;
    atomic_fetch_add(&waits->now, 1);
    rc = poll(fds, ARRAY_LEN(fds), wait);
    atomic_fetch_sub(&waits->now, 1);
    if (rc < 0 && errno != EINTR)
        return err_sys(err, errno, "wait for a port");
    /* Where something is wanted of it, reading or writing tells. */
    if (!client_events && (fds[1].revents & (POLLHUP | POLLERR)))
        return err_set(err, ERR_UNAVAILABLE, "the client went away");
    return reads || r->switched ? 0 : check_gone(r, fds[1].revents, err);
}

static int wait_for_more(struct relay *r, struct err *err)
{
    const struct conn *conn = r->x->conn;
    short port = 0, client = 0;

    if (r->up_len > 0)
        port |= POLLOUT;
    if (pending_down(r))
        client |= conn->write_wants;
    else if (!r->down_over)
        port |= POLLIN;
    if (r->up_len == 0 && !r->body_over && !r->up_over)
        client |= conn->read_wants;
    return relay_wait(r, port, client, err);
}

static int talk(struct relay *r, struct err *err)
{
    while (!r->switched && (!r->down_over || pending_down(r))) {
        int up = move_up(r, err), down = up < 0 ? -1 : move_down(r, err);

        if (up < 0 || down < 0)
            return -1;
        if (up + down > 0)
            r->moved_ms = io_now_ms();
        else if (wait_for_more(r, err) < 0)
            return -1;
    }
    return r->switched ? relay_pipe(r, err) : 0;
}

/* ---- beginning and end ---- */

/* Where the end of the connection is the end of the answer, only a reset says that this is not it. */
static void cut(const struct exchange *x, const struct reply *reply)
{
    struct linger now = { .l_onoff = 1 };

    if (x->begun && !x->chunked &&
        (reply->body == REPLY_TO_END || reply->body == REPLY_CHUNKED || reply->status == 101))
        (void) setsockopt(x->conn->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static int relay_over(struct relay *r, struct err *err)
{
    struct exchange *x = r->x;
    int rc;

    r->moved_ms = io_now_ms();
    r->body_over = x->head.body == HEAD_NO_BODY;
    reply_init(&r->reply);
    if (relay_request_head(r, err) < 0)
        return -1;
    /* Whether the client is to send its body is for the server inside to say. */
    x->continued = x->eager = true;
    rc = talk(r, err);
    x->eager = false;
    x->continued = r->told_go || x->body_read > 0;
    if (rc == 0)
        x->ended = true;
    else
        cut(x, &r->reply);
    return rc;
}

int relay_exchange(struct exchange *x, const struct relay_ask *ask, struct err *err)
{
    auto_free struct relay *r = malloc(sizeof *r);
    auto_close int fd = -1;
    struct ops ops = ops_of(exchange_caller(x));
    int rc;

    if (!r)
        return err_set(err, ERR_NO_MEMORY, "no memory for a relay");
    memset(r, 0, offsetof(struct relay, up));
    if (slots_take(x, ask->sandbox, err) < 0)
        return -1;
    if (quota_stream_begin(exchange_caller(x), err) < 0) {
        slots_give(x, ask->sandbox);
        return -1;
    }
    rc = ops_port_dial(&ops, ask->sandbox, ask->port, &fd, err);
    if (rc == 0) {
        r->x = x;
        r->ask = ask;
        r->fd = fd;
        rc = relay_over(r, err);
    }
    quota_stream_end(exchange_caller(x));
    slots_give(x, ask->sandbox);
    return rc;
}
