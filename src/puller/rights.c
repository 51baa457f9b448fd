/* cove-pull reads what registries send. It runs cove-dial, which loads libraries and looks up names: which calls those make differs from host
 * to host, so that all are allowed but the deadly ones, namespaces, and sockets of kinds that no registry needs. Nothing is
 * written but files that are open already. */
#include "puller/rights.h"

#include "base/lockdown.h"
#include "base/own.h"
#include "puller/message.h"

#include <sys/socket.h>
#include <unistd.h>

#define NAMESPACES 0x7e020000u /* all of CLONE_NEW… that clone takes */

/* clang-format off */
static const struct lockdown_call own_calls[] = {
    CALL(execve), /* of what Landlock leaves */
    CALL_IF(clone, CALL_HAS_NONE, 0, NAMESPACES),
    CALL_IF(socket, CALL_IS, 0, AF_UNIX), CALL_IF(socket, CALL_IS, 0, AF_INET), CALL_IF(socket, CALL_IS, 0, AF_INET6),
    CALL_IF(socket, CALL_IS, 0, AF_NETLINK), /* which addresses are the host's own */
};
/* clang-format on */
static const struct lockdown_rows own_rows = { "cove-dial, and connections to registries",
                                               own_calls, ARRAY_LEN(own_calls) };

static const struct lockdown puller = {
    .program = "cove-pull",
    .alone = true,
    .any_call = true,
    .rows = { &own_rows },
};

static const struct lockdown_path paths[] = {
    { LOCKDOWN_RUN, PULLER_DIALER, NULL },
    { LOCKDOWN_RUN, -1, "/usr" }, /* libraries, certificates of authorities */
    { LOCKDOWN_RUN, -1, "/lib" },
    { LOCKDOWN_RUN, -1, "/lib64" },
    { LOCKDOWN_READ, -1, "/etc" },
    { LOCKDOWN_READ, -1, "/etc/resolv.conf" }, /* where it leads to, as a link */
    { LOCKDOWN_READ, -1, "/var/lib/ca-certificates" },
    { LOCKDOWN_CHANGE, -1, "/dev/null" },
    { LOCKDOWN_READ, -1, "/dev/urandom" },
};

int rights_drop(struct err *err)
{
    if (geteuid() == 0 || getuid() == 0)
        return err_set(err, ERR_DENIED, "cove-pull must not run as root");
    return lockdown_enter(&puller, paths, ARRAY_LEN(paths), err);
}
