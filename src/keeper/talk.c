#include "keeper/talk.h"

#include "base/io.h"
#include "wire/frame.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static int send_request(int fd, const struct agent_request *request, int with, struct err *err)
{
    uint8_t frame[FRAME_HEAD + 512];
    ssize_t len = agent_request_encode(request, frame + FRAME_HEAD, sizeof frame - FRAME_HEAD, err);

    if (len < 0)
        return -1;
    frame_head_put(frame, FRAME_REQUEST, (uint32_t) len);
    len += FRAME_HEAD;
    if (io_send_fds(fd, frame, (size_t) len, &with, with >= 0 ? 1 : 0) != len)
        return err_sys(err, errno, "ask the agent");
    return 0;
}

static int no_answer(struct err *err)
{
    if (errno == ETIMEDOUT)
        return err_set(err, ERR_TIMEOUT, "the agent does not answer within %d s",
                       TALK_PATIENCE_MS / 1000);
    return err_sys(err, errno, "hear from the agent");
}

/* A REPLY, or the agent's own reason why not. until_ms: of the whole answer, however slowly it comes. */
static int read_reply(int fd, uint64_t until_ms, struct err *err)
{
    uint8_t head[FRAME_HEAD], data[1024];
    struct frame_head frame;
    struct agent_reply reply;

    if (io_read_until(fd, head, sizeof head, until_ms) < 0)
        return no_answer(err);
    if (frame_head_get(head, &frame, err) < 0)
        return -1;
    if (frame.len <= sizeof data && io_read_until(fd, data, frame.len, until_ms) < 0)
        return no_answer(err);
    if (frame.len > sizeof data || agent_reply_decode(&reply, data, frame.len, err) < 0)
        return err_set(err, ERR_PROTOCOL, "the agent answered something else");
    if (frame.type == FRAME_REPLY)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "the agent said: %.100s",
                   reply.message ? reply.message : "no");
}

int talk_quiesce(int fd, struct err *err)
{
    struct agent_request request = { .version = AGENT_VERSION, .op = AGENT_QUIESCE };
    uint64_t until_ms = io_now_ms() + TALK_PATIENCE_MS;
    ssize_t n;
    char byte;

    if (send_request(fd, &request, -1, err) < 0 || read_reply(fd, until_ms, err) < 0)
        return -1;
    /* It closes when the last worker is gone, or says why it does not come to rest. */
    n = io_wait_until(fd, POLLIN, until_ms) ? recv(fd, &byte, 1, MSG_PEEK) : -1;
    if (n == 0)
        return 0;
    if (n > 0 && read_reply(fd, until_ms, err) < 0)
        return -1;
    return err_set(err, ERR_UNAVAILABLE, "the agent does not come to rest");
}

int talk_resumed(int fd, const char *why, uint64_t slept_ms, int listener, struct err *err)
{
    struct agent_request request = {
        .version = AGENT_VERSION, .op = AGENT_RESUMED, .name = why, .limit = slept_ms
    };
    uint64_t until_ms = io_now_ms() + TALK_PATIENCE_MS;

    if (send_request(fd, &request, listener, err) < 0)
        return -1;
    return read_reply(fd, until_ms, err);
}
