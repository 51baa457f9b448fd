/* sandbox.h - one sandbox that lives, to its end. create.h has its beginning, life.h the states.
 *
 * Callers: ops.c on request, main.c's loop on events, adopt.c at start. */
#ifndef COVE_KEEPER_SANDBOX_H
#define COVE_KEEPER_SANDBOX_H

#include "keeper/keeper.h"

/* NULL: none has that id or name. */
struct sandbox *sandbox_find(struct keeper *keeper, const char *id_or_name);
/* One that is being loaded from it, or saved to it; NULL: none. */
struct sandbox *sandbox_of_image(struct keeper *keeper, const char *image);
/* Whether cgroups of that name are a sandbox's: not every one's have its id. */
bool sandbox_has_cgroup(const struct keeper *keeper, const char *name);
/* So many rows of the table are used from now on, at least. */
void sandbox_rows(struct keeper *keeper, uint32_t count);
/* Whether a sandbox of that id, which is gone, ended for want of memory: known of the last STARVED_MAX. */
bool sandbox_starved(const struct keeper *keeper, const char *id);
uint32_t sandbox_slot(const struct keeper *keeper, const struct sandbox *sandbox);

/* Kills, in whatever state it is: its processes, and the saver, loader and criu that are at it. The rest follows by itself, within
 * two seconds, and so does the removal of what they left half-done. Harmless on one that is stopping. */
void sandbox_stop(struct keeper *keeper, struct sandbox *sandbox, const char *reason);

/* Takes what an earlier keeper left in a slot: running, or to be cleared away. settled: that no worker works on it any
 * more is known. */
void sandbox_adopt(struct keeper *keeper, uint32_t slot, const struct journal_record *record,
                   bool settled);

int sandbox_freeze(struct keeper *keeper, struct sandbox *sandbox, bool frozen, struct err *err);
/* After driver->frozen: the new state is written down. */
void sandbox_frozen(struct keeper *keeper, struct sandbox *sandbox, bool frozen);

/* A connected descriptor to the agent, after a check that it is this sandbox's PID 1 that listens. */
int sandbox_connect(struct keeper *keeper, const struct sandbox *sandbox, int *ret_fd,
                    struct err *err);

int sandbox_stats(struct keeper *keeper, struct sandbox *sandbox, bool brief,
                  struct keeper_stats *ret, struct err *err);

/* Retries what the kernel was not ready for. Returns ms until it wants to be called again, -1:
 * never. */
int sandbox_tick(struct keeper *keeper);

#endif
