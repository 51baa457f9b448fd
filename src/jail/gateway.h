/* gateway.h - the way out of a sandbox: two sockets inside its network namespace that catch what leaves it.
 *
 * Owns:    nothing. The sockets and the hold go to the caller; when the hold is closed nothing is caught any more,
 *          and nothing gets out either, since there is no device but lo.
 * Callers: ops.c.
 * Never:   decides what may leave. It cannot: no packet of a sandbox is ever forwarded by the kernel. */
#ifndef COVE_JAIL_GATEWAY_H
#define COVE_JAIL_GATEWAY_H

#include "jail/net.h"
#include "wire/keeper.h"

/* May be called again for the same sandbox, by whoever comes after a server that died. */
/* The routes alone, in the caller's network namespace: what was bound to a foreign address can be again. */
int gateway_routes(struct err *err);

int gateway_open(const struct nets *nets, int pidfd, int ret_fds[GATEWAY_FDS], struct err *err);

#endif
