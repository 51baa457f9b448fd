/* peer_owner.h - who on this host is at the other end of a connection.
 *
 * Loopback needs no key, and the gateway connects from this host for hostile code. So the kernel is asked, for every
 * connection from an address of this host, whose socket it comes from: the gateway's belong to EGRESS_UID
 * (or whom network_uid names). Nothing is remembered: whose socket it is can change, and a socket that its owner has closed is
 * of no owner.
 *
 *   127.0.0.1 and other addresses of this host → NETLINK_SOCK_DIAG by both addresses and ports
 *      not found, not loopback                 → by the other end's address and port alone: it may have been redirected here
 *   a kernel without NETLINK_SOCK_DIAG         → /proc/net/tcp and tcp6, which takes longer
 *
 * Owns:    one netlink socket.
 * Callers: server.c, on the thread that accepts. */
#ifndef COVE_SERVER_SERVE_PEER_OWNER_H
#define COVE_SERVER_SERVE_PEER_OWNER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum peer_owner {
    PEER_ELSEWHERE, /* not on this host */
    PEER_LOCAL,     /* a program of this host */
    PEER_GATEWAY,   /* the gateway, for a sandbox */
    PEER_PULLER,    /* cove-pull, which reads what registries send */
    PEER_UNKNOWN    /* on this host, but its owner has closed it, or cannot be found */
};

struct peer_owners {
    int fd;           /* -1: by /proc */
    int pages;        /* directory of the two tables */
    uint32_t seq;     /* of the last question */
    uint32_t gateway; /* the user who owns the gateway's connections */
    uint32_t puller;  /* and those of cove-pull; UINT32_MAX: there is none */
};

/* `by_table`: does without netlink, as on a kernel that lacks it; otherwise found out by a trial connection. */
int peer_owners_open(struct peer_owners *owners, bool by_table, struct err *err);
void peer_owners_close(struct peer_owners *owners);

/* at: the other end of fd, as accept tells it. */
enum peer_owner peer_owner_of(struct peer_owners *owners, int fd, const struct sockaddr *at);

#endif
