/* spare.h - the shepherd of the command before, which waits for the next one: a command that finds it needs no fork
 * of the agent, and no end of a process behind it.
 *
 * At most one, and only while no command lives: beside a command there are as many processes as
 * without spares, and a limit of processes leaves a user as many. It is ended after IDLE_MS, so that an
 * idle sandbox has none. Shepherds of a sandbox's first command do not stay: most sandboxes for one
 * command are removed behind it, with every process that is left.
 *
 * A spare can be killed or stopped at any moment (from the host, or for want of memory; inside, no process
 * lives while a spare waits), so an order that it does not take is taken back: the agent holds the
 * shepherd's side of the socket as well. Which of the two reads the order has it, so no command runs
 * twice; the handle in it says which order was read.
 *
 * Not in guests: the agent of a guest cannot be told what each of several commands used (gVisor), and
 * its processes are in a cgroup apart (virtual machines).
 *
 * Callers: start.c, proc.c, ops.c. */
#ifndef COVE_AGENT_PROC_SPARE_H
#define COVE_AGENT_PROC_SPARE_H

#include "agent/proc/proc.h"

/* The two sides of a shepherd's socket: the agent's, and the shepherd's. -1 with errno. */
int spare_socket(int pair[2]);

/* Whether a shepherd that is forked now for a command is to stay when the command is gone. */
bool spare_wanted(const struct agent *agent);
/* The proc's shepherd has no process below it any more; its commands had this much processor time.
 * False: it is not wanted, or root inside has set its limits. */
bool spare_keep(struct proc *proc, uint64_t all_us);

/* Orders the command from the spare, which becomes the proc's shepherd. False: there is none, or the order cannot be given. */
bool spare_take(struct proc *proc, const struct spawn *spawn);

/* The order, if the shepherd has not taken it; no process has it then. The caller frees *ret with
 * spawn_done, closes its descriptors, and calls spare_forget_order, which wipes what *ret pointed to; a shepherd that
 * is forked in between wipes its copy. */
bool spare_take_back(struct proc *proc, struct spawn *ret);
void spare_forget_order(void);
/* Ends the shepherd of a proc whose order was taken back. */
void spare_give_up(struct proc *proc);

/* Kills the spare, if there is one; spare_gone says when it is reaped. */
void spare_end(struct agent *agent);
bool spare_gone(const struct agent *agent);
/* True: this was the spare. */
bool spare_reaped(struct agent *agent, pid_t pid);

/* Ends the spare and waits until it is gone, 0.1 s at most: what a command's processes then are does not
 * depend on how fast the spare dies. */
void spare_make_way(struct agent *agent);
/* As fork. Where the limit of processes is reached, the spare gives way. */
pid_t spare_fork(struct agent *agent);

#endif
