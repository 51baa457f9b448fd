#include "client/stream.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* One frame of the largest kind that an agent sends; a request goes out of a buffer of its own. */
#define IN_SIZE (FRAME_HEAD + FRAME_DATA_MAX + 8)
/* A full frame of stdin, and room for resize and signal frames behind it. */
#define OUT_SIZE     (FRAME_HEAD + FRAME_DATA_MAX + 1024)
#define WAIT_MOST_MS 60000 /* of one poll(); the wait continues */

static int gone(struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "the connection to the sandbox ended early");
}

/* When patience is at an end, for one frame as a whole: an agent that sends or takes a byte now and then wins no time. */
static uint64_t patience_end(const struct stream *stream)
{
    return stream->patience_ms < 0 ? UINT64_MAX : io_now_ms() + (uint64_t) stream->patience_ms;
}

static int wait_for(const struct stream *stream, short events, uint64_t until_ms, short *ret_events,
                    struct err *err)
{
    struct pollfd p = { .fd = stream->fd, .events = events };

    for (;;) {
        uint64_t now = io_now_ms(), left = until_ms > now ? until_ms - now : 0;
        int n = poll(&p, 1, left > WAIT_MOST_MS ? WAIT_MOST_MS : (int) left);

        if (n > 0) {
            *ret_events = p.revents;
            return 0;
        }
        if (n < 0 && errno != EINTR)
            return err_sys(err, errno, "wait for the sandbox");
        if (io_now_ms() >= until_ms)
            return err_set(err, ERR_UNAVAILABLE, "the sandbox did not answer within %d s",
                           stream->patience_ms / 1000);
    }
}

/* Sends what it can: bytes sent, 0 when there is no room, or -1. */
static ssize_t send_some(int fd, const uint8_t *data, size_t len, struct err *err)
{
    ssize_t n;

    do {
        n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    return n < 0 ? gone(err) : n;
}

/* What the agent said before it hung up explains more than the broken pipe. */
static int broken(struct stream *stream, struct err *err)
{
    struct frame frame;
    struct err said;

    if (stream_next(stream, &frame, &said) < 0)
        *err = said;
    return -1;
}

/* While there is no room the agent may say why it stopped reading. */
static int wait_for_room(struct stream *stream, uint64_t until_ms, struct err *err)
{
    struct frame frame;
    short events = 0;
    int r;

    if (wait_for(stream, POLLIN | POLLOUT, until_ms, &events, err) < 0)
        return -1;
    if (!(events & POLLIN))
        return 0;
    r = stream_poll(stream, &frame, err);
    return r > 0 ? stream_unexpected(&frame, err) : r;
}

/* All of it. */
static int send_all(struct stream *stream, const uint8_t *data, size_t len, struct err *err)
{
    uint64_t until_ms = patience_end(stream);

    while (len > 0) {
        ssize_t n = send_some(stream->fd, data, len, err);

        if (n < 0)
            return broken(stream, err);
        data += n;
        len -= (size_t) n;
        if (n == 0 && wait_for_room(stream, until_ms, err) < 0)
            return -1;
    }
    return 0;
}

static int send_request(struct stream *stream, const struct agent_request *request, struct err *err)
{
    struct agent_request versioned = *request;
    auto_free uint8_t *buf = malloc(FRAME_HEAD + FRAME_REQUEST_MAX);
    ssize_t len;

    if (!buf)
        return err_set(err, ERR_NO_MEMORY, "no memory for a request");
    versioned.version = AGENT_VERSION;
    len = agent_request_encode(&versioned, buf + FRAME_HEAD, FRAME_REQUEST_MAX, err);
    if (len < 0)
        return -1;
    frame_head_put(buf, FRAME_REQUEST, (uint32_t) len);
    return send_all(stream, buf, FRAME_HEAD + (size_t) len, err);
}

int stream_start(struct stream *stream, int fd, int patience_ms,
                 const struct agent_request *request, struct err *err)
{
    *stream = (struct stream){ .fd = fd, .patience_ms = patience_ms };
    stream->in = malloc(IN_SIZE);
    stream->out = malloc(OUT_SIZE);
    if (!stream->in || !stream->out) {
        stream_close(stream);
        return err_set(err, ERR_NO_MEMORY, "no memory for a connection");
    }
    if (send_request(stream, request, err) < 0) {
        stream_close(stream);
        return -1;
    }
    return 0;
}

int stream_open(struct stream *stream, struct link *link, const char *sandbox,
                const struct agent_request *request, struct err *err)
{
    int fd;

    *stream = STREAM_NONE;
    if (link_connect(link, sandbox, &fd, err) < 0)
        return -1;
    return stream_start(stream, fd, link->patience_ms, request, err);
}

void stream_close(struct stream *stream)
{
    own_close(&stream->fd);
    free(stream->in);
    free(stream->out);
    *stream = STREAM_NONE;
}

/* The agent's own words; a kind that is none counts as a fault. */
static int agent_error(const struct frame *frame, struct err *err)
{
    struct agent_reply reply;

    if (agent_reply_decode(&reply, frame->data, frame->len, err) < 0)
        return err_wrap(err, "the agent's error");
    if (reply.kind == ERR_NONE || reply.kind >= ERR_KIND_COUNT)
        reply.kind = ERR_INTERNAL;
    return err_set(err, (enum err_kind) reply.kind, "%s",
                   reply.message ? reply.message : "the agent gave no reason");
}

/* A whole frame in the buffer: 1, or 0 when more bytes are needed. */
static int take_frame(struct stream *stream, struct frame *ret, struct err *err)
{
    struct frame_head head;
    uint8_t *at;

    /* The frame handed out before is dropped only now: its data was borrowed. */
    if (stream->in_done > 0) {
        stream->in_have -= stream->in_done;
        memmove(stream->in, stream->in + stream->in_done, stream->in_have);
        stream->in_done = 0;
    }
    at = stream->in;
    if (stream->in_have < FRAME_HEAD)
        return 0;
    if (frame_head_get(at, &head, err) < 0)
        return err_wrap(err, "the agent");
    /* Types that only callers send can be larger than the buffer. */
    if (head.len > IN_SIZE - FRAME_HEAD)
        return err_set(err, ERR_PROTOCOL, "the agent sent a frame '%s'", frame_name(head.type));
    if (stream->in_have < FRAME_HEAD + head.len)
        return 0;
    *ret = (struct frame){ .type = head.type, .data = at + FRAME_HEAD, .len = head.len };
    stream->in_done = FRAME_HEAD + head.len;
    return ret->type == FRAME_ERROR ? agent_error(ret, err) : 1;
}

/* How much may be read now. The head was checked by take_frame before its length is used here. */
static size_t room_in(const struct stream *stream)
{
    if (!stream->exact)
        return IN_SIZE - stream->in_have;
    if (stream->in_have < FRAME_HEAD)
        return FRAME_HEAD - stream->in_have;
    return FRAME_HEAD + frame_get_u32(stream->in) - stream->in_have;
}

int stream_poll(struct stream *stream, struct frame *ret, struct err *err)
{
    bool reset = false;

    for (;;) {
        int r = take_frame(stream, ret, err);
        ssize_t n;

        if (r != 0)
            return r;
        n = recv(stream->fd, stream->in + stream->in_have, room_in(stream), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        /* The agent closed without having read all that we sent. The kernel says that first, and only then
         * hands out what the agent had said before. */
        if (n < 0 && errno == ECONNRESET && !reset) {
            reset = true;
            continue;
        }
        if (n <= 0)
            return gone(err);
        stream->in_have += (size_t) n;
    }
}

int stream_next(struct stream *stream, struct frame *ret, struct err *err)
{
    int r = stream_poll(stream, ret, err);
    uint64_t until_ms;

    if (r != 0) /* as a rule, it is there: no need for the time */
        return r;
    until_ms = patience_end(stream);
    for (;;) {
        short events;

        if (wait_for(stream, POLLIN, until_ms, &events, err) < 0)
            return -1;
        r = stream_poll(stream, ret, err);
        if (r != 0)
            return r;
    }
}

int stream_data_head(struct stream *stream, uint32_t *ret_len, struct frame *ret, struct err *err)
{
    struct frame_head head;

    if (stream->in_done > 0)
        stream->in_have = stream->in_done = 0; /* exact: nothing is behind the frame before */
    stream->until_ms = patience_end(stream);
    while (stream->in_have < FRAME_HEAD) {
        ssize_t n = recv(stream->fd, stream->in + stream->in_have, FRAME_HEAD - stream->in_have,
                         MSG_DONTWAIT);
        short events;

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return gone(err);
        if (n > 0)
            stream->in_have += (size_t) n;
        else if (errno == EAGAIN && wait_for(stream, POLLIN, stream->until_ms, &events, err) < 0)
            return -1;
    }
    if (frame_head_get(stream->in, &head, err) < 0)
        return err_wrap(err, "the agent");
    if (head.type != FRAME_DATA)
        return stream_next(stream, ret, err) < 0 ? -1 : 0;
    stream->in_have = 0;
    *ret_len = head.len;
    return 1;
}

ssize_t stream_splice(struct stream *stream, int pipe_fd, uint32_t most, struct err *err)
{
    for (;;) {
        ssize_t n =
            splice(stream->fd, NULL, pipe_fd, NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        short events;

        if (n > 0)
            return n;
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return gone(err);
        if (errno == EAGAIN && wait_for(stream, POLLIN, stream->until_ms, &events, err) < 0)
            return -1;
    }
}

/* Head and data at once: a head that goes ahead wakes the agent for eight bytes, and again for what they announce. */
int stream_send(struct stream *stream, enum frame_type type, const void *data, uint32_t len,
                struct err *err)
{
    uint8_t head[FRAME_HEAD];
    struct iovec parts[] = { { head, sizeof head }, { (void *) (uintptr_t) data, len } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = len ? 2 : 1 };
    ssize_t n;
    size_t sent;

    frame_head_put(head, type, len);
    do {
        n = sendmsg(stream->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    sent = n > 0 ? (size_t) n : 0; /* whatever is wrong is found, and told, by send_all */
    if (sent < sizeof head) {
        if (send_all(stream, head + sent, sizeof head - sent, err) < 0)
            return -1;
        sent = sizeof head;
    }
    sent -= sizeof head;
    return len ? send_all(stream, (const uint8_t *) data + sent, len - sent, err) : 0;
}

int stream_send_piped(struct stream *stream, enum frame_type type, int pipe_fd, uint32_t len,
                      struct err *err)
{
    uint64_t until_ms = patience_end(stream);
    uint8_t head[FRAME_HEAD];
    int flags = fcntl(stream->fd, F_GETFL);

    /* splice asks the descriptor whether it may wait, and not its own flags. */
    if (flags < 0 || (!(flags & O_NONBLOCK) && fcntl(stream->fd, F_SETFL, flags | O_NONBLOCK) < 0))
        return err_sys(err, errno, "a connection to the sandbox");
    frame_head_put(head, type, len);
    if (send_all(stream, head, sizeof head, err) < 0)
        return -1;
    while (len > 0) {
        ssize_t n = splice(pipe_fd, NULL, stream->fd, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

        if (n > 0)
            len -= (uint32_t) n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            (void) gone(err);
            return broken(stream, err);
        } else if (errno == EAGAIN && wait_for_room(stream, until_ms, err) < 0)
            return -1;
    }
    return 0;
}

int stream_queue(struct stream *stream, enum frame_type type, const void *data, uint32_t len)
{
    if (stream->out_sent == stream->out_have)
        stream->out_sent = stream->out_have = 0;
    if (OUT_SIZE - stream->out_have < FRAME_HEAD + len)
        return 0;
    frame_head_put(stream->out + stream->out_have, type, len);
    if (len > 0)
        memcpy(stream->out + stream->out_have + FRAME_HEAD, data, len);
    stream->out_have += FRAME_HEAD + len;
    return 1;
}

int stream_flush(struct stream *stream, struct err *err)
{
    while (stream_pending(stream)) {
        ssize_t n = send_some(stream->fd, stream->out + stream->out_sent,
                              stream->out_have - stream->out_sent, err);

        if (n <= 0)
            return (int) n;
        stream->out_sent += (size_t) n;
    }
    return 0;
}

int stream_unexpected(const struct frame *frame, struct err *err)
{
    return err_set(err, ERR_PROTOCOL, "the agent sent a frame '%s' out of turn",
                   frame_name(frame->type));
}

int stream_reply(struct stream *stream, enum frame_type type, struct agent_reply *ret,
                 struct err *err)
{
    struct frame frame;

    if (stream_next(stream, &frame, err) < 0)
        return -1;
    if (frame.type != type)
        return stream_unexpected(&frame, err);
    if (agent_reply_decode(ret, frame.data, frame.len, err) < 0)
        return err_wrap(err, "the agent's answer");
    return 0;
}

int stream_item(struct stream *stream, struct agent_reply *ret, struct err *err)
{
    struct frame frame;

    if (stream_next(stream, &frame, err) < 0)
        return -1;
    if (frame.type != FRAME_ITEM && frame.type != FRAME_END)
        return stream_unexpected(&frame, err);
    if (agent_reply_decode(ret, frame.data, frame.len, err) < 0)
        return err_wrap(err, "the agent's answer");
    return frame.type == FRAME_ITEM;
}
