#include "bridge/orders.h"

#include "base/io.h"
#include "base/own.h"
#include "bridge/rights.h"
#include "wire/bridge.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4

static struct {
    struct hub_watch listener, caller; /* one caller at a time: the others wait in the queue */
    const struct orders_way *way;
    void (*go)(struct hub *hub);
    bool asked; /* the caller waits for its answer */
} orders = { .caller = { .fd = -1 } };

int orders_listen(int *ret_fd, struct err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memcpy(at.sun_path + 1, BRIDGE_SOCKET, sizeof BRIDGE_SOCKET - 1);
    if (fd < 0 ||
        bind(fd, (struct sockaddr *) &at,
             (socklen_t) (offsetof(struct sockaddr_un, sun_path) + sizeof BRIDGE_SOCKET)) < 0 ||
        listen(fd, BACKLOG) < 0)
        return err_sys(err, errno, "listen for orders");
    *ret_fd = take_fd(&fd);
    return 0;
}

static void end_caller(struct hub *hub)
{
    hub_unwatch(hub, &orders.caller);
    own_close(&orders.caller.fd);
    orders.asked = false;
    (void) hub_watch(hub, &orders.listener, EPOLLIN);
}

/* A caller that is gone does not hear it; what was done is done. */
static void answer(struct hub *hub, const struct err *err)
{
    static const struct err none;

    (void) send(orders.caller.fd, err ? err : &none, sizeof none, MSG_NOSIGNAL | MSG_DONTWAIT);
    end_caller(hub);
}

static void on_running(struct hub *hub, const struct err *err)
{
    if (err)
        answer(hub, err);
    else
        orders.go(hub);
}

void orders_gone(struct hub *hub, const struct err *err)
{
    if (orders.asked)
        answer(hub, err);
}

static void on_order(struct hub *hub, struct hub_watch *watch, uint32_t events)
{
    auto_close int pipe_fd = -1;
    struct bridge_order order = { 0 };
    struct err err;
    size_t count = 0;
    ssize_t n = io_recv_fds(watch->fd, &order, sizeof order, &pipe_fd, 1, &count);

    (void) events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t) sizeof order) {
        end_caller(hub);
        return;
    }
    hub_unwatch(hub, watch); /* what it says besides is not read */
    orders.asked = true;
    if (order.op == BRIDGE_SAVE && count == 1) {
        orders.way->save(hub, take_fd(&pipe_fd), answer);
    } else if (order.op == BRIDGE_LOAD && count == 1) {
        orders.way->load(hub, take_fd(&pipe_fd), answer);
    } else if (order.op == BRIDGE_GO && count == 0 && orders.way->go) {
        orders.way->go(hub, on_running);
    } else if (order.op == BRIDGE_GO && count == 0) {
        orders.go(hub);
    } else {
        err_set(&err, ERR_PROTOCOL, "unknown order %u", order.op);
        answer(hub, &err);
    }
}

static void on_caller(struct hub *hub, struct hub_watch *watch, uint32_t events)
{
    auto_close int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void) events;
    if (fd < 0 || !rights_is_outside(fd))
        return;
    orders.caller = (struct hub_watch){ .fd = take_fd(&fd), .ready = on_order };
    hub_unwatch(hub, watch);
    if (hub_watch(hub, &orders.caller, EPOLLIN) < 0)
        end_caller(hub);
}

int orders_open(struct hub *hub, int fd, const struct orders_way *way, void (*go)(struct hub *hub),
                struct err *err)
{
    orders.way = way;
    orders.go = go;
    orders.listener = (struct hub_watch){ .fd = fd, .ready = on_caller };
    return hub_watch(hub, &orders.listener, EPOLLIN) < 0 ? err_sys(err, errno, "watch for orders")
                                                         : 0;
}
