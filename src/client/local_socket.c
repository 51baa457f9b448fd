#include "client/local_socket.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4

/* A socket address holds 108 bytes, a directory may be longer: the address goes through a descriptor. */
static struct sockaddr_un address_in(int dir, const char *name)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    (void) snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", dir, name);
    return at;
}

int local_listen(const char *directory, const char *name, int type, uid_t uid, int *ret_fd,
                 struct err *err)
{
    auto_close int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_close int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    struct sockaddr_un at;

    if (dir < 0 || fd < 0)
        return err_sys(err, errno, "make a socket in %s", directory);
    if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
        return err_sys(err, errno, "remove %s/%s", directory, name);
    at = address_in(dir, name);
    /* The mode of the file is that of the socket while it is bound: no other process gets in between. */
    if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *) &at, sizeof at) < 0 ||
        fchownat(dir, name, uid, (gid_t) -1, AT_SYMLINK_NOFOLLOW) < 0 || listen(fd, BACKLOG) < 0)
        return err_sys(err, errno, "listen at %s/%s", directory, name);
    *ret_fd = take_fd(&fd);
    return 0;
}

int local_connect(const char *directory, const char *name, int type, int *ret_fd, struct err *err)
{
    auto_close int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_close int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    struct ucred peer;
    socklen_t len = sizeof peer;
    struct sockaddr_un at;

    if (dir < 0 || fd < 0)
        return err_sys(err, errno, "open %s", directory);
    at = address_in(dir, name);
    if (connect(fd, (const struct sockaddr *) &at, sizeof at) < 0)
        return err_sys(err, errno, "connect to %s/%s", directory, name);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return err_sys(err, errno, "who listens at %s/%s", directory, name);
    if (peer.uid != 0 && peer.uid != geteuid())
        return err_set(err, ERR_DENIED, "user %u listens at %s/%s, not root", (unsigned) peer.uid,
                       directory, name);
    *ret_fd = take_fd(&fd);
    return 0;
}
