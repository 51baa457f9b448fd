/* cove-gateway: what sandboxes may reach, they reach through this program. It holds their sockets and connections, and the secrets
 * that are put into their requests; it has no keeper, no store and no directory. coved tells it what to do (egress/message.h). */
#include "base/log.h"
#include "base/own.h"
#include "base/parse.h"
#include "gateway/rights.h"
#include "gateway/serve.h"
#include "gateway/watch.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

struct options {
    uint64_t fd, peer;
    bool watch, verbose;
};

static void usage(FILE *out)
{
    (void) fputs("usage: cove-gateway --fd N [--peer UID] [--watch] [--verbose]\n\n"
                 "Started by 'cove up', or by coved. N is a listening unix socket; besides root,\n"
                 "the user UID may connect. --watch: starts gateways, one at a time, until\n"
                 "standard input ends.\n",
                 out);
}

/* NULL: not an option with a number. */
static uint64_t *number_of(struct options *options, const char *name)
{
    return strcmp(name, "--fd") == 0     ? &options->fd
           : strcmp(name, "--peer") == 0 ? &options->peer
                                         : NULL;
}

static int parse(struct options *options, int argc, char **argv, struct err *err)
{
    for (int i = 1; i < argc; i++) {
        uint64_t *number = number_of(options, argv[i]);

        if (strcmp(argv[i], "--watch") == 0)
            options->watch = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            options->verbose = true;
        else if (!number || i + 1 == argc)
            return err_set(err, ERR_USAGE, "%.40s: unknown option, or its value is missing",
                           argv[i]);
        else if (parse_u64(argv[++i], number, err) < 0)
            return -1;
    }
    return options->fd < 3 || options->fd > 65535
               ? err_set(err, ERR_USAGE, "--fd: a listening socket is needed")
               : 0;
}

/* Our parent may have left more open than was meant for us. */
static void close_others(int fd)
{
    if (fd > STDERR_FILENO + 1)
        (void) close_range(STDERR_FILENO + 1, (unsigned) fd - 1, 0);
    (void) close_range((unsigned) fd + 1, UINT_MAX, 0);
}

/* Connections take two descriptors each. */
static void raise_descriptor_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &files);
    }
}

static bool may_connect(int fd, uint64_t uid)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == 0 || peer.uid == uid);
}

/* One coved at a time. The next one waits in the socket. */
static int serve_all(const struct options *options, struct err *err)
{
    for (;;) {
        int fd = accept4((int) options->fd, NULL, NULL, SOCK_CLOEXEC);
        struct err why;

        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return err_sys(err, errno, "accept");
        if (!may_connect(fd, options->peer)) {
            log_line(LOG_WARNING, "a connection of another user is refused");
            (void) close(fd);
            continue;
        }
        log_line(LOG_DEBUG, "coved is connected");
        if (serve(fd, &why) < 0)
            log_line(LOG_ERROR, "connection to coved: %s", why.msg);
        else
            log_line(LOG_DEBUG, "coved is gone");
    }
}

int main(int argc, char **argv)
{
    struct options options = { .peer = 0 };
    struct err err;
    int r;

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        (void) puts("cove-gateway " COVE_VERSION);
        return 0;
    }
    log_init("cove-gateway", LOG_INFO);
    r = parse(&options, argc, argv, &err);
    if (r < 0)
        usage(stderr);
    log_init("cove-gateway", options.verbose ? LOG_DEBUG : LOG_INFO);
    (void) signal(SIGPIPE, SIG_IGN);
    (void) prctl(PR_SET_NAME, "cove-gateway"); /* before Linux 6.14: the number of a descriptor */
    raise_descriptor_limit();
    if (r == 0)
        close_others((int) options.fd);
    if (r == 0 && options.watch)
        r = watch((int) options.fd, &err);
    else if (r == 0 && (r = rights_drop(&err)) == 0)
        r = serve_all(&options, &err);
    if (r < 0)
        log_line(LOG_ERROR, "%s", err.msg);
    return r < 0 ? err_kind_info(err.kind)->exit_code : 0;
}
