/* listener.h - where clients connect: `listen`, and with `tls_listen` a second address for TLS alone.
 *
 * Sockets that whoever started us listens on already are taken (LISTEN_FDS, as systemd and `cove up` do it), from
 * descriptor 3 on, in that order: then no connection is refused while the server is being restarted.
 *
 * Callers: server.c. */
#ifndef COVE_API_LISTENER_H
#define COVE_API_LISTENER_H

#include "api/config.h"

#define LISTENERS_MAX 2

struct listener {
    int fd;       /* -1: not there */
    bool plain;   /* never TLS, since that has an address of its own */
    char at[128]; /* with the port that 0 became */
};

/* *ret_loopback: all of them can be reached from this machine alone. */
int listeners_open(struct listener listeners[LISTENERS_MAX], const struct config *config,
                   bool *ret_loopback, struct err *err);
void listeners_close(struct listener listeners[LISTENERS_MAX]);

#endif
