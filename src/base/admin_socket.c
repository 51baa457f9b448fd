#include "base/admin_socket.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG    512
#define FRESH      ADMIN_SOCKET ".new"
#define GROUPS_MAX 65536 /* NGROUPS_MAX of the kernel */

/* A socket address holds 108 bytes, a directory may be longer: the address goes through a descriptor. */
static struct sockaddr_un address_in(int dir, const char *name)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    (void) snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", dir, name);
    return at;
}

/* Under another name first, and renamed when owner and mode are right: there is no moment without a socket, and none with
 * one that is open to others. */
int admin_listen(const char *directory, gid_t group, int *ret_fd, struct err *err)
{
    auto_close int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un at;

    if (dir < 0 || fd < 0)
        return err_sys(err, errno, "make a socket in %s", directory);
    if (unlinkat(dir, FRESH, 0) < 0 && errno != ENOENT)
        return err_sys(err, errno, "remove %s/" FRESH, directory);
    at = address_in(dir, FRESH);
    if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *) &at, sizeof at) < 0 ||
        listen(fd, BACKLOG) < 0)
        return err_sys(err, errno, "listen at %s/" ADMIN_SOCKET, directory);
    if (group != ADMIN_ROOT && (fchownat(dir, FRESH, (uid_t) -1, group, AT_SYMLINK_NOFOLLOW) < 0 ||
                                fchmodat(dir, FRESH, 0660, 0) < 0)) {
        err_sys(err, errno, "give %s/" ADMIN_SOCKET " to its group", directory);
        goto undo;
    }
    if (renameat(dir, FRESH, dir, ADMIN_SOCKET) < 0) {
        err_sys(err, errno, "put %s/" ADMIN_SOCKET " in its place", directory);
        goto undo;
    }
    *ret_fd = take_fd(&fd);
    return 0;

undo:
    (void) unlinkat(dir, FRESH, 0);
    return -1;
}

int admin_connect(const char *directory, int *ret_fd, struct err *err)
{
    auto_close int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un at;

    if (fd < 0)
        return err_sys(err, errno, "make a socket");
    if (dir >= 0) {
        at = address_in(dir, ADMIN_SOCKET);
        if (connect(fd, (const struct sockaddr *) &at, sizeof at) == 0) {
            *ret_fd = take_fd(&fd);
            return 0;
        }
    }
    if (errno == EACCES)
        return err_set(err, ERR_DENIED,
                       "no permission for %s/" ADMIN_SOCKET
                       ": be root or a member of the group of 'cove up --group', or name a server "
                       "with --server",
                       directory);
    return err_set(err, ERR_UNAVAILABLE, "no server runs at %s: start it with 'cove up'",
                   directory);
}

bool admin_allows(const struct admin_rule *rule, uid_t uid, gid_t gid, const gid_t *groups,
                  size_t count)
{
    bool member;

    if (uid == 0)
        return true;
    if (uid >= ADMIN_ID_MAX || rule->group == ADMIN_ROOT)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(rule->never); i++)
        if (uid == rule->never[i])
            return false;
    member = gid == rule->group;
    for (size_t i = 0; i < count && !member; i++)
        member = groups[i] == rule->group;
    return member;
}

bool admin_peer(int fd, const struct admin_rule *rule, uid_t *ret_uid)
{
    auto_free gid_t *groups = NULL;
    struct ucred peer;
    socklen_t len = sizeof peer;

    *ret_uid = ADMIN_NOBODY;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    *ret_uid = peer.uid;
    if (admin_allows(rule, peer.uid, peer.gid, NULL, 0))
        return true;
    groups = calloc(GROUPS_MAX, sizeof *groups);
    len = GROUPS_MAX * sizeof *groups;
    if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
        return false;
    return admin_allows(rule, peer.uid, peer.gid, groups, len / sizeof *groups);
}
