#include "remote/call.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define HEAD_ROOM 16384

size_t call_head(const struct remote *remote, const struct call_request *request, char *out,
                 size_t size)
{
    bool local = remote->kind == REMOTE_LOCAL, six = strchr(remote->host, ':');
    bool body = request->body || request->streams;
    char host[300], length[64] = "", tenant[96] = "";
    int n;

    (void) snprintf(host, sizeof host, six ? "[%s]:%u" : "%s:%u", remote->host, remote->port);
    if (request->streams)
        (void) snprintf(length, sizeof length, "Transfer-Encoding: chunked\r\n");
    else if (body || strcmp(request->method, "GET") != 0)
        (void) snprintf(length, sizeof length, "Content-Length: %zu\r\n", request->body_len);
    if (remote->tenant[0])
        (void) snprintf(tenant, sizeof tenant, "X-Cove-Tenant: %s\r\n", remote->tenant);
    n = snprintf(out, size,
                 "%s %s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: cove/" COVE_VERSION
                 "\r\nAccept: %s\r\n%s%s%s%s%s%s%s%s%s\r\n",
                 request->method, remote->prefix, request->path, local ? "localhost" : host,
                 request->accept ? request->accept : "application/json",
                 body ? "Content-Type: " : "",
                 body ? request->type ? request->type : "application/json" : "", body ? "\r\n" : "",
                 length, remote->key[0] ? "X-API-Key: " : "", remote->key,
                 remote->key[0] ? "\r\n" : "", tenant, request->extra ? request->extra : "");
    return n > 0 && (size_t) n < size ? (size_t) n : 0;
}

/* A server that refuses before it has read all closes; its answer is still to be read. */
static int send_all(struct call *call, const struct iovec *parts, int count, struct err *err)
{
    struct iovec left[4];
    int first = 0;

    memcpy(left, parts, (size_t) count * sizeof *parts);
    while (first < count && !call->dead) {
        struct msghdr message = { .msg_iov = left + first, .msg_iovlen = (size_t) (count - first) };
        ssize_t n = sendmsg(call->fd, &message, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            call->dead = true;
        else if (n < 0)
            return err_sys(err, errno, "send to the server");
        for (; first < count && n >= (ssize_t) left[first].iov_len; first++)
            n -= (ssize_t) left[first].iov_len;
        if (first < count && n > 0) {
            left[first].iov_base = (char *) left[first].iov_base + n;
            left[first].iov_len -= (size_t) n;
        }
    }
    return 0;
}

int call_open(struct call *call, const struct remote *remote, const struct call_request *request,
              struct err *err)
{
    char head[HEAD_ROOM];
    size_t len = call_head(remote, request, head, sizeof head);
    struct iovec parts[] = { { head, len },
                             { (void *) (uintptr_t) request->body, request->body_len } };

    *call = CALL_NONE;
    if (len == 0)
        return err_set(err, ERR_TOO_BIG, "the request is too long");
    call->buf = malloc(CALL_BUFFER);
    if (!call->buf)
        return err_set(err, ERR_NO_MEMORY, "no memory for a request");
    if (remote_dial(remote, &call->fd, err) < 0 ||
        send_all(call, parts, request->body ? 2 : 1, err) < 0) {
        call_close(call);
        return -1;
    }
    return 0;
}

int call_send(struct call *call, const void *data, size_t len, struct err *err)
{
    char head[CHUNK_HEAD_MAX];
    struct iovec parts[] = { { head, 0 },
                             { (void *) (uintptr_t) data, len },
                             { (char[]){ CHUNK_TAIL }, 2 } };

    if (len == 0)
        return 0;
    parts[0].iov_len = chunk_head(head, len);
    return send_all(call, parts, 3, err);
}

int call_sent(struct call *call, struct err *err)
{
    struct iovec last = { (char[]){ CHUNK_LAST }, sizeof CHUNK_LAST - 1 };

    return send_all(call, &last, 1, err);
}

int call_fill(struct call *call, struct err *err)
{
    ssize_t n;

    if (call->at == call->have)
        call->at = call->have = 0;
    if (call->at > 0 && call->have == CALL_BUFFER) {
        memmove(call->buf, call->buf + call->at, call->have - call->at);
        call->have -= call->at;
        call->at = 0;
    }
    if (call->have == CALL_BUFFER)
        return err_set(err, ERR_PROTOCOL, "the server's answer has a part that is too long");
    do {
        n = read(call->fd, call->buf + call->have, CALL_BUFFER - call->have);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        /* A server that is killed resets what it has not read. */
        return errno == ECONNRESET
                   ? err_set(err, ERR_UNAVAILABLE, "the server closed the connection")
                   : err_sys(err, errno, "read from the server");
    call->have += (size_t) n;
    return n > 0;
}

static int read_head(struct call *call, struct err *err)
{
    int r;

    reply_init(&call->reply);
    while ((r = reply_feed(&call->reply, call->buf + call->at, call->have - call->at, err)) == 0) {
        int more = call_fill(call, err);

        if (more < 0)
            return -1;
        if (more == 0)
            return err_set(err, ERR_UNAVAILABLE,
                           "the server closed the connection without an answer");
    }
    if (r < 0)
        return -1;
    call->at += call->reply.len;
    return 0;
}

int call_answer(struct call *call, struct err *err)
{
    do { /* 100 Continue is not the answer */
        if (read_head(call, err) < 0)
            return -1;
    } while (call->reply.status < 200 && call->reply.status != 101);
    call->status = call->reply.status;
    call->left = call->reply.content_length;
    call->done =
        call->reply.body == REPLY_NO_BODY || (call->reply.body == REPLY_LENGTH && call->left == 0);
    return 0;
}

bool call_header(const struct call *call, const char *name, char *out, size_t size)
{
    struct slice value = reply_get(&call->reply, name);

    return value.at && slice_copy(value, out, size);
}

static int cut_short(struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "the server's answer was cut short");
}

static ssize_t read_chunk(struct call *call, void *out, size_t size, struct err *err)
{
    struct slice data = { NULL, 0 };
    size_t used = 0;
    int r =
        chunk_read(&call->chunk, call->buf + call->at,
                   call->have - call->at < size ? call->have - call->at : size, &used, &data, err);

    call->at += used;
    if (r < 0)
        return -1;
    if (r == 1)
        memcpy(out, data.at, data.len);
    call->done = chunk_done(&call->chunk);
    return (ssize_t) data.len;
}

ssize_t call_read(struct call *call, void *out, size_t size, struct err *err)
{
    while (!call->done) {
        size_t here = call->have - call->at, n;
        ssize_t got;
        int r;

        if (here == 0) {
            r = call_fill(call, err);
            if (r < 0)
                return -1;
            if (r == 0 && call->reply.body != REPLY_TO_END)
                return cut_short(err);
            call->done = r == 0;
            continue;
        }
        if (call->reply.body == REPLY_CHUNKED) {
            got = read_chunk(call, out, size, err);
            if (got != 0)
                return got;
            continue;
        }
        n = here < size ? here : size;
        if (call->reply.body == REPLY_LENGTH && n > call->left)
            n = (size_t) call->left;
        memcpy(out, call->buf + call->at, n);
        call->at += n;
        call->left -= call->reply.body == REPLY_LENGTH ? n : 0;
        call->done = call->reply.body == REPLY_LENGTH && call->left == 0;
        return (ssize_t) n;
    }
    return 0;
}

int call_text(struct call *call, size_t most, char **ret, size_t *ret_len, struct err *err)
{
    auto_free char *text = NULL;
    size_t len = 0, room = 0;
    ssize_t n;

    do {
        if (len + 4096 > room) {
            char *more = realloc(text, room = room ? 2 * room : 16384);

            if (!more)
                return err_set(err, ERR_NO_MEMORY, "no memory for the answer");
            text = more;
        }
        n = call_read(call, text + len, room - len - 1, err);
        if (n < 0)
            return -1;
        len += (size_t) n;
        if (len > most)
            return err_set(err, ERR_TOO_BIG, "the server's answer is too long");
    } while (n > 0);
    text[len] = '\0';
    *ret = take_ptr(&text);
    *ret_len = len;
    return 0;
}

void call_close(struct call *call)
{
    own_close(&call->fd);
    free(call->buf);
    *call = CALL_NONE;
}
