/* worker.h - operations done in a child with the user's rights.
 *
 * An operation whose row in agent_ops says as_user runs in a process of its own: the agent forks,
 * the child keeps only the connection, drops to the user, and serves the one request with plain
 * blocking reads and writes. The agent itself never touches a path for a caller.
 *
 * What holds when worker_main is called:
 *   - descriptors: 0-2 are the agent's (/dev/null), `sock` is the only other one, blocking,
 * CLOEXEC;
 *   - uid, gid, supplementary groups are the user's (or rights_lend was called); umask 022; cwd "/"; no_new_privs;
 *   - no capabilities, except for root in a sandbox with root (BOOT_ROOT_CAPS);
 *   - every signal has its default action and none is blocked, but SIGPIPE is ignored;
 *   - the process is undumpable and dies when the agent quiesces (SIGKILL).
 *
 * Callers: ops.c starts workers. worker.c is where worker_main lives. */
#ifndef COVE_AGENT_WORKER_WORKER_H
#define COVE_AGENT_WORKER_WORKER_H

#include "agent/core/user.h"
#include "wire/agent.h"

struct worker {
    int sock;                            /* owned: the connection to the caller */
    const struct agent_request *request; /* decoded and checked by agent_request_decode */
    const struct user *user;
    bool lent;            /* AGENT_AS_ROOT: root's rights, and what is made is the user's */
    const uint8_t *early; /* bytes of the caller that arrived behind the request frame: they */
    size_t early_len;     /* come before anything read from sock */
    /* Called now and then while the caller does not take an answer; NULL: no work waits. */
    void (*meanwhile)(void *arg);
    void *meanwhile_arg;
};

/* Serves the request and returns the exit status; only the process table looks at it. */
int worker_main(struct worker *worker);

#endif
