/* cgroup.h - the resource limits of sandboxes, on cgroup v1, v2, or a mixture.
 *
 * Owns:    <hierarchy>/<instance>/<sandbox id> in every hierarchy in use, from create to remove; but of a v1 hierarchy with
 *          rules for devices alone, <instance>/CGROUP_ALL.
 * Callers: drivers, and their workers.
 * Never:   decides limits. They arrive checked by limits_check().
 *
 * Each controller is looked for by itself, in v1 mounts first: where a v1 hierarchy has it, v2
 * cannot. What differs between the versions is in two tables: the knobs of cgroup.c, the figures of cgroup_state.c. */
#ifndef COVE_JAIL_CGROUP_H
#define COVE_JAIL_CGROUP_H

#include "base/err.h"
#include "wire/keeper.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum cgroup_controller {
    CG_MEMORY,
    CG_PIDS,
    CG_CPU,
    CG_CPUACCT,
    CG_FREEZER,
    CG_DEVICES,
    CG_CONTROLLER_COUNT
};

#define CG_HIERARCHIES_MAX 8

struct cgroup_hierarchy {
    int version;
    bool shared; /* it has nothing that differs between sandboxes: all of them are in CGROUP_ALL */
    int root_fd; /* <mount>: kept, because the keeper leaves the host's mounts behind */
    int parent_fd; /* <mount>/<cgroups.instance> */
    char mount[128];
};

/* Each cgroup less is 0.1 ms less of processor time for a sandbox's life. */
#define CGROUP_ALL ".all"

#define CG_INSTANCE_MAX 96
#define CG_SLICE        "cove.slice" /* of systemd's, on v2 */

struct cgroups {
    char instance[CG_INSTANCE_MAX]; /* below each mount; in CG_SLICE, perhaps: "cove.slice/…" */
    size_t count;
    struct cgroup_hierarchy hierarchy[CG_HIERARCHIES_MAX];
    int of[CG_CONTROLLER_COUNT]; /* index of the controller's hierarchy, -1: the host has none */
};

/* NULL: the host has no such controller. */
static inline const struct cgroup_hierarchy *cgroup_hierarchy_of(const struct cgroups *cgroups,
                                                                 enum cgroup_controller controller)
{
    return cgroups->of[controller] < 0 ? NULL : &cgroups->hierarchy[cgroups->of[controller]];
}

/* Where each controller is, by the text of /proc/self/mounts and the controllers of the v2 mount
 * ("" if there is none). Pure: fills mount, version, shared, count and of. */
void cgroups_detect(struct cgroups *cgroups, const char *mounts, const char *v2_controllers);

/* Whether who has this text in /proc/self/cgroup is of a service in CG_SLICE. Pure. */
bool cgroups_in_slice(const char *own);

/* Detects, then makes and opens <instance> in every hierarchy. Memory and processes must be
 * limitable, or this fails: a host that cannot keep a fork bomb in is no host for sandboxes. */
int cgroups_open(struct cgroups *cgroups, const char *instance, struct err *err);

/* One more controller ("+io"), on v2, for the sandboxes of this instance. */
void cgroups_hand_down(const struct cgroups *cgroups, const struct cgroup_hierarchy *hierarchy,
                       const char *controller);

/* Removes <instance> where it is empty, and closes. Processes in CGROUP_APART have CGROUP_APART_MS to end, where there is
 * nothing else below <instance>. */
void cgroups_close(struct cgroups *cgroups);

/* Without a limit: no process of a tenant's may be in it before cgroup_bound(), which writes every limit but that of processor time. */
int cgroup_make(const struct cgroups *cgroups, const char *name, struct err *err);
int cgroup_bound(const struct cgroups *cgroups, const char *name, const struct limits *limits,
                 struct err *err);
/* Both. */
int cgroup_create(const struct cgroups *cgroups, const char *name, const struct limits *limits,
                  struct err *err);
/* The limit of processor time. To allow it the kernel looks at every cgroup of the machine, so the maker of a sandbox writes it
 * while no caller waits: before anything of the tenant's runs. */
int cgroup_share(const struct cgroups *cgroups, const char *name, const struct limits *limits,
                 struct err *err);

/* Other limits for one that is there. */
int cgroup_limit(const struct cgroups *cgroups, const char *name, const struct limits *limits,
                 struct err *err);

/* What a child needs to enter by itself: "tasks" of every v1 hierarchy, open for writing, to write "0"
 * to, and the v2 directory for CLONE_INTO_CGROUP (-1: none). Entering by oneself is what makes it
 * cheap: moving another process waits for a grace period of the whole machine, in each hierarchy. */
struct cgroup_entry {
    size_t count;
    int tasks_fd[CG_HIERARCHIES_MAX];
    int v2_fd;
};
int cgroup_entry_open(const struct cgroups *cgroups, const char *name, struct cgroup_entry *ret,
                      struct err *err);
void cgroup_entry_close(struct cgroup_entry *entry);

int cgroup_freeze(const struct cgroups *cgroups, const char *name, bool frozen, struct err *err);
/* 1 when every process is as cgroup_freeze asked, 0 not yet, -1 error. */
int cgroup_freeze_done(const struct cgroups *cgroups, const char *name, bool frozen);

/* To swap, of one that stands still, as much as the kernel can within patience_ms, and not more than swap_bytes. Takes seconds.
 * Killed in the middle of it, it leaves the sandbox with swap: cgroup_limit() takes that back. */
int cgroup_reclaim(const struct cgroups *cgroups, const char *name, uint64_t swap_bytes,
                   uint64_t patience_ms, struct err *err);

/* `brief`: only the figures of KEEPER_STATS_BRIEF; the others stay as they are. */
int cgroup_stats(const struct cgroups *cgroups, const char *name, bool brief,
                 struct keeper_stats *ret, struct err *err);

/* How much memory it has, page cache included; 0: that is not known. */
uint64_t cgroup_memory(const struct cgroups *cgroups, const char *name);

/* SIGKILL to every process in it, and nothing that makes them wait for their death: no new ones, thawed, no limit of processor time
 * that they felt; late: none at all, nor of memory. To be called again until none is there: returns how many there were. */
size_t cgroup_end(const struct cgroups *cgroups, const char *name, bool late);
/* The same in every hierarchy, for cgroups of which it is not known how they were left. */
size_t cgroup_kill(const struct cgroups *cgroups, const char *name);

/* A cgroup beside those of sandboxes, made if it is not there, for processes of our own: in the hierarchies of CG_PIDS, CG_MEMORY and
 * CG_CPU. limits: NULL for none. */
int cgroup_side_open(const struct cgroups *cgroups, const char *side, const struct limits *limits,
                     struct cgroup_entry *ret, struct err *err);

/* Those who work on a sandbox (a saver, a loader, and criu where it saves) are in a cgroup of their own beside the sandbox's, so that
 * they can be found and killed, also by a keeper that did not start them, and what they take has a limit: how much that is, the
 * sandbox decides. Open makes it, and it stays until work_remove. */
#define CGROUP_WORK ".work"
int cgroup_work_open(const struct cgroups *cgroups, const char *name, const struct limits *limits,
                     struct cgroup_entry *ret, struct err *err);
/* Returns how many there were. */
size_t cgroup_work_kill(const struct cgroups *cgroups, const char *name);
/* 1 when it is gone, or never was; 0: a process is in it. */
int cgroup_work_remove(const struct cgroups *cgroups, const char *name);
/* Whether a name under <instance> is that of such a cgroup, and of which sandbox's. */
bool cgroup_is_work(const char *side, char ret_name[KEEPER_NAME_MAX]);

/* For those whom a worker starts and who stay behind it: one for all, which is never killed. */
#define CGROUP_APART    ".apart"
#define CGROUP_APART_MS 5000
int cgroup_apart_open(const struct cgroups *cgroups, struct cgroup_entry *ret, struct err *err);

/* As fork, and the child is in that cgroup. */
pid_t cgroup_fork(const struct cgroup_entry *entry);

/* Of those that are in it now and that we can see. */
void cgroup_each_process(const struct cgroups *cgroups, const char *name,
                         void (*fn)(pid_t pid, const void *arg), const void *arg);

/* 1 when nothing is left of it, 0 when the kernel still holds a part (try again), -1 error. */
int cgroup_remove(const struct cgroups *cgroups, const char *name, struct err *err);

/* Calls fn for every name under <instance>, in any hierarchy; a name may come more than once. */
void cgroup_each(const struct cgroups *cgroups, void (*fn)(const char *name, void *arg), void *arg);

#endif
