/* admin_socket.h - <state>/cove.sock: where coved knows its administrators by who they are, without a key.
 *
 * Three checks, each enough to keep a stranger out: the state directory, the mode of the socket (root, or root and one
 * group), and the credentials of the peer as the kernel noted them at connect().
 *
 * Callers: `cove up` and coved listen, the command line connects.
 * Never:   trusts a user id of a sandbox, or of our own programs without privilege, whatever groups it shows. */
#ifndef COVE_BASE_ADMIN_SOCKET_H
#define COVE_BASE_ADMIN_SOCKET_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define ADMIN_SOCKET "cove.sock"
#define ADMIN_NOBODY ((uid_t) -1)
#define ADMIN_ROOT   ((gid_t) 0) /* as a group: root alone may connect */
/* Ids from here on belong to sandboxes (jail/ids.h). */
#define ADMIN_ID_MAX (1u << 20)

/* A listening socket, O_CLOEXEC and O_NONBLOCK. A file that an earlier server left is replaced: the caller holds a lock
 * that says that no other server is there. */
int admin_listen(const char *directory, gid_t group, int *ret_fd, struct err *err);
/* ERR_UNAVAILABLE: no server listens. ERR_DENIED: the caller is neither root nor a member of the group. */
int admin_connect(const char *directory, int *ret_fd, struct err *err);

struct admin_rule {
    gid_t group;    /* whose members may; ADMIN_ROOT: none */
    uid_t never[3]; /* user ids that may not, members or not; ADMIN_NOBODY: unused */
};

/* Pure: whether a peer with these ids is an administrator. */
bool admin_allows(const struct admin_rule *rule, uid_t uid, gid_t gid, const gid_t *groups,
                  size_t count);
/* The same for the other end of a connection. *ret_uid: who it is, also when it is refused. */
bool admin_peer(int fd, const struct admin_rule *rule, uid_t *ret_uid);

#endif
