#include "server/preview/relay_own.h"

#include "base/io.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

/* From the client: first what came along with its request. */
static int pipe_up(struct relay *r, struct err *err)
{
    struct conn *conn = r->x->conn;
    ssize_t n;

    if (r->up_len > 0)
        return relay_send_up(r);
    if (r->up_over)
        return 0;
    n = conn->have > 0 ? conn_read(conn, r->up, sizeof r->up, 0, err)
                       : conn_recv(conn, r->up, sizeof r->up);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n < 0)
        return err_set(err, ERR_UNAVAILABLE, "the client went away");
    if (n == 0) {
        r->up_over = true;
        (void) shutdown(r->fd, SHUT_WR);
    }
    r->up_at = 0;
    r->up_len = (size_t) n;
    return 1;
}

static int pipe_down(struct relay *r, struct err *err)
{
    ssize_t n;

    if (r->head_len > 0 || r->out_len > 0)
        return relay_send_down(r, err);
    if (r->down_over)
        return 0;
    n = recv(r->fd, relay_base(r), RELAY_PIECE, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        r->down_over = true;
        conn_end(r->x->conn);
        return 1;
    }
    r->out = relay_base(r);
    r->out_len = (size_t) n;
    return 1;
}

int relay_pipe(struct relay *r, struct err *err)
{
    const struct conn *conn = r->x->conn;

    r->up_over = false;
    r->up_len = 0;
    while (!r->up_over || !r->down_over || r->out_len > 0) {
        int up = pipe_up(r, err), down = up < 0 ? -1 : pipe_down(r, err);
        short port = 0, client = 0;

        if (up < 0 || down < 0)
            return -1;
        if (up + down > 0) {
            r->moved_ms = io_now_ms();
            continue;
        }
        if (r->up_len > 0)
            port |= POLLOUT;
        else if (!r->up_over)
            client |= conn->read_wants;
        if (r->out_len > 0 || r->head_len > 0)
            client |= conn->write_wants;
        else if (!r->down_over)
            port |= POLLIN;
        if (relay_wait(r, port, client, err) < 0)
            return -1;
    }
    return 0;
}
