/* trunk.h - a guest's second door: operations come as streams of the mux over the trunk, instead of connections to a socket.
 *
 * A writer of the trunk is outside by construction: no process inside has it open. Each stream of kind MUX_AGENT is a connection of
 * its own (door_admit).
 *
 * Owns:    the trunk. Callers: main.c, once; resumed.c. */
#ifndef COVE_AGENT_TRUNK_H
#define COVE_AGENT_TRUNK_H

#include "agent/core/agent.h"

/* Takes the descriptor. The host's HELLO may come at any time, also again. */
int trunk_open(struct agent *agent, int fd, struct err *err);

/* Before gVisor is saved: egress_close_outside(). */
void trunk_close_outside(void);

#endif
