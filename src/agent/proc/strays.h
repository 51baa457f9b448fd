/* strays.h - processes whose shepherd was killed: they become children of the agent, and are ended.
 *
 * Only root inside can kill a shepherd. Callers: proc.c. */
#ifndef COVE_AGENT_PROC_STRAYS_H
#define COVE_AGENT_PROC_STRAYS_H

struct agent;

/* From the next turn on, until none is left. */
void strays_end(struct agent *agent);

#endif
