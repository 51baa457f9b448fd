/* The server speaks to the Internet and to hostile sandboxes, and holds keys, secrets and the keeper's socket. So it runs nothing,
 * makes no process, has no memory that is writable and executable, and opens files of its own directory only, besides what the
 * host's libraries read.
 *
 * Files are named by their directory, because administrators and tools replace files by renaming others over them. */
#include "coved/rights.h"

#include "base/lockdown.h"
#include "base/log.h"
#include "base/own.h"
#include "server/serve/tls.h"

#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* clang-format off */
static const struct lockdown_call own_calls[] = {
    CALL_IF(socket, CALL_IS, 0, AF_UNIX),    /* the keeper, the gateway */
    CALL_IF(socket, CALL_IS, 0, AF_INET), CALL_IF(socket, CALL_IS, 0, AF_INET6), /* clients */
    CALL_IF(socket, CALL_IS, 0, AF_NETLINK), /* which addresses are the host's own, and whose a connection is */
    CALL(splice), /* large files, from an agent's connection to the client's */
    CALL(fchown), /* of a server that is root's: new files of the store are for the owner of its directory */
    CALL(linkat), /* a new key gets its name only if there is none */
};
/* clang-format on */
static const struct lockdown_rows own_rows = { "what only the server needs", own_calls,
                                               ARRAY_LEN(own_calls) };

static const struct lockdown server = {
    .program = "coved",
    .capabilities = LOCKDOWN_CAP(CAP_NET_BIND_SERVICE) /* started without `cove up` it has none */ |
                    LOCKDOWN_CAP(CAP_CHOWN), /* for fchown, see above */
    .alone = true,
    .rows = { &lockdown_runtime, &lockdown_threads, &lockdown_bytes, &lockdown_names,
              &lockdown_sockets, &lockdown_data_only, &own_rows },
};

#define PATHS_MAX 32

struct paths {
    struct lockdown_path at[PATHS_MAX];
    char text[PATHS_MAX][PATH_MAX];
    size_t count;
};

static void add(struct paths *p, enum lockdown_right right, const char *path)
{
    if (p->count == PATHS_MAX)
        return;
    (void) snprintf(p->text[p->count], PATH_MAX, "%s", path);
    p->at[p->count] = (struct lockdown_path){ right, -1, p->text[p->count] };
    p->count++;
}

/* The directory that has the file, and the one that has what it is a link to. */
static void add_around(struct paths *p, const char *file)
{
    char path[PATH_MAX], whole[PATH_MAX];

    if (!file[0])
        return;
    (void) snprintf(path, sizeof path, "%s", file);
    add(p, LOCKDOWN_READ, dirname(path));
    if (realpath(file, whole))
        add(p, LOCKDOWN_READ, dirname(whole));
}

static void find_paths(struct paths *p, const struct config *config, const char *own,
                       const char *config_path)
{
    /* clang-format off */
    static const char *const read[] = {
        "/etc",   /* resolv.conf, authorities, OpenSSL's settings, the machine's id */
        "/usr/lib/ssl", "/usr/share", "/usr/local/share", /* authorities, time zones */
        "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", /* what resolv.conf is a link to */
        "/proc/self", "/proc/loadavg", "/proc/meminfo", "/proc/sys/kernel", "/proc/sys/vm", /* how much the host has left */
        "/sys/devices/system/cpu", "/sys/kernel/mm", /* how many processors; the allocator's questions */
        "/dev/urandom", "/dev/random",
    };
    /* clang-format on */

    add(p, LOCKDOWN_WRITE, own);
    add(p, LOCKDOWN_WRITE, "/dev/null");
    for (size_t i = 0; i < ARRAY_LEN(read); i++)
        add(p, LOCKDOWN_READ, read[i]);
    add_around(p, config_path);
    add_around(p, config->tls_cert);
    add_around(p, config->tls_key);
    add_around(p, config->network_ca);
    add_around(p, config->sandbox_ca);
}

int rights_drop(const struct config *config, const char *config_path, struct err *err)
{
    auto_free struct paths *paths = calloc(1, sizeof *paths);
    char own[sizeof config->state + sizeof "/server"];

    if (lockdown_landlock_version() == 0)
        log_line(LOG_WARNING,
                 "no Landlock in this kernel: the user id alone keeps files from coved");
    if (!paths)
        return err_set(err, ERR_NO_MEMORY, "no memory to start");
    (void) snprintf(own, sizeof own, "%s/server", config->state);
    (void) mkdir(
        own,
        0700); /* cannot be allowed before it is there; who cannot make it is told by the store */
    (void) setenv("SQLITE_TMPDIR", own, 1);
    tls_load(); /* while code can still be loaded */
    find_paths(paths, config, own, config_path);
    return lockdown_enter(&server, paths->at, paths->count, err);
}
