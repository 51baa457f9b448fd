/* gate.h - starts cove-gateway, as a user of its own and with nothing but a socket that coved connects to.
 *
 * Owns:    the listening socket <state>/gateway.sock: coved's connection waits there while the gateway is started again.
 * Callers: up.c. */
#ifndef COVE_CLI_GATE_H
#define COVE_CLI_GATE_H

#include "base/err.h"
#include "client/gateway_start.h"

struct gate {
    struct gateway_start start;
    pid_t pid; /* of the last that was started */
};

/* The user "cove-gateway", made if need be. */
int gate_user(struct gate *gate, struct err *err);
/* In the state directory, for the server's user. */
int gate_listen(struct gate *gate, uid_t server, struct err *err);

/* For supervise.h; `with` is the struct gate. */
int gate_start(void *with, pid_t *ret, struct err *err);
bool gate_is_ready(void *with);

#endif
