/* reach.h - a guest's connections to other hosts: streams that become sockets of the jail's network namespace.
 *
 * There the gateway of the sandbox hands them on, as it does for a jail (jail/gateway.h). Without a gateway there is no route, and every
 * one of them fails. Loopback and the namespace's own addresses are never reached.
 *
 * Callers: main.c. */
#ifndef COVE_BRIDGE_REACH_H
#define COVE_BRIDGE_REACH_H

#include "wire/mux.h"

#include <stdbool.h>

/* A socket that is connecting, or -1. *ret_datagrams: each message is one. */
int reach_open(const struct mux_open *open, bool *ret_datagrams);

/* Whether the sandbox has a network now. */
bool reach_network(void);

#endif
