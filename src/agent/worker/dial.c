/* dial.c - the operation DIAL: connect to a port inside, then be a pipe.
 *
 * Two directions, each with one buffer: it is read into only when empty, so that a slow side holds
 * up the other and no third. The end of one direction is passed on as such (shutdown), the
 * other continues. It is over when both are, or when the caller is gone for good. */
#include "agent/worker/answer.h"
#include "agent/worker/port.h"
#include "base/io.h"
#include "base/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define DIAL_MS     5000
#define BUFFER_SIZE 65536u

struct lane {
    int from, to;
    uint8_t *data; /* BUFFER_SIZE */
    size_t at, len;
    bool ended; /* no more to read */
    bool over;  /* and its end was passed on */
};

/* A connected descriptor, or -1 with errno. */
static int connect_to(const struct sockaddr *address, socklen_t len, uint64_t deadline)
{
    auto_close int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    int why = 0;
    socklen_t why_len = sizeof why;

    if (fd < 0)
        return -1;
    if (connect(fd, address, len) == 0)
        return take_fd(&fd);
    if (errno != EINPROGRESS)
        return -1;
    for (;;) {
        uint64_t now = io_now_ms();
        int n = now >= deadline ? 0 : poll(&p, 1, (int) (deadline - now));

        if (n > 0)
            break;
        if (n == 0)
            errno = ETIMEDOUT;
        if (n == 0 || errno != EINTR)
            return -1;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &why_len) < 0)
        return -1;
    errno = why;
    return why ? -1 : take_fd(&fd);
}

static int connect_port(uint32_t port, struct err *err)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t) port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t) port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    uint64_t deadline = io_now_ms() + DIAL_MS;
    int fd = connect_to((const struct sockaddr *) &v4, sizeof v4, deadline);

    if (fd < 0 && errno != ETIMEDOUT)
        fd = connect_to((const struct sockaddr *) &v6, sizeof v6, deadline);
    if (fd >= 0)
        return fd;
    if (errno == ETIMEDOUT)
        return err_set(err, ERR_TIMEOUT, "port %u does not accept", port);
    return err_set(err, ERR_NO_PORT, "nothing listens on port %u", port);
}

/* The receiver of this lane is gone, or its end has been passed on. */
static void lane_finish(struct lane *lane)
{
    lane->ended = lane->over = true;
    lane->len = 0;
    (void) shutdown(lane->to, SHUT_WR);
}

static void lane_move(struct lane *lane, struct worker *w)
{
    ssize_t n;

    if (lane->len == 0 && !lane->ended) {
        n = lane->from == w->sock ? answer_read(w, lane->data, BUFFER_SIZE)
                                  : read(lane->from, lane->data, BUFFER_SIZE);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            lane->ended = true;
        lane->at = 0;
        lane->len = n > 0 ? (size_t) n : 0;
    }
    if (lane->len > 0) {
        n = send(lane->to, lane->data + lane->at, lane->len, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            lane_finish(lane);
        else if (n > 0) {
            lane->at += (size_t) n;
            lane->len -= (size_t) n;
        }
    }
    if (lane->ended && lane->len == 0 && !lane->over)
        lane_finish(lane);
}

/* What a lane waits for: room to write what it holds, or else something to read. */
static void lane_wish(const struct lane *lane, struct pollfd *from, struct pollfd *to)
{
    if (lane->len > 0)
        to->events |= POLLOUT;
    else if (!lane->ended)
        from->events |= POLLIN;
}

static void relay(struct worker *w, struct lane *in, struct lane *out)
{
    bool early = w->early_len > 0;

    while (!in->over || !out->over) {
        struct pollfd p[2] = { { .fd = in->from }, { .fd = in->to } };

        lane_wish(in, &p[0], &p[1]);
        lane_wish(out, &p[1], &p[0]);
        /* A side that has hung up and of which nothing is wanted would only wake us, but for the
         * caller once it has said all: then its going is the end. */
        if (!p[0].events && !in->over)
            p[0].fd = -1;
        if (!p[1].events)
            p[1].fd = -1;
        if (!early && poll(p, 2, -1) < 0 && errno != EINTR)
            return;
        if (in->over && (p[0].revents & (POLLHUP | POLLERR)))
            return; /* no caller left to answer */
        early = false;
        lane_move(in, w);
        lane_move(out, w);
    }
}

int port_dial(struct worker *w, struct err *err)
{
    auto_close int fd = connect_port(w->request->port, err);
    auto_free uint8_t *buffers = NULL;
    struct agent_reply reply = { .port = w->request->port };
    struct lane in = { .from = w->sock, .to = fd }, out = { .from = fd, .to = w->sock };

    if (fd < 0)
        return -1;
    buffers = malloc(2 * BUFFER_SIZE);
    if (!buffers)
        return err_sys(err, ENOMEM, "dial");
    if (answer_record(w, FRAME_REPLY, &reply, err) < 0)
        return -1;
    in.data = buffers;
    out.data = buffers + BUFFER_SIZE;
    if (fcntl(w->sock, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, errno, "dial");
    relay(w, &in, &out);
    return 0;
}
