/* procs.h - the table of processes: handles, memory, and what stays of those that ended.
 *
 * Nothing is freed in the middle of a turn: code that might have made a process superfluous calls
 * procs_unsettle, and procs_sweep looks at it when the turn is over. */
#ifndef COVE_AGENT_PROC_PROCS_H
#define COVE_AGENT_PROC_PROCS_H

#include "agent/proc/proc.h"

/* Gives the next handle; takes the proc. -1: no memory. */
int procs_add(struct agent *agent, struct proc *proc);
/* At once: only for one that no client has seen. */
void procs_drop(struct proc *proc);
void procs_free(struct proc *proc);

void procs_unsettle(struct proc *proc);
void procs_sweep(struct agent *agent);
/* Rings of ended processes stay within their budget; texts within theirs. */
void procs_trim(struct agent *agent);

/* In a child of the agent: frees its copies of all rings. */
void procs_unburden(void *agent);

#endif
