#include "api/conn.h"

#include "base/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static void name_peer(struct conn *conn)
{
    struct sockaddr_storage from;
    socklen_t len = sizeof from;

    if (getpeername(conn->fd, (struct sockaddr *) &from, &len) < 0)
        return;
    if (from.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *) &from;

        (void) inet_ntop(AF_INET, &in->sin_addr, conn->peer, sizeof conn->peer);
        conn->loopback = (ntohl(in->sin_addr.s_addr) >> 24) == 127;
    } else if (from.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *) &from;

        (void) inet_ntop(AF_INET6, &in->sin6_addr, conn->peer, sizeof conn->peer);
        conn->loopback = IN6_IS_ADDR_LOOPBACK(&in->sin6_addr) ||
                         (IN6_IS_ADDR_V4MAPPED(&in->sin6_addr) && in->sin6_addr.s6_addr[12] == 127);
    }
}

struct conn *conn_new(int fd, struct tls_context *tls)
{
    struct conn *conn = calloc(1, sizeof *conn);

    if (!conn)
        return NULL;
    conn->fd = fd;
    name_peer(conn);
    if (tls) {
        conn->tls = tls_new(tls, fd);
        if (!conn->tls) {
            free(conn);
            return NULL;
        }
    }
    return conn;
}

void conn_free(struct conn *conn)
{
    if (!conn)
        return;
    tls_free(conn->tls);
    own_close(&conn->fd);
    free(conn->buf);
    free(conn);
}

static ssize_t recv_some(struct conn *conn, void *out, size_t size, short *ret_events)
{
    *ret_events = POLLIN;
    return conn->tls ? tls_recv(conn->tls, out, size, ret_events)
                     : recv(conn->fd, out, size, MSG_DONTWAIT);
}

static ssize_t send_some(struct conn *conn, const void *data, size_t len, short *ret_events)
{
    *ret_events = POLLOUT;
    return conn->tls ? tls_send(conn->tls, data, len, ret_events)
                     : send(conn->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t conn_recv(struct conn *conn, void *out, size_t size)
{
    short events;
    ssize_t n;

    do {
        n = recv_some(conn, out, size, &events);
    } while (n < 0 && errno == EINTR);
    return n;
}

static int wait_for(const struct conn *conn, short events, uint64_t stall_ms, struct err *err)
{
    struct pollfd p = { .fd = conn->fd, .events = events };
    int rc;

    do {
        rc = poll(&p, 1, (int) stall_ms);
    } while (rc < 0 && errno == EINTR);
    if (rc > 0)
        return 0;
    return rc < 0 ? err_sys(err, errno, "wait for the client")
                  : err_set(err, ERR_TIMEOUT, "the client stood still");
}

ssize_t conn_read(struct conn *conn, void *out, size_t size, uint64_t stall_ms, struct err *err)
{
    if (conn->have > 0) {
        size_t n = size < conn->have ? size : conn->have;

        memcpy(out, conn->buf, n);
        conn->have -= n;
        memmove(conn->buf, conn->buf + n, conn->have);
        return (ssize_t) n;
    }
    for (;;) {
        short events;
        ssize_t n = recv_some(conn, out, size, &events);

        if (n >= 0)
            return n;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return err_sys(err, errno, "read from the client");
        if (wait_for(conn, events, stall_ms, err) < 0)
            return -1;
    }
}

int conn_write(struct conn *conn, const void *data, size_t len, uint64_t stall_ms, struct err *err)
{
    const char *at = data;

    while (len > 0) {
        short events;
        ssize_t n = send_some(conn, at, len, &events);

        if (n > 0) {
            at += n;
            len -= (size_t) n;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            if (wait_for(conn, events, stall_ms, err) < 0)
                return -1;
        } else {
            return err_sys(err, n == 0 ? EPIPE : errno, "write to the client");
        }
    }
    return 0;
}
