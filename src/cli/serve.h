/* serve.h - starts coved beside the keeper: without privilege, on a socket that `cove up` listens on.
 *
 * The socket stays open here, so that connections wait instead of being refused while coved is started anew.
 *
 * Owns:    the listening sockets, and the directory <state>/server, which is the server's user's. Certificate and key are
 *          copied there: root's own, 0600, could not be read without privilege.
 * Callers: up.c. */
#ifndef COVE_CLI_SERVE_H
#define COVE_CLI_SERVE_H

#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define SERVE_LISTEN_PRESET "127.0.0.1:8000"

struct serve {
    int listen_fd;
    int tls_fd;          /* -1: no second address */
    int probe_fd;        /* a question that was not answered yet */
    char listen[80];     /* with the port that 0 became */
    char tls_listen[80]; /* the same; "" without */
    /* As they were given; NULL: not. */
    const char *domain, *public_domain, *tls_cert, *tls_key;
    uid_t uid;
    gid_t gid;        /* of the user */
    gid_t keeper_gid; /* who may reach the keeper's socket */
    bool verbose;
    pid_t pid; /* -1: not running */
    unsigned ends;
    unsigned long long since_ms; /* of the first of those ends */
};

/* The user "cove", made if need be. */
int serve_user(struct serve *serve, struct err *err);
/* Listens; a port that is taken is refused here, before anything was started. */
int serve_listen(struct serve *serve, const char *listen, const char *tls_listen, struct err *err);
/* Takes certificate and key as they are now. */
int serve_copy_tls(const struct serve *serve, const char *state, struct err *err);
/* The directory and the program. */
int serve_start(struct serve *serve, const char *state, const sigset_t *mask, struct err *err);
/* It ended by itself: starts it again, or -1 when it keeps ending. */
int serve_again(struct serve *serve, const char *state, const sigset_t *mask, struct err *err);
/* Whether it answers; waits a little. */
bool serve_is_ready(struct serve *serve, int wait_ms);

#endif
