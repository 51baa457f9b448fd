/* serve.h - starts coved beside the keeper: without privilege, on a socket that `cove up` listens on.
 *
 * The socket stays open here, so that connections wait instead of being refused while coved is started again.
 *
 * Owns:    the listening sockets, and the directory <state>/server, which is the server's user's. Certificate and key are
 *          copied there: root's own, 0600, could not be read without privilege.
 * Callers: up.c. */
#ifndef COVE_CLI_SERVE_H
#define COVE_CLI_SERVE_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

/* As they were given on the command line; NULL: not. */
struct serve_given {
    const char *listen, *tls_listen, *tls_cert, *tls_key;
};

/* As coved sees them: flags, then environment, then file, then default. "": none. */
struct serve_settings {
    char state[256], listen[128], tls_listen[128], tls_cert[256], tls_key[256];
};

struct serve {
    int listen_fd;
    int tls_fd;          /* -1: no second address */
    int admin_fd;        /* <state>/cove.sock */
    int probe_fd;        /* a question that was not answered yet */
    char listen[80];     /* with the port that 0 became */
    char tls_listen[80]; /* the same; "" without */
    const struct serve_given *given;
    struct serve_settings settings;
    const char *config, *domain, *public_domain; /* flags for coved; NULL: none */
    uid_t uid;
    gid_t gid;        /* of the user */
    gid_t keeper_gid; /* who may reach the keeper's socket */
    gid_t admin_gid;  /* and the server's, besides root; ADMIN_ROOT: no group */
    bool verbose;
};

/* The user "cove", made if need be. */
int serve_user(struct serve *serve, struct err *err);
/* serve->settings. Settings that coved refuses are refused here, before anything is started. */
int serve_settings(struct serve *serve, const struct serve_given *given, struct err *err);
/* Listens; a port that is taken is refused here, before anything is started. */
int serve_listen(struct serve *serve, struct err *err);

/* <state>/cove.sock; behind serve_listen, and when no other server serves the directory. */
int serve_listen_admin(struct serve *serve, struct err *err);

/* For supervise.h; `with` is the struct serve. */
int serve_start(void *with, pid_t *ret, struct err *err);
bool serve_is_ready(void *with);
void serve_reload(void *with);

#endif
