#include "driver/guest/order.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "driver/jail/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PIPE_BYTES (1 << 20)
#define TELLS      6 /* of an agent that is slow to answer: a machine that is emulated is */

int order_possible(const struct keeper *k, const struct sandbox *s, struct err *err)
{
    switch (connect_listens(&k->host->nets, s->pid.fd, s->info.pid, BRIDGE_SOCKET, err)) {
    case 1:
        return 0;
    case 0:
        return err_set(err, ERR_UNSUPPORTED,
                       "sandbox '%s' was started by an earlier version, which could not save it",
                       s->info.id);
    default:
        return -1;
    }
}

int order_give(const struct keeper *k, const struct sandbox *s, enum bridge_op op, int with_fd,
               int *ret_answer, struct err *err)
{
    const struct bridge_order order = { .op = op };
    auto_close int fd = connect_dial(&k->host->nets, s->pid.fd, s->info.pid, BRIDGE_SOCKET, err);

    if (fd < 0)
        return -1;
    if (io_send_fds(fd, &order, sizeof order, &with_fd, with_fd >= 0) != (ssize_t) sizeof order)
        return err_sys(err, errno, "ask the bridge");
    *ret_answer = take_fd(&fd);
    return 0;
}

int order_begin(const struct keeper *k, const struct sandbox *s, enum bridge_op op, int *ret_pipe,
                int *ret_answer, struct err *err)
{
    auto_close int from = -1, to = -1;
    int pair[2], rc;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    from = pair[0];
    to = pair[1];
    (void) fcntl(from, F_SETPIPE_SZ, PIPE_BYTES);
    rc = order_give(k, s, op, op == BRIDGE_SAVE ? to : from, ret_answer, err);
    if (rc == 0)
        *ret_pipe = op == BRIDGE_SAVE ? take_fd(&from) : take_fd(&to);
    return rc;
}

/* A bridge's word, and not the keeper's own code's. */
int order_end(int fd, uint64_t patience_ms, struct err *err)
{
    struct err said;

    if (io_read_until(fd, &said, sizeof said, io_now_ms() + patience_ms) < 0)
        return errno == ETIMEDOUT ? err_set(err, ERR_TIMEOUT, "the bridge does not answer")
                                  : err_set(err, ERR_UNAVAILABLE, "the guest has ended");
    if (said.kind == ERR_NONE)
        return 0;
    said.msg[sizeof said.msg - 1] = '\0';
    return err_set(err, said.kind < ERR_KIND_COUNT ? said.kind : ERR_INTERNAL, "%s", said.msg);
}

int order_run(const struct keeper *k, const struct sandbox *s, struct err *err)
{
    auto_close int fd = -1;

    return order_give(k, s, BRIDGE_GO, -1, &fd, err) < 0 ? -1 : order_end(fd, ORDER_MS, err);
}

int order_tell(const struct keeper *k, const struct sandbox *s, const char *why, uint64_t slept_ms,
               struct err *err)
{
    int rc = -1;

    for (int i = 0; i < TELLS; i++) {
        rc = connect_resumed(&k->host->nets, s->pid.fd, s->info.pid, why, slept_ms, -1, err);
        if (rc == 0 || err->kind != ERR_TIMEOUT)
            break;
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err->msg);
    }
    return rc;
}

int order_go(const struct keeper *k, const struct sandbox *s, const char *why, uint64_t slept_ms,
             struct err *err)
{
    return order_run(k, s, err) < 0 ? -1 : order_tell(k, s, why, slept_ms, err);
}
