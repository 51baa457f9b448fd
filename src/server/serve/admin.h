/* admin.h - the server's side of <state>/cove.sock (base/admin_socket.h), and the lock that makes this the only server of
 * its state directory.
 *
 * Owns:    app->admin_fd and app->admin_rule; the lock file <state>/server/lock, for as long as the process lives.
 * Callers: coved's main, before rights are dropped; server.c asks about each peer. */
#ifndef COVE_SERVER_SERVE_ADMIN_H
#define COVE_SERVER_SERVE_ADMIN_H

#include "server/app/app.h"

/* ERR_STATE: another server has the state directory. Before anything is made in it. */
int admin_lock(const char *state, struct err *err);
/* Behind network_prepare, which knows the gateway's user. A server that may not make the socket continues without it. */
int admin_prepare(struct app *app, struct err *err);

/* Whether the other end of a connection to the socket is an administrator; *ret_uid: who it is. */
bool admin_knows(struct app *app, int fd, uid_t *ret_uid);

#endif
