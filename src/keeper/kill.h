/* kill.h - the death of a sandbox's processes, and of those who work on it.
 *
 * Code that ends a sandbox calls sandbox_stop(), in whatever state the sandbox is; this is how it is done.
 *
 * Callers: sandbox.c, tick.c.
 * Never:   waits. What is not dead at once is killed again by tick.c, until it is. */
#ifndef COVE_KEEPER_KILL_H
#define COVE_KEEPER_KILL_H

#include "keeper/keeper.h"

/* Every process of its cgroups; first of all PID 1, with whom all others end. */
void kill_box(struct keeper *keeper, struct sandbox *sandbox);

/* The saver or loader, criu, and whatever they started; also those that an earlier keeper started. */
void kill_workers(struct keeper *keeper, const struct sandbox *sandbox);

/* What is dying, or is to die when its workers did, and is not dead yet. Returns ms until it wants to be called again. */
int kill_tick(struct keeper *keeper, struct sandbox *sandbox, uint64_t now_ms);

#endif
