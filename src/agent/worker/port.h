/* port.h - TCP inside the sandbox: who listens, and a way in.
 *
 * Callers: worker.c. Never: reaches beyond the loopback of the sandbox's own network namespace. */
#ifndef COVE_AGENT_WORKER_PORT_H
#define COVE_AGENT_WORKER_PORT_H

#include "agent/worker/worker.h"

#include <stdbool.h>

/* A listening socket. */
struct port {
    char address[48];
    uint32_t port;
    uint64_t inode;
    uint32_t uid;
    uint32_t pid; /* 0: not found among the processes that this user may look at */
    char program[64];
};

/* One line of /proc/net/tcp or tcp6. False: no listening socket. Pure. */
bool port_parse(const char *line, bool v6, struct port *ret);

/* Who holds them, by their inodes: pid and program of each. */
void port_find_processes(struct port *list, size_t count);

/* Before any worker is started: that port is the agent's own, and not listed. */
void ports_hide(uint32_t port);

int port_list(struct worker *w, struct err *err);
int port_dial(struct worker *w, struct err *err);

#endif
