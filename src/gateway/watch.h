/* watch.h - keeps a gateway up for a coved that was started without `cove up`.
 *
 * Owns:    the gateways that it starts, one at a time; each gets the listening socket.
 * Callers: main.c. */
#ifndef COVE_GATEWAY_WATCH_H
#define COVE_GATEWAY_WATCH_H

#include "base/err.h"

/* Until standard input ends: coved has the other end, and is gone then. */
int watch(int listen_fd, struct err *err);

#endif
