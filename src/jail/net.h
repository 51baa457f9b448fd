/* net.h - the network namespace of a sandbox: only lo, up.
 *
 * It is the sandbox's own, made in its user namespace: a checkpoint can only be taken of, and TCP connections only be
 * restored in, one that belongs to it. No process inside can change it all the same: that takes CAP_NET_ADMIN, which
 * is in no bounding set there. What root would need a capability for, low ports, is open to all.
 *
 * Making one takes 0.4 ms, which a new child spends beside the keeper's work on its root. It has a table of TCP connections of
 * its own: at the end of a namespace without one, the kernel looks at every row of the host's table (262144 of them with 24 GiB of
 * memory: 0.2 ms, and a cache full of rows). A namespace gets such a table from a setting of the namespace that it is made from,
 * so the keeper has one for that purpose, the parent of all, and is in it for as long as a clone takes.
 *
 * Callers: child.c, in the new namespaces; the keeper and its workers, to enter one and to come back. */
#ifndef COVE_JAIL_NET_H
#define COVE_JAIL_NET_H

#include "base/err.h"

/* Brings up the namespace that the caller is in. proc_fd: from mountfd_proc. */
int net_prepare(int proc_fd, struct err *err);

struct nets {
    int own_fd; /* the keeper's own */
    int parent_fd; /* that those of sandboxes are made from; -1: the keeper's own, this kernel has no such setting */
};

int nets_open(struct nets *nets, struct err *err);
void nets_close(struct nets *nets);

/* A unix stream socket of that process's namespace, for its abstract names; the caller stays where it is. */
int net_socket_inside(const struct nets *nets, int pidfd, int flags, struct err *err);

/* Takes away what criu locked a sandbox's network with and, being killed, did not unlock. No other program makes tables there:
 * no process inside has the right. */
int net_unlock(const struct nets *nets, int pidfd, struct err *err);

/* Before a clone; nets_leave() after it. */
int nets_enter_parent(const struct nets *nets, struct err *err);

/* Back from a sandbox's, or from the parent. There is no way on if that fails: the keeper ends, and a new one adopts. */
void nets_leave(const struct nets *nets);

#endif
