/* door.h - who comes in: connections from outside by the keeper's listener, sudo from inside.
 *
 * Owns:    both listeners. Each side has its own limit, so that a crowd inside leaves the outside
 * its places; who comes too late is told so. */
#ifndef COVE_AGENT_DOOR_H
#define COVE_AGENT_DOOR_H

#include "agent/core/agent.h"

/* listener -1: there is none, all from outside come by the trunk (trunk.h). */
int door_open(struct agent *agent, int listener, struct err *err);

/* A connection from outside; its id (conn_by_id). 0: it was not taken, and the caller still has it; if there are too many it was told so. */
uint64_t door_admit(struct agent *agent, int fd);

/* Connections that were not accepted yet are closed. */
void door_turn_away(struct agent *agent);

#endif
