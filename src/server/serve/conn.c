#include "server/serve/conn.h"

#include "base/own.h"
#include "base/prefix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_SLICE_MS 1000 /* also the patience while too many wait */
#define WAIT_LEAST_MS 20   /* while there are twice as many as that */
#define LINGER_MS     1

static void name_ipv4(struct conn *conn, const struct in_addr *from)
{
    (void) inet_ntop(AF_INET, from, conn->peer, sizeof conn->peer);
    conn->loopback = (ntohl(from->s_addr) >> 24) == 127;
}

static void name_ipv6(struct conn *conn, const struct in6_addr *from)
{
    (void) inet_ntop(AF_INET6, from, conn->peer, sizeof conn->peer);
    conn->loopback =
        IN6_IS_ADDR_LOOPBACK(from) || (IN6_IS_ADDR_V4MAPPED(from) && from->s6_addr[12] == 127);
}

static void name_peer(struct conn *conn, const struct sockaddr *from)
{
    if (from->sa_family == AF_INET)
        name_ipv4(conn, &((const struct sockaddr_in *) (const void *) from)->sin_addr);
    else if (from->sa_family == AF_INET6)
        name_ipv6(conn, &((const struct sockaddr_in6 *) (const void *) from)->sin6_addr);
}

bool conn_peer_in(const struct conn *conn, const char *list)
{
    struct sockaddr_storage from;
    socklen_t len = sizeof from;

    return getpeername(conn->fd, (struct sockaddr *) &from, &len) == 0 &&
           prefix_list_has(list, (const struct sockaddr *) &from);
}

/* A client without an address keeps the proxy's for the log, but is never loopback: the client came through
 * the proxy. */
static void adopt_source(struct conn *conn, const struct proxy *proxy)
{
    struct in6_addr six;
    struct in_addr four;

    conn->loopback = false;
    if (proxy->family == PROXY_IPV4) {
        memcpy(&four, proxy->source, sizeof four);
        name_ipv4(conn, &four);
    } else if (proxy->family == PROXY_IPV6) {
        memcpy(&six, proxy->source, sizeof six);
        name_ipv6(conn, &six);
    }
}

int conn_preamble(struct conn *conn, struct err *err)
{
    struct proxy proxy;
    ssize_t n;
    int rc;

    /* Looked at first, then taken as far as it is preamble: what follows is HTTP's, or TLS's. */
    n = recv(conn->fd, conn->buf + conn->have, PROXY_MAX - conn->have, MSG_DONTWAIT | MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return err_set(err, ERR_UNAVAILABLE, "the client is gone");
    rc = proxy_feed(conn->buf, conn->have + (size_t) n, &proxy, err);
    if (rc < 0)
        return -1;
    if (rc == 1)
        n = (ssize_t) (proxy.len - conn->have);
    if (recv(conn->fd, conn->buf + conn->have, (size_t) n, MSG_DONTWAIT) != n)
        return err_set(err, ERR_UNAVAILABLE, "the client is gone");
    conn->have += (size_t) n;
    if (rc == 0)
        return 0;
    conn->have = 0;
    conn->preamble = false;
    adopt_source(conn, &proxy);
    return 1;
}

struct conn *conn_new(int fd, const struct sockaddr *from, struct tls_context *tls,
                      struct conn_waits *waits)
{
    struct conn *conn = calloc(1, sizeof *conn);

    if (!conn)
        return NULL;
    conn->fd = fd;
    conn->waits = waits;
    name_peer(conn, from);
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

static ssize_t recv_some(struct conn *conn, void *out, size_t size)
{
    conn->read_wants = POLLIN;
    return conn->tls ? tls_recv(conn->tls, out, size, &conn->read_wants)
                     : recv(conn->fd, out, size, MSG_DONTWAIT);
}

static ssize_t send_some(struct conn *conn, const void *data, size_t len)
{
    conn->write_wants = POLLOUT;
    return conn->tls ? tls_send(conn->tls, data, len, &conn->write_wants)
                     : send(conn->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t conn_recv(struct conn *conn, void *out, size_t size)
{
    ssize_t n;

    do {
        n = recv_some(conn, out, size);
    } while (n < 0 && errno == EINTR);
    return n;
}

static bool crowded(const struct conn *conn)
{
    return atomic_load_explicit(&conn->waits->crowded, memory_order_relaxed);
}

bool conn_linger(struct conn *conn)
{
    struct pollfd wait = { .fd = conn->fd, .events = POLLIN | POLLRDHUP };

    return !crowded(conn) && poll(&wait, 1, LINGER_MS) > 0;
}

bool conn_silent(struct conn *conn)
{
    return !conn->tls && !crowded(conn) && !conn_linger(conn);
}

ssize_t conn_send(struct conn *conn, const void *data, size_t len)
{
    ssize_t n;

    do {
        n = send_some(conn, data, len);
    } while (n < 0 && errno == EINTR);
    if (n != 0)
        return n;
    errno = EPIPE;
    return -1;
}

void conn_end(struct conn *conn)
{
    if (conn->tls)
        tls_end(conn->tls);
    else
        (void) shutdown(conn->fd, SHUT_WR);
}

/* How long one may wait before it is looked at again whether too many do: the more there are, the sooner, so that the
 * number of those who wait stays bounded however fast others come. */
static uint64_t slice_ms(struct conn_waits *waits)
{
    size_t now = atomic_load(&waits->now), most = atomic_load(&waits->most);

    if (now <= most)
        return WAIT_SLICE_MS;
    return now >= 2 * most
               ? WAIT_LEAST_MS
               : WAIT_SLICE_MS - (now - most) * (WAIT_SLICE_MS - WAIT_LEAST_MS) / (most ? most : 1);
}

/* In slices: how many others wait is looked at again, also by those who began when there was room. */
static int wait_for(const struct conn *conn, short events, uint64_t stall_ms, struct err *err)
{
    struct pollfd p = { .fd = conn->fd, .events = events };
    struct conn_waits *waits = conn->waits;
    uint64_t left = stall_ms;
    int rc;

    atomic_fetch_add(&waits->now, 1);
    do {
        uint64_t most = slice_ms(waits), slice = left < most ? left : most;

        rc = poll(&p, 1, (int) slice);
        left -= rc == 0 ? slice : 0;
    } while ((rc < 0 && errno == EINTR) ||
             (rc == 0 && left > 0 && atomic_load(&waits->now) <= atomic_load(&waits->most)));
    atomic_fetch_sub(&waits->now, 1);
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
        ssize_t n = recv_some(conn, out, size);

        if (n >= 0)
            return n;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return err_sys(err, errno, "read from the client");
        if (wait_for(conn, conn->read_wants, stall_ms, err) < 0)
            return -1;
    }
}

/* What splice does not take is copied: it stops at urgent data. A pipe that is empty has room for it. */
static ssize_t copy_to_pipe(struct conn *conn, int pipe_fd, size_t most)
{
    char some[4096];
    ssize_t n = recv(conn->fd, some, most < sizeof some ? most : sizeof some, MSG_DONTWAIT);

    return n > 0 ? write(pipe_fd, some, (size_t) n) : n;
}

ssize_t conn_pipe(struct conn *conn, int pipe_fd, size_t most, uint64_t stall_ms, struct err *err)
{
    for (;;) {
        ssize_t n = splice(conn->fd, NULL, pipe_fd, NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

        if (n == 0 || (n < 0 && errno == EAGAIN))
            n = copy_to_pipe(conn, pipe_fd, most);
        if (n >= 0)
            return n;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return err_sys(err, errno, "read from the client");
        if (wait_for(conn, POLLIN, stall_ms, err) < 0)
            return -1;
    }
}

int conn_write(struct conn *conn, const void *data, size_t len, uint64_t stall_ms, struct err *err)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = send_some(conn, at, len);

        if (n > 0) {
            at += n;
            len -= (size_t) n;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            if (wait_for(conn, conn->write_wants, stall_ms, err) < 0)
                return -1;
        } else {
            return err_sys(err, n == 0 ? EPIPE : errno, "write to the client");
        }
    }
    return 0;
}

int conn_splice(struct conn *conn, int pipe_fd, size_t len, uint64_t stall_ms, struct err *err)
{
    while (len > 0) {
        ssize_t n = splice(pipe_fd, NULL, conn->fd, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

        if (n > 0)
            len -= (size_t) n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return err_sys(err, n == 0 ? EPIPE : errno, "write to the client");
        else if (errno == EAGAIN && wait_for(conn, POLLOUT, stall_ms, err) < 0)
            return -1;
    }
    return 0;
}
