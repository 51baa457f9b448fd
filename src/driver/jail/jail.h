/* jail.h - the driver `jail`, and those of its functions that serve other drivers as they are.
 *
 * Callers: drivers.c, guest.c; save.c for the disk. */
#ifndef COVE_DRIVER_JAIL_JAIL_H
#define COVE_DRIVER_JAIL_JAIL_H

#include "driver/host.h"

extern const struct driver jail_driver;

/* By cgroups, whatever runs in them. */
void jail_let_go(struct keeper *keeper, struct sandbox *sandbox);
void jail_kill(struct keeper *keeper, struct sandbox *sandbox, bool late);
void jail_kill_workers(struct keeper *keeper, const struct sandbox *sandbox);
int jail_remove(struct keeper *keeper, struct sandbox *sandbox, struct err *err);
void jail_release(struct keeper *keeper, struct sandbox *sandbox);

/* As they are for a jail around a guest, too: by cgroups, namespaces and the journal. */
void jail_create(struct keeper *keeper, struct sandbox *sandbox);
int jail_freeze(struct keeper *keeper, struct sandbox *sandbox, bool frozen, struct err *err);
int jail_frozen(struct keeper *keeper, const struct sandbox *sandbox, bool frozen);
void jail_adopt_freeze(struct keeper *keeper, struct sandbox *sandbox);
/* Of cgroups alone, and the layers below the sandbox's disk. */
int jail_stats_common(struct keeper *keeper, const struct sandbox *sandbox, bool brief,
                      struct keeper_stats *ret, struct err *err);
int jail_network(struct keeper *keeper, struct sandbox *sandbox, int *ret_fds, struct err *err);
void jail_died(struct keeper *keeper, struct sandbox *sandbox);
int jail_rename(struct keeper *keeper, struct sandbox *sandbox, const char *name, struct err *err);
const char *jail_stale(struct keeper *keeper, const struct sandbox *sandbox);

/* The sandbox's disk, by the one place where it is mounted as itself. /dev is the keeper's own and read-only: no name of
 * the tenant's is looked up, and both names on the way are mounts, so that nothing has to be read for them. */
#define JAIL_DISK "dev/shm"
int jail_open_disk(int pid);
/* A file or directory below the root that a process has, through no link; a name that no process of the tenant's can change. */
int jail_open_inside(int pid, const char *path, int flags);

#endif
