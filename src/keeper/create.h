/* create.h - a sandbox from a request to its agent's first word: the keeper's half, and what a driver's half calls.
 *
 * Callers: ops.c begins; drivers take slots for what they load, and say when a sandbox runs. */
#ifndef COVE_KEEPER_CREATE_H
#define COVE_KEEPER_CREATE_H

#include "keeper/keeper.h"

/* Begins; the end is announced by ops_sandbox_started or ops_sandbox_gone. */
int create_begin(struct keeper *keeper, const struct keeper_request *request, int connection,
                 struct sandbox **ret, struct err *err);

/* Whose it is: id, name, host name, flags, the time of its create, and what it is tied to. */
void create_name(struct sandbox *sandbox, const struct keeper_request *request, int connection);

/* ---- for drivers ---- */

/* Whether there may be another one, and by the driver whether it can be had. same: of an image that has the same id. */
int create_check(struct keeper *keeper, const struct driver *driver,
                 const struct keeper_request *request, bool same, uint64_t *ret_build,
                 struct err *err);
/* The slot that the next create gets; false: none is free now. */
bool create_next_slot(const struct keeper *keeper, uint32_t *ret);
/* A slot for one that was checked: NEW, with its name and ids. */
struct sandbox *create_slot(struct keeper *keeper, const struct driver *driver,
                            const struct keeper_request *request, int connection, struct err *err);
/* It runs: written down, and told to the request that waits. */
void create_running(struct keeper *keeper, struct sandbox *sandbox);

/* Where the microseconds went, for the log. */
void create_begin_step(struct sandbox *sandbox, enum create_step step);
void create_end_step(struct sandbox *sandbox, enum create_step step);

#endif
