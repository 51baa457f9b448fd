/* orders.h - the orders of wire/bridge.h: connections of the keeper's workers, one after the other.
 *
 * Callers: main.c. */
#ifndef COVE_BRIDGE_ORDERS_H
#define COVE_BRIDGE_ORDERS_H

#include "mux/hub.h"

/* A socket that only processes outside the jail are heard on. Before the guest is started: nothing else has the name then. */
int orders_listen(int *ret_fd, struct err *err);

/* From now on orders are taken. go: the machine runs again, and its agent is to be greeted; orders_gone() follows. Takes the
 * descriptor. */
int orders_open(struct hub *hub, int fd, void (*go)(struct hub *hub), struct err *err);

/* The agent answered; or it did not, and the bridge will end. */
void orders_gone(struct hub *hub, const struct err *err);

#endif
