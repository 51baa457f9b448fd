/* posture.h - whether a sandbox is as confined as when it was made, as the host sees it.
 *
 * An agent that is to be saved gives up its listener of refused calls and becomes dumpable. Whatever becomes of the save, it
 * has to be put back before anything inside runs on unwatched; a sandbox where that fails is killed. The agent's word
 * is not taken for it: what the kernel says of the agent is.
 *
 * Callers: jail.c at adoption; save.c, save_settle.c and loader.c in workers. */
#ifndef COVE_DRIVER_JAIL_POSTURE_H
#define COVE_DRIVER_JAIL_POSTURE_H

#include "driver/host.h"
#include "driver/worker.h"

/* A duplicate of the agent's listener; -1: it has none, or the kernel does not let us. */
int posture_listener(const struct sandbox *sandbox);
/* Whether the agent itself has one. */
bool posture_listens(const struct sandbox *sandbox);

/* The agent is undumpable, and has the listener if the sandbox's filter needs one. */
int posture_check(const struct sandbox *sandbox, struct err *err);

/* Of one that an earlier keeper made: a duplicate of its listener is ours again. Where there is none, it depends on the
 * filter: one that answers by itself needs none; of an unknown one save_settle finds out; one that has lost its listener
 * could be lifted by the next process that listens, so the sandbox is killed. */
void posture_adopt(struct keeper *keeper, struct sandbox *sandbox);

/* The agent is told that it continues, and gets its listener; then all of it is checked. In a worker, of a sandbox that is
 * not frozen. -1: the sandbox must not continue. */
int posture_put_back(struct keeper *keeper, const struct sandbox *sandbox, struct err *err);
/* The same, as all that a worker does. */
int posture_continue(struct worker *worker, const struct keeper_request *request, struct err *err);

/* A sandbox whose loader died is checked, and its agent told that it continues, in a process of its own that no caller waits for. */
int posture_tell_continue(struct keeper *keeper, const struct sandbox *sandbox, bool same,
                          struct err *err);

#endif
