#include "agent/worker/answer.h"

#include "base/io.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define DRAIN_MS     5000
#define LOOK_EVERY   256u
#define MEANWHILE_MS 100

/* One frame, head included; a worker is one process with one frame under way at a time. */
static uint8_t frame[FRAME_HEAD + FRAME_DATA_MAX];

int answer_gone(struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "the caller has gone: %s", strerror(errno));
}

/* As io_write_all, with `meanwhile` called while there is no room. */
static int write_patiently(const struct worker *w, const uint8_t *data, size_t len)
{
    while (len > 0) {
        struct pollfd p = { .fd = w->sock, .events = POLLOUT };
        ssize_t n = send(w->sock, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EAGAIN) {
            if (poll(&p, 1, MEANWHILE_MS) < 0 && errno != EINTR)
                return -1;
            w->meanwhile(w->meanwhile_arg);
        } else if (n < 0 && errno != EINTR) {
            return -1;
        } else if (n > 0) {
            data += n;
            len -= (size_t) n;
        }
    }
    return 0;
}

static int send_frame(struct worker *w, enum frame_type type, size_t len, struct err *err)
{
    frame_head_put(frame, type, (uint32_t) len);
    if ((w->meanwhile ? write_patiently(w, frame, FRAME_HEAD + len)
                      : io_write_all(w->sock, frame, FRAME_HEAD + len)) < 0)
        return answer_gone(err);
    return 0;
}

int answer_record(struct worker *w, enum frame_type type, const struct agent_reply *reply,
                  struct err *err)
{
    ssize_t len = agent_reply_encode(reply, frame + FRAME_HEAD, (size_t) frame_limit(type), err);

    if (len < 0)
        return -1;
    return send_frame(w, type, (size_t) len, err);
}

void answer_error(struct worker *w, const struct err *why)
{
    struct agent_reply reply = { .kind = why->kind, .message = why->msg };
    struct err err;

    (void) answer_record(w, FRAME_ERROR, &reply, &err);
}

uint8_t *answer_data_room(void)
{
    return frame + FRAME_HEAD;
}

int answer_data(struct worker *w, size_t len, struct err *err)
{
    return send_frame(w, FRAME_DATA, len, err);
}

/* What sendfile cannot do for this file system: by way of the frame's own memory. */
static ssize_t send_copied(struct worker *w, int fd, size_t len)
{
    ssize_t n = read(fd, answer_data_room(), len);

    return n > 0 && io_write_all(w->sock, answer_data_room(), (size_t) n) < 0 ? -1 : n;
}

int answer_data_from(struct worker *w, int fd, size_t len, struct err *err)
{
    bool copied = false;

    frame_head_put(frame, FRAME_DATA, (uint32_t) len);
    if (io_write_all(w->sock, frame, FRAME_HEAD) < 0)
        return answer_gone(err);
    while (len > 0) {
        ssize_t n = copied ? send_copied(w, fd, len) : sendfile(w->sock, fd, NULL, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && !copied && (errno == EINVAL || errno == ENOSYS)) {
            copied = true;
            continue;
        }
        if (n <= 0)
            break;
        len -= (size_t) n;
    }
    if (len == 0)
        return 0;
    /* The frame's length was promised: what is missing is made up before the error is told. */
    memset(answer_data_room(), 0, len);
    if (io_write_all(w->sock, answer_data_room(), len) < 0)
        return answer_gone(err);
    return err_set(err, ERR_STATE, "the file became shorter while it was read");
}

int answer_data_end(struct worker *w, struct err *err)
{
    return send_frame(w, FRAME_DATA_END, 0, err);
}

ssize_t answer_read(struct worker *w, void *data, size_t size)
{
    ssize_t n;

    if (w->early_len > 0) {
        if (size > w->early_len)
            size = w->early_len;
        memcpy(data, w->early, size);
        w->early += size;
        w->early_len -= size;
        return (ssize_t) size;
    }
    do {
        n = read(w->sock, data, size);
    } while (n < 0 && errno == EINTR);
    return n;
}

int answer_data_take(struct worker *w, uint8_t *data, size_t len, struct err *err)
{
    while (len > 0) {
        ssize_t n = answer_read(w, data, len);

        if (n < 0)
            return answer_gone(err);
        if (n == 0)
            return err_set(err, ERR_UNAVAILABLE, "the caller has gone");
        data += n;
        len -= (size_t) n;
    }
    return 0;
}

int answer_head(struct worker *w, struct frame_head *ret, struct err *err)
{
    uint8_t head[FRAME_HEAD];

    if (answer_data_take(w, head, sizeof head, err) < 0 || frame_head_get(head, ret, err) < 0)
        return -1;
    if (ret->len > FRAME_DATA_MAX)
        return err_set(err, ERR_PROTOCOL, "a frame of %u bytes", ret->len);
    return 0;
}

int answer_receive(struct worker *w, struct frame_head *ret, uint8_t *data, struct err *err)
{
    return answer_head(w, ret, err) < 0 ? -1 : answer_data_take(w, data, ret->len, err);
}

int answer_wanted(struct worker *w, uint64_t steps, struct err *err)
{
    struct pollfd p = { .fd = w ? w->sock : -1 };

    if (!w || steps % LOOK_EVERY != 0)
        return 0;
    /* A caller that only closed its sending side still waits for the answer: that is no POLLHUP. */
    if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)))
        return err_set(err, ERR_UNAVAILABLE, "the caller has gone");
    return 0;
}

void answer_drain(struct worker *w)
{
    uint64_t end = io_now_ms() + DRAIN_MS;

    (void) shutdown(w->sock, SHUT_WR);
    for (;;) {
        struct pollfd p = { .fd = w->sock, .events = POLLIN };
        uint64_t now = io_now_ms();

        if (now >= end || poll(&p, 1, (int) (end - now)) <= 0)
            return;
        if (read(w->sock, frame, sizeof frame) <= 0)
            return;
    }
}
