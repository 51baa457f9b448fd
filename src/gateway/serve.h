/* serve.h - one connection of coved: a gateway (egress/egress.h) that lives as long as it.
 *
 * Owns:    the gateway with all sandboxes' sockets and secrets, until the connection ends.
 * Callers: main.c. */
#ifndef COVE_GATEWAY_SERVE_H
#define COVE_GATEWAY_SERVE_H

#include "base/err.h"

/* Returns when coved is gone (0), or has said something that it must not say (-1). Takes the socket in any case. */
int serve(int fd, struct err *err);

#endif
