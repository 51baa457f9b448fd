/* life.h - what create.c, sandbox.c and the drivers share: the one writer of a sandbox's state, and its record.
 *
 * The table of who may follow whom is in sandbox.c. */
#ifndef COVE_KEEPER_LIFE_H
#define COVE_KEEPER_LIFE_H

#include "keeper/keeper.h"

void sandbox_set_life(struct keeper *keeper, struct sandbox *sandbox, enum keeper_life life);

/* Writes the journal's record as the sandbox is now. */
int sandbox_record(struct keeper *keeper, const struct sandbox *sandbox, struct err *err);

/* An empty slot: GONE, nothing open. */
void sandbox_reset(struct sandbox *sandbox);

/* A sandbox that was being saved continues; or it died meanwhile, and is stopped. */
void sandbox_back(struct keeper *keeper, struct sandbox *sandbox);

/* Stops it, and remembers why for requests that wait. */
void sandbox_fail(struct keeper *keeper, struct sandbox *sandbox, const struct err *err);

/* Of a STOPPING one without processes: what is left of it goes, and then it is GONE; or tick.c tries again. */
void sandbox_clear(struct keeper *keeper, struct sandbox *sandbox);

/* PID 1 is dead. */
void sandbox_on_death(struct keeper *keeper, struct watch *watch);

/* When a process started, as the kernel counts: tells a pid from its reuse. */
int sandbox_pid_started(int pid, uint64_t *ret, struct err *err);
/* Whether a process that is not dead yet was killed: beside others, that can take seconds. False while the kernel is between taking up the
 * signal and the beginning of the exit, which is a moment: asked for a while, it says so. */
bool sandbox_pid_dying(int pid);

#endif
