/* pulls.h - makes templates of images for tenants: the process of 'cove up' that coved orders them from (wire/pull.h).
 *
 * It is root, because templates are root's; so it reads nothing but orders of a fixed form and checked lines. What the network sends is
 * read by cove-pull, what is in layers by cove-import.
 *
 * Owns:    the listening socket <state>/pull.sock, and templates whose names begin with PULL_PREFIX.
 * Callers: up.c. */
#ifndef COVE_CLI_PULLS_H
#define COVE_CLI_PULLS_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct pulls {
    int listen_fd;
    uid_t server; /* who may order, besides root */
    uid_t import_uid, pull_uid;
    gid_t import_gid, pull_gid;
};

/* The users "cove-import" and "cove-pull", made if need be. */
int pulls_users(struct pulls *pulls, struct err *err);
/* In the state directory, for the server's user. */
int pulls_listen(struct pulls *pulls, uid_t server, struct err *err);

/* For supervise.h; `with` is the struct pulls. */
int pulls_start(void *with, pid_t *ret, struct err *err);
bool pulls_are_ready(void *with);

#endif
