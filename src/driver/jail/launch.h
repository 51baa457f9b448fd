/* launch.h - a jail's processes: clone, root, agent.
 *
 * Callers: jail.c and drivers of guests, when all disks are there; stage.c. */
#ifndef COVE_DRIVER_JAIL_LAUNCH_H
#define COVE_DRIVER_JAIL_LAUNCH_H

#include "driver/host.h"
#include "driver/worker.h"
#include "jail/machine.h"

/* Ends in create_running() or sandbox_fail(). */
void launch_start(struct keeper *keeper, struct sandbox *sandbox);
/* The same of a jail around a guest: the bridge is its PID 1. loader: who brings back one that was saved with its memory; NULL: that
 * cannot be asked for. */
void launch_machine(struct keeper *keeper, struct sandbox *sandbox, const struct machine *machine,
                    worker_deed *loader);

/* To the first process of a jail: it fails on `control`, and is ready on `ready`. */
struct launch_lines {
    int pidfd, control, ready;
    pid_t pid;
    bool mapped; /* its id maps are written */
};
#define LAUNCH_NO_LINES                                                                            \
    {                                                                                              \
        -1, -1, -1, 0, false                                                                       \
    }
void launch_close(struct launch_lines *lines);

/* The child has its own table of descriptors by now, or is dead: its low numbers are free for another. */
void launch_free_fds(struct keeper *keeper, struct sandbox *sandbox);

/* What a child must be at its clone. */
struct launch_kind {
    uint32_t uid_base;
    bool with_usr;                 /* a template of the host's /usr (jail/mount_parent.h) */
    const struct machine *machine; /* NULL: the sandbox is the jail itself */
    unsigned low_fds;              /* a row of jail/low_fds.h; 0: none */
};

/* The two halves of a launch, also in a worker: a child that waits, then its root and the word to go. What is begun after the first is
 * the caller's to kill. in_worker: the layers below the disk are the worker's own already. */
int launch_child(struct keeper *keeper, const struct launch_kind *kind,
                 const struct cgroup_entry *entry, struct launch_lines *ret, struct err *err);
int launch_root(const struct keeper *keeper, struct sandbox *sandbox,
                const struct template *template, const struct machine *machine,
                const struct launch_lines *lines, bool in_worker, struct err *err);

/* The id maps of a process in a user namespace of its own. */
int launch_write_maps(int pid, uint32_t base, struct err *err);

#endif
