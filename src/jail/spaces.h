/* spaces.h - no further namespaces in a sandbox: a second line behind the system call filter. And the keeper's return to its own.
 *
 * The kernel counts namespaces of each kind per user namespace (user.max_*_namespaces). In the sandbox's own the counts become
 * 0 as soon as all its own namespaces are there. The settings are the kernel's, so they hold whatever becomes of a filter; nothing
 * inside can raise them, because that needs CAP_SYS_RESOURCE.
 *
 * Callers: child.c between clone and exec; driver/jail/loader.c for restored processes; driver/jail/posture.c for sandboxes of
 *          a version that did not. */
#ifndef COVE_JAIL_SPACES_H
#define COVE_JAIL_SPACES_H

#include "base/err.h"

/* In the caller's user namespace: no further ones of any kind but mount namespaces, which detached mounts count as. Those
 * are for spaces_forbid_mounts, by the descriptor (-1: this kernel does not count them). proc_fd: from mountfd_proc. No heap, no
 * locks. */
int spaces_forbid(int proc_fd, int *ret_mounts_fd, struct err *err);
/* For the jail around a guest, which needs a few of its own: no more than those, of each kind. */
int spaces_bound(int proc_fd, struct err *err);
/* Closes the descriptor; accepts -1. */
int spaces_forbid_mounts(int *mounts_fd, struct err *err);

/* All of it, in the user namespace of a process, by a process that enters it. */
int spaces_forbid_in(int pidfd, struct err *err);

/* The keeper, back in a namespace of its own: that of fd. There is no way on if that fails: the keeper ends, and a new one adopts. */
void spaces_return(int fd, int type, const char *name);

#endif
