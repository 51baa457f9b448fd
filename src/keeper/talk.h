/* talk.h - the two things that the keeper says to an agent itself, before and after it is saved.
 *
 * Callers: drivers, in workers, with a connection to an agent that they checked: they wait for an answer, though not for
 *          ever. */
#ifndef COVE_KEEPER_TALK_H
#define COVE_KEEPER_TALK_H

#include "base/err.h"
#include "wire/agent.h"

#include <stdint.h>

#define TALK_PATIENCE_MS                                                                           \
    10000 /* of one conversation, from its begin: to connect, to ask, and for the whole answer */

/* Why an agent hears AGENT_RESUMED. */
#define TALK_RESUME   "resume"   /* it was saved, and is loaded again */
#define TALK_FORK     "fork"     /* it is a copy */
#define TALK_CONTINUE "continue" /* it was or was to be saved, and has never stopped being itself */

/* Every connection is closed, and nothing is under way inside the agent, which gives up its listener of refused calls. Whether
 * or not this fails, the agent has to be put back (driver/jail/posture.h) before its sandbox continues. */
int talk_quiesce(int fd, struct err *err);

/* listener: a duplicate goes to the agent; -1: none. slept_ms: how long it was on disk. */
int talk_resumed(int fd, const char *why, uint64_t slept_ms, int listener, struct err *err);

#endif
