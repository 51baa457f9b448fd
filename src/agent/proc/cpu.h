/* cpu.h - how much processor time a command may use, all its processes together.
 *
 * A limit of the kernel's own (RLIMIT_CPU) counts one process. Here every process below the command's shepherd counts, and
 * every one that sudo started for them: those that live by /proc, those that were reaped by what their parents know of
 * them. The times of /proc are rounded down, so no command is ended too early; the verdict on a command that ended is by
 * the exact time.
 *
 * Not seen: children of a process that ignores SIGCHLD, which are never waited for. The cgroup counts them; who can read
 * the cgroup compares, with what is reported here: whether the command was alone, and what the agent itself used.
 *
 * In a guest the clock does not stop while the host runs something else instead of the guest: a command that is alone and followed is
 * left to the caller, up to a multiple of its limit.
 *
 * Owns:    struct cpu_limit in every proc_live.
 * Callers: proc.c, procs.c. */
#ifndef COVE_AGENT_CPU_H
#define COVE_AGENT_CPU_H

#include "agent/core/loop.h"

struct proc;
struct reader;

struct cpu_limit {
    struct timer timer;
    uint64_t limit_ms; /* 0: none */
    uint64_t sudo_us;  /* of those that sudo started for it and that ended */
    uint64_t agent_us; /* the agent's own time when the command began */
    bool exceeded;
    const struct reader *follower; /* who can ask the host (server/ops/ops_verdict.c); NULL: none */
};

/* The shepherd is forked. limit_ms 0: no limit, but others must know that it runs. follower: who started the command and waits for
 * its end; NULL: none. */
void cpu_started(struct proc *proc, uint64_t limit_ms, const struct reader *follower);
/* A reader is gone. */
void cpu_left(struct proc *proc, const struct reader *reader);
/* Its exact time is known: cpu_exceeded is final. */
void cpu_ended(struct proc *proc, uint64_t cpu_us);
void cpu_disarm(struct proc *proc);

bool cpu_exceeded(const struct proc *proc);
/* What it used so far, in milliseconds; 0 without a limit. */
uint64_t cpu_used(const struct proc *proc);
/* What the agent used since the command began, in milliseconds; 0 without a limit. */
uint64_t cpu_of_agent(const struct proc *proc);

#endif
