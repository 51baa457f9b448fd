/* owner.h - which process holds a TCP connection: for the gateway, which refused it and wants to say whose it was.
 *
 * Callers: worker.c. Looks with the rights of the user that it runs as: processes of others are not seen. */
#ifndef COVE_AGENT_OWNER_H
#define COVE_AGENT_OWNER_H

#include "agent/worker.h"

#include <stdbool.h>

/* A connected socket of /proc/net/tcp or tcp6. Addresses as in IPv6, those of IPv4 mapped. */
struct owner_line {
    uint8_t peer[16];
    uint32_t port, peer_port, uid;
    uint64_t inode;
};

/* False: no line of a socket. Pure. */
bool owner_parse(const char *line, bool v6, struct owner_line *ret);

int owner_run(struct worker *w, struct err *err);

#endif
