/* orders.h - the orders of wire/bridge.h: connections of the keeper's workers, one after the other.
 *
 * Callers: main.c. */
#ifndef COVE_BRIDGE_ORDERS_H
#define COVE_BRIDGE_ORDERS_H

#include "mux/hub.h"

/* A socket that only processes outside the jail are heard on. Before the guest is started: nothing else has the name then. */
int orders_listen(int *ret_fd, struct err *err);

/* NULL: it was done. */
typedef void orders_done(struct hub *hub, const struct err *err);

/* How a kind of guest does them. Each begins, one at a time, and calls `done`; descriptors are taken. */
struct orders_way {
    void (*save)(struct hub *hub, int fd, orders_done *done);
    void (*load)(struct hub *hub, int fd, orders_done *done);
    void (*go)(struct hub *hub, orders_done *done); /* NULL: it runs already */
};

/* From now on orders are taken. go: the guest runs again, and its agent is to be greeted; orders_gone() follows. Takes the
 * descriptor. */
int orders_open(struct hub *hub, int fd, const struct orders_way *way, void (*go)(struct hub *hub),
                struct err *err);

/* The agent answered; or it did not, and the bridge will end. */
void orders_gone(struct hub *hub, const struct err *err);

#endif
