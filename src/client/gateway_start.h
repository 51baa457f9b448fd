/* gateway_start.h - how cove-gateway is started, and the unix socket by which coved reaches it: <directory>/gateway.sock.
 *
 * Who starts the gateway listens, and hands the listening socket to every gateway that it starts: connections wait
 * there while one ended and the next has not begun.
 *
 * Callers: cli/up/gate.c for `cove up`, server/gateway/gateway_child.c and gateway/watch.c for a coved that runs alone; server/gateway/gateway.c
 *          connects. */
#ifndef COVE_CLIENT_GATEWAY_START_H
#define COVE_CLIENT_GATEWAY_START_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

#define GATEWAY_SOCKET "gateway.sock"
#define GATEWAY_USER   "cove-gateway"

/* In the place of one that is there. Only that user, and root, may connect. */
int gateway_listen(const char *directory, uid_t uid, int *ret_fd, struct err *err);
/* ERR_DENIED: another user than root or the caller listens there. */
int gateway_connect(const char *directory, int *ret_fd, struct err *err);

struct gateway_start {
    int listen_fd, program_fd;
    uid_t uid; /* 0: as the caller is */
    gid_t gid;
    uid_t peer; /* who may connect, besides root */
    bool verbose;
};

/* In the child, first: gives up all privilege and what is open. Then the caller may change what setuid undoes, and
 * calls gateway_exec. Both return only if they fail, with errno. */
int gateway_drop_privilege(const struct gateway_start *start);
void gateway_exec(const struct gateway_start *start);

#endif
