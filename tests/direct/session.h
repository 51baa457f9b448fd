/* session.h - a command in a sandbox, connected to the caller's stdin, stdout, stderr and signals.
 *
 * Owns:    the terminal's mode and the signal mask while it runs.
 * Callers: run, shell, exec, logs --follow.
 * Never:   waits for one side only: whoever stalls stops nobody but the command itself. */
#ifndef COVE_TESTS_DIRECT_SESSION_H
#define COVE_TESTS_DIRECT_SESSION_H

#include "client/exec.h"
#include "client/sandbox.h"

#include <stdbool.h>

struct session {
    struct link *link;                    /* closed and opened again when the keeper restarts */
    const struct keeper_sandbox *sandbox; /* borrowed */
    struct exec *exec;
    bool is_new;   /* so is the sandbox: nothing has happened in it */
    bool tied;     /* the sandbox ends with us: a second signal destroys it */
    bool detaches; /* a second signal leaves the command running */
    bool stdin_on; /* forward stdin */
    bool terminal; /* the command has a pty: raw mode, resize */
    bool quiet;    /* no line about how it ended */
    bool stats;    /* one line of accounting on stderr */
    uint64_t timeout_ms;
    uint64_t ooms_before; /* oom kills of the sandbox when the command began */
};

/* Starts the command, and is connected to it until it ends; what follows from the request is set here. Returns the exit
 * code for cove. ret_started: may be NULL. */
int session_start(struct session *session, const struct agent_request *request, bool *ret_started);
/* The same with a command that runs, session->exec. */
int session_run(struct session *session);
/* Says why a command was not started. Returns the exit code for cove: 127 or 126 where the program is the reason. */
int session_not_started(const struct err *err);

#endif
