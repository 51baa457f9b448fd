/* admin.h - the server's side of <state>/cove.sock (base/admin_socket.h).
 *
 * Owns:    app->admin_fd and app->admin_rule.
 * Callers: coved's main, before rights are dropped; server.c asks about each peer. */
#ifndef COVE_SERVER_SERVE_ADMIN_H
#define COVE_SERVER_SERVE_ADMIN_H

#include "server/app/app.h"

/* Behind network_prepare, which knows the gateway's user. A server that may not make the socket continues without it. */
int admin_prepare(struct app *app, struct err *err);

/* Whether the other end of a connection to the socket is an administrator; *ret_uid: who it is. */
bool admin_knows(struct app *app, int fd, uid_t *ret_uid);

#endif
