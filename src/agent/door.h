/* door.h - who comes in: connections from outside by the keeper's listener, sudo from inside.
 *
 * Owns:    both listeners. Each side has its own limit, so that a crowd inside leaves the outside
 * its places; who comes too late is told so. */
#ifndef COVE_AGENT_DOOR_H
#define COVE_AGENT_DOOR_H

#include "agent/core/agent.h"

int door_open(struct agent *agent, int listener, struct err *err);

/* Whoever waits outside, not yet accepted, is let go. */
void door_turn_away(struct agent *agent);

#endif
