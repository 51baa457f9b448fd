#include "base/own.h"
#include "keeper/keeper.h"

#include <errno.h>
#include <sys/epoll.h>

int keeper_watch(struct keeper *k, struct watch *watch, int fd,
                 void (*ready)(struct keeper *, struct watch *), struct err *err)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = watch };

    if (epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        err_sys(err, errno, "watch a descriptor");
        (void) close(fd);
        return -1;
    }
    watch->fd = fd;
    watch->ready = ready;
    return 0;
}

void keeper_watch_quiet(struct keeper *k, struct watch *watch, bool quiet)
{
    struct epoll_event event = { .events = quiet ? 0 : EPOLLIN, .data.ptr = watch };

    if (watch->fd >= 0)
        (void) epoll_ctl(k->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
}

void keeper_unwatch(struct keeper *k, struct watch *watch)
{
    if (watch->fd < 0)
        return;
    (void) epoll_ctl(k->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    own_close(&watch->fd);
}
