/* talk.h - the two things that the keeper says to an agent itself, before and after it is saved.
 *
 * Callers: save.c and loader.c, in workers: they wait for an answer, though not for ever. */
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

/* Every connection is closed, and nothing is under way inside the agent. The listener of refused calls, if the agent has
 * one, is ours from now on (-1: none). */
int talk_quiesce(const struct nets *nets, int pidfd, pid_t pid, int *ret_listener,
                 struct err *err);

/* listener: goes back to the agent; -1: none. slept_ms: how long it was on disk. */
int talk_resumed(const struct nets *nets, int pidfd, pid_t pid, const char *why, uint64_t slept_ms,
                 int listener, struct err *err);

#endif
