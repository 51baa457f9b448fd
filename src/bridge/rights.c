#include "bridge/rights.h"

#include "base/lockdown.h"
#include "base/own.h"

#include <sys/prctl.h>
#include <sys/socket.h>

/* clang-format off */
static const struct lockdown_call copy_calls[] = {
    CALL(read), CALL(write), CALL(pread64), CALL(lseek), CALL(close), CALL(fcntl), CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_wait), CALL(epoll_pwait),
    CALL(sendto), CALL(recvfrom), CALL(sendmsg), CALL(recvmsg),
};
static const struct lockdown_rows copy_rows = { "waiting and copying", copy_calls, ARRAY_LEN(copy_calls) };

static const struct lockdown_call socket_calls[] = {
    CALL_IF(socket, CALL_IS, 0, AF_INET), CALL_IF(socket, CALL_IS, 0, AF_INET6),
    CALL(bind), CALL(connect), CALL(accept4), CALL(shutdown), CALL(getsockopt), CALL(setsockopt),
};
static const struct lockdown_rows socket_rows = { "the keeper's connections, and the guest's to the gateway", socket_calls, ARRAY_LEN(socket_calls) };
/* clang-format on */

static const struct lockdown bridge = {
    .program = "cove-bridge",
    .alone = true,
    .rows = { &lockdown_runtime, &lockdown_data_only, &copy_rows, &socket_rows },
};

int rights_drop(struct err *err)
{
    (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return lockdown_enter(&bridge, NULL, 0, err);
}

bool rights_is_outside(int fd)
{
    struct ucred peer = { .pid = -1 };
    socklen_t len = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid == 0;
}
