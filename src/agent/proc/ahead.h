/* ahead.h - a command that changes nothing, once, in a guest of gVisor that has been idle since its start: what a kernel does at the first command
 * only (processes of the host for address spaces, names and pages of the shell and its libraries) is then done before a caller waits for it.
 *
 * The command is the template's shell, as the template's user, and has no place in the list of processes. It starts a program and opens the
 * files of a login, as the first command will; it does not run them: what they write or start would be there before the caller's command. A
 * guest whose first command comes sooner does without.
 *
 * Files of a template or of a snapshot may be hostile, the shell and the program included: whatever runs is killed after a second, or when the
 * first command is started.
 *
 * Callers: main.c, once; start.c. */
#ifndef COVE_AGENT_PROC_AHEAD_H
#define COVE_AGENT_PROC_AHEAD_H

#include "agent/core/agent.h"

void ahead_begin(struct agent *agent);
/* What is left of the command is killed. */
void ahead_end(void);

#endif
