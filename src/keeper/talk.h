/* talk.h - the two things that the keeper says to an agent itself, before and after it is saved.
 *
 * Callers: save.c, loader.c and posture.c, in workers: they wait for an answer, though not for ever. */
#ifndef COVE_KEEPER_TALK_H
#define COVE_KEEPER_TALK_H

#include "base/err.h"
#include "jail/net.h"
#include "wire/agent.h"

#include <sys/types.h>

/* Why an agent hears AGENT_RESUMED. */
#define TALK_RESUME   "resume"   /* it was saved, and is loaded again */
#define TALK_FORK     "fork"     /* it is a copy */
#define TALK_CONTINUE "continue" /* it was or was to be saved, and has never stopped being itself */

/* Every connection is closed, and nothing is under way inside the agent, which gives up its listener of refused calls. Whether
 * or not this fails, the agent has to be put back (posture.h) before its sandbox goes on. */
int talk_quiesce(const struct nets *nets, int pidfd, pid_t pid, struct err *err);

/* listener: a duplicate goes to the agent; -1: none. slept_ms: how long it was on disk. */
int talk_resumed(const struct nets *nets, int pidfd, pid_t pid, const char *why, uint64_t slept_ms,
                 int listener, struct err *err);

#endif
