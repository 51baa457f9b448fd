/* child.h - all that runs between clone and exec of the agent, or of the bridge to a guest.
 *
 * Runs in a copy of the keeper's memory, in fresh namespaces, without an identity yet. No heap, no locks;
 * failures go to the keeper as a struct err over the control socket; always ends in exec or _exit. */
#ifndef COVE_JAIL_CHILD_H
#define COVE_JAIL_CHILD_H

#include "jail/agents.h"
#include "jail/cgroup.h"
#include "jail/machine.h"
#include "jail/seccomp.h"
#include "jail/sysview.h"
#include "jail/template.h"
#include "wire/keeper.h"

#include <stdbool.h>
#include <stddef.h>

/* What a child starts with. */
struct child_spec {
    const struct cgroup_entry *cgroup;
    const struct seccomp_filter *filter_notify;
    const struct seccomp_filter *filter_quiet;
    const struct machine *machine; /* NULL: the sandbox is the jail itself */
    const struct seccomp_filter *filter_machine, *filter_kvm;
    int control_fd; /* the keeper says go, and the child what its filter is, or why it failed */
    int ready_fd;   /* the agent says it listens */
    /* The table of descriptors is the keeper's, and these are at low numbers (low_fds.h). */
    bool shares_table;
};

/* What it becomes: the word to go, which may come much later (driver/jail/spare.h). With CHILD_FD_COUNT descriptors, those of the volumes,
 * and those of a machine's template. */
struct child_order {
    struct limits limits;
    char hostname[KEEPER_NAME_MAX];
    char view[SYSVIEW_NAME]; /* what becomes /sys */
    struct volume_use volumes[VOLUMES_MAX];
    bool allow_root;
    bool shm_joined;                           /* /dev/shm is more than the disk's */
    char agent[sizeof AGENTS_AT + AGENT_NAME]; /* the agent's program, in the sandbox */
    struct
        template template; /* the last, without its descriptors: sent up to the end of its environment */
};

static inline size_t child_order_size(const struct child_order *order)
{
    return offsetof(struct child_order, template.env) + order->template.env_used;
}

/* The last counts only with shm_joined. */
enum child_fd { CHILD_ROOT, CHILD_DISK, CHILD_SHM, CHILD_FD_COUNT };
#define CHILD_FDS_MAX (CHILD_FD_COUNT + VOLUMES_MAX + BOOT_ROOTS_MAX)

/* What the child says, before the exec, of its filter: it waits for a listener, whose descriptor comes along; or it
 * refuses by itself. One byte; a failure is a struct err. */
#define CHILD_LISTENS 'l'
#define CHILD_QUIET   'q'

_Noreturn void child_run(const struct child_spec *spec);

#endif
