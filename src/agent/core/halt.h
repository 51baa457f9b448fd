/* halt.h - all processes of a guest but the agent as one, in gVisor, whose kernel has no cgroup that can be frozen: SIGSTOP and SIGCONT.
 *
 * Before a guest is saved they are stopped, and what they wrote goes to the disk. One that was loaded finds them so: none runs before the
 * agent has let it go. A process is stopped when its parent is, and continues before its parent does, so that a shell does not take
 * it for a job that was stopped. One that stood still by itself is left as it is.
 *
 * Callers: resumed.c. */
#ifndef COVE_AGENT_CORE_HALT_H
#define COVE_AGENT_CORE_HALT_H

#include "base/err.h"

/* Waits, though not for ever; -1: they run. */
int halt_stop(struct err *err);
void halt_go(void);

#endif
