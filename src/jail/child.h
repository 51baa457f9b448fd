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

/* By value where the keeper's tables have it: those are not the child's to see (main.c). */
struct child_spec {
    struct limits limits;
    const struct template *template;
    const struct cgroup_entry *cgroup;
    const struct seccomp_filter *filter_notify;
    const struct seccomp_filter *filter_quiet;
    const struct machine *machine; /* NULL: the sandbox is the jail itself */
    const struct seccomp_filter *filter_machine, *filter_kvm;
    char id[KEEPER_NAME_MAX];
    char hostname[KEEPER_NAME_MAX];
    char view[SYSVIEW_NAME]; /* what becomes /sys */
    struct volume_use volumes[VOLUMES_MAX];
    bool allow_root;
    bool shm_joined; /* /dev/shm is more than the disk's */
    /* the keeper says go, with CHILD_FD_COUNT descriptors, those of the volumes, and those of a machine's template */
    int control_fd;
    int ready_fd; /* the agent says it listens */
    /* The table of descriptors is the keeper's, and these are at low numbers (low_fds.h). */
    bool shares_table;
    char agent[sizeof AGENTS_AT + AGENT_NAME]; /* the agent's program, in the sandbox */
};

/* The last counts only with shm_joined. */
enum child_fd { CHILD_ROOT, CHILD_DISK, CHILD_SHM, CHILD_FD_COUNT };
#define CHILD_FDS_MAX (CHILD_FD_COUNT + VOLUMES_MAX + BOOT_ROOTS_MAX)

/* What the child says, before the exec, of its filter: it waits for a listener, whose descriptor comes along; or it
 * refuses by itself. One byte; a failure is a struct err. */
#define CHILD_LISTENS 'l'
#define CHILD_QUIET   'q'

_Noreturn void child_run(const struct child_spec *spec);

#endif
