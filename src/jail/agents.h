/* agents.h - the agent's program, as sandboxes see it: a file of a read-only mount at /dev/cove.
 *
 * A file and not a descriptor, because a restored process needs the program that it was, by name. It is named by its
 * hash, and every version that ever ran here is kept in <state>/agents: an image outlives an upgrade.
 *
 * There are two sets. In the one that new sandboxes get, no process inside may read the files, which makes the kernel count the
 * process's memory as the host's, beyond everybody's debugger inside (docs/security.md). Restored processes had it so
 * already, and their kernel state says so; but the restore opens the file by its own rights, so it gets a readable set.
 *
 * Owns:    <state>/agents, and /agents in the keeper's own root. */
#ifndef COVE_JAIL_AGENTS_H
#define COVE_JAIL_AGENTS_H

#include "base/err.h"

#define AGENTS_AT   "/dev/cove" /* in a sandbox */
#define AGENTS_SHUT "/agents/shut"
#define AGENTS_OPEN "/agents/open"
#define AGENT_NAME  17

struct agents {
    int store_fd;          /* <state>/agents */
    char name[AGENT_NAME]; /* today's */
};

/* Before the keeper leaves the host's mounts: today's program is in the store. */
int agents_open(struct agents *agents, int state_fd, int program_fd, struct err *err);
/* After it: both sets are there. */
int agents_place(const struct agents *agents, struct err *err);

#endif
