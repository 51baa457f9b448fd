/* spare.h - the spare child: a jail's first process, made before a create asks for one.
 *
 * A child does half of its work before it hears what sandbox it is to be (jail/child.c): namespaces, of which the network's takes
 * longest, its /proc, the agent's socket. So the keeper, when no request came for a while, makes one for the next create and has it
 * wait. It has the ids of the slot that this create will get, and cgroups of its own, without limits yet, which become the sandbox's.
 *
 *   none  ->  ready    spare_tick, when the keeper is idle and the last create was one that could have used it
 *   ready ->  none     spare_take: it is the sandbox's now, and ends with it
 *   ready ->  ending   it is of no use: another slot, or another kind of create; spare_tick clears it away
 *
 * No tenant's process ever was in it, and it has no file of a tenant's. It waits on a socket whose other end is the keeper's: should
 * the keeper be killed, it ends by itself, and the next keeper's host_clear_strays() removes the cgroups.
 *
 * Callers: launch.c, host.c. */
#ifndef COVE_DRIVER_JAIL_SPARE_H
#define COVE_DRIVER_JAIL_SPARE_H

#include "driver/jail/launch.h"

/* For a sandbox that starts, has a slot, and no record yet. True: the child in `ret` is the sandbox's, which has its cgroups, its pid
 * and the watch of its death; cgroup_bound() is for the caller to do. False: it has none, and whatever waited for the slot is ending.
 * usable: this create could have one; the next is made for another such. */
bool spare_take(struct keeper *keeper, struct sandbox *sandbox, bool usable, bool with_usr,
                struct launch_lines *ret);

/* Returns ms until the next call, -1: on an event. */
int spare_tick(struct keeper *keeper);

/* Ends it, and waits for a moment until it is gone. */
void spare_close(struct keeper *keeper);

/* Whether cgroups of that name are, or were, those of a spare child. */
bool spare_is_name(const char *name);

#endif
