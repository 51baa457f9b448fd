/* tools_shell.h - a shell that keeps its state between calls: directory, variables, functions, aliases, options, traps.
 *
 * There is no process that waits between calls. Each call is a bash of its own, under the agent's timeouts and accounting
 * like any command: it begins with the state that the session's last call left, runs the command, and leaves its own. So
 * a timeout ends one call and nothing else, a shell cannot get stuck or die between calls, there is no marker in the output
 * that a command could forge, and calls of one session may run at the same time: the state of the last to end counts.
 * A call that is ended from outside, or replaces its shell by exec, leaves the state as it was.
 *
 * The state is a file of the user, in the sandbox: ~/.cache/cove/shell-NAME. It goes with the sandbox through pauses,
 * snapshots and forks, and the server keeps nothing. What it holds is the tenant's own; it is run by the tenant's own
 * shell, with the rights of the command itself.
 *
 * Not kept: jobs of the shell (the processes continue), open descriptors, limits of ulimit, a trap of EXIT.
 *
 * Callers: tools_run.c. */
#ifndef COVE_SURFACE_TOOLS_TOOLS_SHELL_H
#define COVE_SURFACE_TOOLS_TOOLS_SHELL_H

#include "server/ops/ops.h"

#define SHELL_NAME_MAX 64

struct shell_ask {
    const char *command;
    const char *name; /* of the session; NULL: main */
    const char *home; /* where a new session begins; "": at the user's home */
    bool given;   /* the command's cwd is for this call alone; else it runs where the session is */
    bool restart; /* forget the state first */
    bool keeps;   /* leave a state behind */
};

/* The arguments of the shell, until shell_done. */
struct shell_call {
    const char **args;
};

/* Pure. NULL is fine: the default session. */
bool shell_name_ok(const char *name);

/* Makes a command of ask; command->env goes to the shell, for this command alone. */
int shell_wrap(struct shell_call *call, struct ops_command *command, const struct shell_ask *ask,
               struct err *err);
void shell_done(struct shell_call *call);

/* A sentence about how a command was ended, and what became of the session. */
json_t *shell_kept(const json_t *why);

#endif
