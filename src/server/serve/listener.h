/* listener.h - where clients connect: `listen`, with `tls_listen` a second address for TLS alone, and the socket of
 * administrators (admin.h).
 *
 * Sockets that the parent process listens on already are taken (LISTEN_FDS, as systemd and `cove up` do it), from
 * descriptor 3 on, in that order: then no connection is refused while the server is being restarted.
 *
 * Callers: server.c. */
#ifndef COVE_SERVER_SERVE_LISTENER_H
#define COVE_SERVER_SERVE_LISTENER_H

#include "server/app/config.h"

enum { LISTENER_PLAIN, LISTENER_TLS, LISTENER_ADMIN, LISTENERS_MAX };

struct listener {
    int fd;       /* -1: not there */
    bool admin;   /* <state>/cove.sock: a unix socket, whose peers are known */
    bool plain;   /* never TLS, since that has an address of its own */
    char at[128]; /* with the port that 0 became */
};

/* The unix socket among those that were handed over; -1: there is none. For admin.c, which makes one then. */
int listener_inherited_local(int *ret_fd, struct err *err);

/* admin_fd: -1, or a listening unix socket, which stays the caller's. *ret_loopback: all of them can be reached from this machine alone. */
int listeners_open(struct listener listeners[LISTENERS_MAX], const struct config *config,
                   int admin_fd, bool *ret_loopback, struct err *err);
void listeners_close(struct listener listeners[LISTENERS_MAX]);

#endif
