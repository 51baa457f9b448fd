/* The gateway reads what hostile sandboxes and the Internet send. It makes no process, no unix socket and no listening one, opens no file
 * for writing, and has no memory that is executable but its own code. */
#include "gateway/rights.h"

#include "base/lockdown.h"
#include "base/log.h"
#include "base/own.h"
#include "egress/tls.h"

#include <sys/socket.h>
#include <unistd.h>

/* clang-format off */
static const struct lockdown_call copy_calls[] = {
    CALL(read), CALL(write), CALL(readv), CALL(writev), CALL(close), CALL(fcntl), CALL(fstat), CALL(lseek), CALL(pread64),
    CALL(poll), CALL(ppoll), CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_wait), CALL(epoll_pwait), CALL(epoll_pwait2),
    CALL(eventfd2),
};
static const struct lockdown_rows copy_rows = { "waiting and copying", copy_calls, ARRAY_LEN(copy_calls) };

static const struct lockdown_call read_calls[] = {
    CALL(open), CALL(openat), CALL(stat), CALL(newfstatat), CALL(statx), CALL(access), CALL(faccessat), CALL(faccessat2),
    CALL(readlink), CALL(readlinkat), CALL(getdents64),
};
static const struct lockdown_rows read_rows = { "resolv.conf, certificates of authorities", read_calls, ARRAY_LEN(read_calls) };

static const struct lockdown_call socket_calls[] = {
    CALL_IF(socket, CALL_IS, 0, AF_INET), CALL_IF(socket, CALL_IS, 0, AF_INET6),
    CALL_IF(socket, CALL_IS, 0, AF_NETLINK), /* which addresses are the host's own, and when they change */
    CALL(bind), CALL(connect), CALL(accept), CALL(accept4), CALL(shutdown), CALL(getsockname), CALL(getpeername),
    CALL(getsockopt), CALL(setsockopt), CALL(sendto), CALL(recvfrom), CALL(sendmsg), CALL(recvmsg),
};
static const struct lockdown_rows socket_rows = { "connections to the Internet, and those of sandboxes", socket_calls, ARRAY_LEN(socket_calls) };
/* clang-format on */

static const struct lockdown gateway = {
    .program = "cove-gateway",
    .alone = true,
    .rows = { &lockdown_runtime, &lockdown_threads, &lockdown_data_only, &copy_rows, &read_rows,
              &socket_rows },
};

/* Directories, since administrators and tools replace files by renaming others over them. */
static const struct lockdown_path paths[] = {
    { LOCKDOWN_READ, -1, "/etc" },
    { LOCKDOWN_READ, -1, "/usr/lib/ssl" },
    { LOCKDOWN_READ, -1, "/usr/share/ca-certificates" },
    { LOCKDOWN_READ, -1, "/usr/local/share/ca-certificates" },
    { LOCKDOWN_READ, -1, "/usr/share/pki" },
    { LOCKDOWN_READ, -1, "/run/systemd/resolve" }, /* what resolv.conf may be a link to */
    { LOCKDOWN_READ, -1, "/run/resolvconf" },
    { LOCKDOWN_READ, -1, "/run/NetworkManager" },
};

int rights_drop(struct err *err)
{
    char why[ERR_MSG_MAX];

    if (geteuid() == 0 || getuid() == 0)
        return err_set(err, ERR_DENIED, "the gateway must not run as root");
    if (lockdown_landlock_version() == 0)
        log_line(LOG_WARNING, "no Landlock in this kernel: the user id alone keeps files away");
    /* The library is set up now, while code can still be loaded. Whether it can read authorities is told to who needs some. */
    tls_trust_free(tls_trust_new(NULL, why, sizeof why));
    return lockdown_enter(&gateway, paths, ARRAY_LEN(paths), err);
}
