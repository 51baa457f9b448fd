#include "remote/talk.h"

#include "base/own.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define SESSION      "/v1/session"
#define HEAD_MAX_OUT 16384

/* Masks keep bytes of a page from looking like HTTP to a proxy. They need not be secret. */
static void next_mask(struct talk *t, uint8_t ret[4])
{
    t->mask = t->mask * 1664525u + 1013904223u;
    memcpy(ret, &t->mask, 4);
}

static int check_accept(const struct talk *t, const char *key, struct err *err)
{
    char accept[WS_ACCEPT_SIZE], got[64];

    ws_accept(slice_of(key), accept);
    if (!call_header(&t->call, "Sec-WebSocket-Accept", got, sizeof got) || strcmp(got, accept) != 0)
        return err_set(err, ERR_PROTOCOL, "the server does not speak WebSocket as it should");
    return 0;
}

/* Head and order in one go: the server begins with both. order: NULL for none. */
static int send_order(struct talk *t, const struct remote *remote, const char *path,
                      const char *key, char *order, struct err *err)
{
    char extra[160], head[HEAD_MAX_OUT], frame[WS_CLIENT_HEAD_MAX];
    struct call_request request = { .method = "GET", .path = path, .extra = extra };
    uint8_t mask[4];
    struct iovec parts[3] = { 0 };
    size_t len = order ? strlen(order) : 0, total;
    ssize_t n = 0;

    (void) snprintf(extra, sizeof extra,
                    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: %s\r\n",
                    key);
    parts[0] = (struct iovec){ head, call_head(remote, &request, head, sizeof head) };
    if (order) {
        next_mask(t, mask);
        parts[1] = (struct iovec){ frame, ws_client_put(frame, WS_TEXT, len, mask) };
        parts[2] = (struct iovec){ order, len };
        ws_unmask(order, len, mask, 0);
    }
    if (parts[0].iov_len == 0)
        return err_set(err, ERR_TOO_BIG, "the request is too long");
    total = parts[0].iov_len + parts[1].iov_len + len;
    for (int i = 0; i < 3 && total > 0;) {
        struct msghdr message = { .msg_iov = parts + i, .msg_iovlen = (size_t) (3 - i) };

        n = sendmsg(t->call.fd, &message, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EPIPE || errno == ECONNRESET
                       ? 0 /* its answer says why */
                       : err_sys(err, errno, "send to the server");
        total -= (size_t) n;
        for (; i < 3 && n >= (ssize_t) parts[i].iov_len; i++)
            n -= (ssize_t) parts[i].iov_len;
        if (i < 3) {
            parts[i].iov_base = (char *) parts[i].iov_base + n;
            parts[i].iov_len -= (size_t) n;
        }
    }
    return 0;
}

static int begin(struct talk *t, const struct remote *remote, const char *path, char *order,
                 struct err *err)
{
    char key[WS_CLIENT_KEY_SIZE];
    uint8_t random[20];

    if (getrandom(random, sizeof random, 0) != (ssize_t) sizeof random)
        return err_sys(err, errno, "random bytes");
    memcpy(&t->mask, random + 16, 4);
    ws_client_key(random, key);
    t->call.buf = malloc(CALL_BUFFER);
    if (!t->call.buf)
        return err_set(err, ERR_NO_MEMORY, "no memory for a session");
    if (remote_dial(remote, &t->call.fd, err) < 0 ||
        send_order(t, remote, path, key, order, err) < 0 || call_answer(&t->call, err) < 0)
        return -1;
    if (t->call.status != 101)
        return ask_check(&t->call, err) < 0
                   ? -1
                   : err_set(err, ERR_PROTOCOL, "the server answered a WebSocket with status %d",
                             t->call.status);
    return check_accept(t, key, err);
}

static void clear(struct talk *t, bool raw)
{
    memset(t, 0, offsetof(struct talk, out));
    t->out_at = t->out_len = 0;
    t->call = CALL_NONE;
    t->raw = raw;
}

int talk_open(struct talk *t, const struct remote *remote, json_t *take_order, struct err *err)
{
    auto_free char *order = json_dumps(take_order, JSON_COMPACT);

    json_decref(take_order);
    clear(t, false);
    if (!order)
        return err_set(err, ERR_NO_MEMORY, "no memory for the request");
    if (begin(t, remote, SESSION, order, err) == 0)
        return 0;
    talk_close(t);
    return -1;
}

int talk_tunnel(struct talk *t, const struct remote *remote, const char *path, struct err *err)
{
    clear(t, true);
    if (begin(t, remote, path, NULL, err) == 0)
        return 0;
    talk_close(t);
    return -1;
}

void talk_close(struct talk *t)
{
    call_close(&t->call);
}

int talk_fd(const struct talk *t)
{
    return t->call.fd;
}

/* ---- in ---- */

/* 1: there is more, 0: not yet, -1. */
static int receive(struct talk *t, struct err *err)
{
    struct call *c = &t->call;
    ssize_t n;

    if (c->at > 0) {
        memmove(c->buf, c->buf + c->at, c->have - c->at);
        c->have -= c->at;
        c->at = 0;
    }
    if (c->have == CALL_BUFFER)
        return err_set(err, ERR_PROTOCOL, "the server sent a message that is too long");
    do {
        n = recv(c->fd, c->buf + c->have, CALL_BUFFER - c->have, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        return err_set(err, ERR_UNAVAILABLE, "the server closed the connection");
    c->have += (size_t) n;
    return 1;
}

static int begin_frame(struct talk *t, struct err *err)
{
    struct call *c = &t->call;
    int n = ws_client_decode((const uint8_t *) c->buf + c->at, c->have - c->at, &t->frame, err);

    if (n <= 0)
        return n;
    if (!t->frame.fin || t->frame.op == WS_CONTINUE)
        return err_set(err, ERR_PROTOCOL, "the server sent a message in pieces");
    if (t->frame.op != WS_BINARY && t->frame.len > CALL_BUFFER / 2)
        return err_set(err, ERR_PROTOCOL, "the server sent a message that is too long");
    if (t->frame.op == WS_BINARY && t->frame.len == 0 && !t->raw)
        return err_set(err, ERR_PROTOCOL, "the server sent output without saying of which stream");
    c->at += (size_t) n;
    t->in_frame = true;
    t->left = t->frame.len;
    t->stream = t->raw;
    return 1;
}

static bool queue(struct talk *t, enum ws_op op, const void *data, size_t len)
{
    uint8_t mask[4];
    size_t head;

    if (t->out_at < t->out_len || len > TALK_PIECE)
        return false;
    next_mask(t, mask);
    head = ws_client_put(t->out, op, len, mask);
    memcpy(t->out + head, data, len);
    ws_unmask(t->out + head, len, mask, 0);
    t->out_at = 0;
    t->out_len = head + len;
    return true;
}

/* 1: an event, 0: continue. */
static int take_control(struct talk *t, const char *data, size_t len, struct talk_event *ret,
                        struct err *err)
{
    if (t->frame.op == WS_TEXT) {
        json_t *json = json_loadb(data, len, 0, NULL);

        if (!json_is_object(json)) {
            json_decref(json);
            return err_set(err, ERR_PROTOCOL, "the server sent a message that is not an object");
        }
        *ret = (struct talk_event){ .type = TALK_TEXT, .json = json };
        return 1;
    }
    if (t->frame.op == WS_PING) /* while input waits, the input says that we are here */
        (void) queue(t, WS_PONG, data, len);
    if (t->frame.op != WS_CLOSE)
        return 0;
    t->closed = true;
    *ret = (struct talk_event){ .type = TALK_CLOSED };
    return 1;
}

static int take_output(struct talk *t, struct talk_event *ret, struct err *err)
{
    struct call *c = &t->call;
    size_t here = c->have - c->at;

    if (!t->stream) {
        t->stream = (uint8_t) c->buf[c->at++];
        t->left--;
        here--;
    }
    if (t->stream != 1 && t->stream != 2)
        return err_set(err, ERR_PROTOCOL, "the server sent output of an unknown stream");
    *ret = (struct talk_event){ .type = t->stream == 1 ? TALK_STDOUT : TALK_STDERR,
                                .data = c->buf + c->at,
                                .len = here < t->left ? here : (size_t) t->left };
    c->at += ret->len;
    t->left -= ret->len;
    t->in_frame = t->left > 0;
    return ret->len > 0;
}

/* What is here already: 1 with an event, 0: continue, 2: more bytes are needed. */
static int step(struct talk *t, struct talk_event *ret, struct err *err)
{
    struct call *c = &t->call;
    size_t here;
    int r;

    if (!t->in_frame) {
        r = begin_frame(t, err);
        if (r <= 0)
            return r < 0 ? -1 : 2;
    }
    here = c->have - c->at;
    t->in_frame = t->frame.op != WS_BINARY || t->left > 0;
    if (t->frame.op == WS_BINARY)
        return t->left == 0 ? 0 : here == 0 ? 2 : take_output(t, ret, err);
    if (here < t->frame.len)
        return 2;
    c->at += (size_t) t->frame.len;
    t->in_frame = false;
    return take_control(t, c->buf + c->at - t->frame.len, (size_t) t->frame.len, ret, err);
}

int talk_next(struct talk *t, struct talk_event *ret, struct err *err)
{
    while (!t->closed) {
        int r = step(t, ret, err);

        if (r == 2) {
            r = receive(t, err);
            if (r <= 0)
                return r;
        } else if (r != 0) {
            return r;
        }
    }
    *ret = (struct talk_event){ .type = TALK_CLOSED };
    return 1;
}

/* ---- out ---- */

bool talk_stdin(struct talk *t, const void *data, size_t len)
{
    return queue(t, WS_BINARY, data, len);
}

bool talk_stdin_end(struct talk *t)
{
    static const char text[] = "{\"type\":\"stdin_end\"}";

    return queue(t, WS_TEXT, text, sizeof text - 1);
}

bool talk_end(struct talk *t)
{
    static const char text[] = "{\"type\":\"end\"}";

    return queue(t, WS_TEXT, text, sizeof text - 1);
}

bool talk_resize(struct talk *t, unsigned rows, unsigned columns)
{
    char text[80];
    int n = snprintf(text, sizeof text, "{\"type\":\"resize\",\"rows\":%u,\"columns\":%u}", rows,
                     columns);

    return queue(t, WS_TEXT, text, (size_t) n);
}

bool talk_pending(const struct talk *t)
{
    return t->out_at < t->out_len;
}

int talk_flush(struct talk *t, struct err *err)
{
    while (t->out_at < t->out_len) {
        ssize_t n = send(t->call.fd, t->out + t->out_at, t->out_len - t->out_at,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0)
            return err_sys(err, errno, "send to the server");
        t->out_at += (size_t) n;
    }
    return 0;
}
