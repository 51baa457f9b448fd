/* session.h - a command in a sandbox, connected to the caller's stdin, stdout, stderr and signals.
 *
 * Owns:    the terminal's mode and the signal mask while it runs.
 * Callers: run, shell, exec.
 * Never:   waits for one side only: a side that stalls stops the command itself and nothing else. */
#ifndef COVE_CLI_API_SESSION_H
#define COVE_CLI_API_SESSION_H

#include "cli/api/command.h"

struct session {
    json_t *order; /* taken */
    const struct command_options *options;
    bool tied;     /* the sandbox ends with the connection: a second signal ends both */
    bool detaches; /* a second signal leaves the command running */
    bool keeps;    /* a new sandbox stays: its name is told */

    /* What was told since. */
    char sandbox[32], name[64];
    uint64_t memory_bytes; /* its limit; 0: not known */
    uint32_t proc;
};

/* Returns the exit code for cove. */
int session_run(struct session *session);

#endif
