/* owner.h - which process holds a TCP connection, or a UDP socket that sent something: for the gateway, which refused it
 * and wants to say whose it was.
 *
 * Callers: worker.c. Looks with the rights of the user that it runs as: processes of others are not seen. */
#ifndef COVE_AGENT_WORKER_OWNER_H
#define COVE_AGENT_WORKER_OWNER_H

#include "agent/worker/worker.h"

#include <stdbool.h>

/* A socket of /proc/net/tcp, tcp6, udp or udp6. Addresses as in IPv6, those of IPv4 mapped. */
struct owner_line {
    uint8_t peer[16];
    uint32_t port, peer_port, uid;
    uint64_t inode;
};

/* False: no line of a socket. Pure. */
bool owner_parse(const char *line, bool v6, struct owner_line *ret);

/* Whether it is the one with these ends: all of a connection's; `datagram`: a socket that has no other end, too. Pure. */
bool owner_matches(const struct owner_line *line, const struct owner_line *wanted, bool datagram);

int owner_run(struct worker *w, struct err *err);

#endif
