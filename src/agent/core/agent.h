/* agent.h - everything that the agent is: one value, made by main.c, passed to all modules. */
#ifndef COVE_AGENT_CORE_AGENT_H
#define COVE_AGENT_CORE_AGENT_H

#include "agent/core/conn.h"
#include "agent/core/loop.h"
#include "agent/core/refusals.h"
#include "agent/core/spawn.h"

#define AGENT_ETC         "/etc"
#define AGENT_WORKERS_MAX 64

struct proc;

/* A shepherd without a command (proc/spare.h). */
struct spare {
    pid_t pid;   /* 0: there is none */
    bool ending; /* killed, and not reaped yet */
    int control, theirs;
    uint64_t past_us; /* processor time of the commands that it had */
    struct timer idle;
};

struct agent {
    struct loop loop;
    struct spawn_base base;
    uint64_t memory_limit; /* of the sandbox; 0: unknown */
    uint64_t started_ms;
    bool machine; /* the kernel is the sandbox's own (BOOT_MACHINE) */
    bool gvisor;  /* in a guest of gVisor (BOOT_MUX alone) */
    struct refusals refusals;
    uint64_t resumed; /* times */

    /* door.c */
    struct watch listener, sudo_listener;
    struct timer door_timer;

    /* conn.c */
    struct conns conns;

    /* procs.c: every process ever started by EXEC, by handle */
    struct proc **procs; /* owned */
    size_t proc_count, proc_room;
    size_t proc_text_from; /* below this place, ended processes have lost their texts */
    uint32_t last_handle;
    struct proc *kept_first, *kept_last; /* ended ones that still have rings, oldest first */
    struct proc *unsettled;
    struct timer stray_timer;
    size_t shepherds; /* of all processes */
    struct spare spare;

    size_t cpu_limited; /* cpu.c: commands with a limit of processor time that run */
    /* cpu.c: of the time of reaped children, that of commands before their last */
    uint64_t past_us;

    /* ops.c */
    pid_t workers[AGENT_WORKERS_MAX];
    size_t worker_count;
    uint64_t quiescing; /* id of the conn that ends when the last worker is gone; 0: none */
    bool being_saved;   /* from QUIESCE to RESUMED: no spare is kept */
};

#endif
