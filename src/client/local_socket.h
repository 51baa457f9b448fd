/* local_socket.h - the unix sockets by which our programs reach each other: <directory>/<name>, of one user and root.
 *
 * Callers: gateway_start.c; cli/up/pulls.c listens and server/ops/ops_pull.c connects. */
#ifndef COVE_CLIENT_LOCAL_SOCKET_H
#define COVE_CLIENT_LOCAL_SOCKET_H

#include "base/err.h"

#include <sys/types.h>

/* In the place of one that is there. type: SOCK_STREAM or SOCK_SEQPACKET. Only that user, and root, may connect. */
int local_listen(const char *directory, const char *name, int type, uid_t uid, int *ret_fd,
                 struct err *err);
/* ERR_DENIED: another user than root or the caller listens there. */
int local_connect(const char *directory, const char *name, int type, int *ret_fd, struct err *err);

#endif
