/* gateway.h - egress of a sandbox: two sockets inside its network namespace that catch what leaves it.
 *
 * Owns:    a program that is attached to nothing yet. The sockets and the hold go to the caller; when the hold is closed nothing is caught any more,
 *          and nothing gets out either, since there is no device but lo.
 * Callers: ops.c.
 * Never:   decides what may leave. It cannot: no packet of a sandbox is ever forwarded by the kernel. */
#ifndef COVE_JAIL_GATEWAY_H
#define COVE_JAIL_GATEWAY_H

#include "jail/net.h"
#include "wire/keeper.h"

#include <stdbool.h>

/* To have the kernel verify the program is half of what a gateway takes, and knows nothing of the sandbox: once there was
 * one, the program of the next is made while no create waits. */
struct gateways {
    int map_fd, table_fd, program_fd; /* all or none (-1) */
    int special_fd; /* addresses that are not public, for all programs; -1: not made yet */
    bool used;      /* since the last refill */
};

void gateways_init(struct gateways *g);
/* When there is time for it; costs nothing where no sandbox has a network. */
void gateways_refill(struct gateways *g);
void gateways_close(struct gateways *g);

/* The routes alone, in the caller's network namespace: what was bound to a foreign address can be again. */
int gateway_routes(struct err *err);

/* May be called again for the same sandbox, by the server that comes after one that died. */
int gateway_open(struct gateways *g, const struct nets *nets, int pidfd, int ret_fds[GATEWAY_FDS],
                 struct err *err);

#endif
