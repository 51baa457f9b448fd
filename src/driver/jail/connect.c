#include "driver/jail/connect.h"

#include "base/log.h"
#include "base/own.h"
#include "keeper/talk.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int jail_connect(struct keeper *k, const struct sandbox *s, int *ret_fd, struct err *err)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    auto_close int fd = -1;
    struct ucred peer;
    socklen_t len = sizeof peer;

    fd = net_socket_inside(&k->host->nets, s->pid.fd, SOCK_NONBLOCK, err);
    if (fd < 0)
        return -1;
    memcpy(to.sun_path + 1, BOOT_AGENT_SOCKET, sizeof BOOT_AGENT_SOCKET - 1);
    if (connect(fd, (const struct sockaddr *) &to,
                (socklen_t) (offsetof(struct sockaddr_un, sun_path) + sizeof BOOT_AGENT_SOCKET)) <
        0)
        return errno == EAGAIN
                   ? err_set(err, ERR_TOO_MANY, "sandbox '%s' has too many connections waiting",
                             s->info.id)
                   : err_sys(err, errno, "connect to sandbox '%s'", s->info.id);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid != s->info.pid) {
        log_line(LOG_ERROR, "sandbox=%s its socket belongs to pid=%d, not to pid=%d", s->info.id,
                 (int) peer.pid, s->info.pid);
        return err_set(err, ERR_UNAVAILABLE, "sandbox '%s' does not answer", s->info.id);
    }
    if (fcntl(fd, F_SETFL, 0) < 0)
        return err_sys(err, errno, "make the connection block");
    *ret_fd = take_fd(&fd);
    return 0;
}

static int dial(const struct nets *nets, int pidfd, pid_t pid, const char *name, bool *ret_refused,
                struct err *err)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    auto_close int fd = net_socket_inside(nets, pidfd, 0, err);
    struct timeval patience = { .tv_sec = TALK_PATIENCE_MS / 1000 };
    struct ucred peer;
    socklen_t len = sizeof peer;

    *ret_refused = false;
    (void) snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "%s", name);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, (const struct sockaddr *) &to,
                (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) < 0) {
        *ret_refused = errno == ECONNREFUSED;
        return err_sys(err, errno, "reach %s", name);
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid != pid)
        return err_set(err, ERR_UNAVAILABLE, "another program listens in the place of %s", name);
    return take_fd(&fd);
}

int connect_dial(const struct nets *nets, int pidfd, pid_t pid, const char *name, struct err *err)
{
    bool ignored;

    return dial(nets, pidfd, pid, name, &ignored, err);
}

int connect_listens(const struct nets *nets, int pidfd, pid_t pid, const char *name,
                    struct err *err)
{
    struct pollfd dead = { .fd = pidfd, .events = POLLIN };
    bool refused;
    auto_close int fd = dial(nets, pidfd, pid, name, &refused, err);

    if (fd >= 0)
        return 1;
    return refused && poll(&dead, 1, 0) == 0 ? 0 : -1;
}

int connect_quiesce(const struct nets *nets, int pidfd, pid_t pid, struct err *err)
{
    auto_close int fd = connect_dial(nets, pidfd, pid, BOOT_AGENT_SOCKET, err);

    return fd < 0 ? -1 : talk_quiesce(fd, err);
}

int connect_resumed(const struct nets *nets, int pidfd, pid_t pid, const char *why,
                    uint64_t slept_ms, int listener, struct err *err)
{
    auto_close int fd = connect_dial(nets, pidfd, pid, BOOT_AGENT_SOCKET, err);

    return fd < 0 ? -1 : talk_resumed(fd, why, slept_ms, listener, err);
}
