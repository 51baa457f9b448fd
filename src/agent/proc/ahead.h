/* ahead.h - a command that does nothing, once, in a guest of gVisor that has been idle since its start: what a kernel does at the first command
 * only (processes of the host for address spaces, names and pages of the shell and its libraries) is then done before a caller waits for it.
 *
 * The command is the template's shell, as the template's user, and has no place in the list of processes. A guest whose first command comes
 * sooner does without.
 *
 * Callers: main.c, once. */
#ifndef COVE_AGENT_PROC_AHEAD_H
#define COVE_AGENT_PROC_AHEAD_H

#include "agent/core/agent.h"

void ahead_begin(struct agent *agent);

#endif
