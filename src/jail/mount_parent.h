/* mount_parent.h - the mount namespaces that those of jails are copies of.
 *
 * A new mount namespace is a copy of the one that its maker is in. The keeper's own has what it needs itself: templates, images, the
 * host's /proc. A child that starts there must leave all of it behind, and pivot_root, which does that, looks at every task of the
 * machine: 1.4 ms beside 2000 sandboxes. So the keeper has two more namespaces, without and with the host's /usr, and is in one of
 * them for as long as a clone takes. They have a root of their own with no more in it than a child's mounts are made of:
 *
 *   /dev, /shown (sysview.h), /agents/shut (agents.h), /usr   as in the keeper's own root, read-only
 *   /proc    of a process namespace that has ended. The kernel lets a child mount its own /proc only where one can be seen
 *   /disk    an empty directory, where the child attaches its own disk
 *   /empty   the same, for masks
 *
 * The child mounts its root over this one and changes to it (jail_mounts). What is below stays, and no name leads there: the ".." of the
 * root is the root, also for a process that changed its root again. Only a process with CAP_SYS_ADMIN could take the upper root
 * away, and would find what is listed here, whose mounts it can neither change nor take away: the kernel locks mounts that come from another
 * user namespace.
 *
 * Callers: driver/host.c; driver/jail/launch.c, around a clone. */
#ifndef COVE_JAIL_MOUNT_PARENT_H
#define COVE_JAIL_MOUNT_PARENT_H

#include "base/err.h"

#include <stdbool.h>

struct mount_parent {
    int own_fd;          /* the keeper's own */
    int fd, with_usr_fd; /* the parents */
};

/* Behind home_enter() and agents_place(). */
int mount_parent_open(struct mount_parent *parent, struct err *err);

/* Before a clone; mount_parent_leave() after it. */
int mount_parent_enter(const struct mount_parent *parent, bool with_usr, struct err *err);
/* There is no way on if that fails: the keeper ends, and a new one adopts. */
void mount_parent_leave(const struct mount_parent *parent);

#endif
