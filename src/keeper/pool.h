/* pool.h - sandboxes that were made ahead, without an owner yet.
 *
 * One is like any other but for KEEPER_FLAG_POOLED: it runs, and no caller can connect to it. A create that says
 * KEEPER_FLAG_TAKE gets it if template, build, profile and limits are its own, and from then on it is the create's:
 * id, name, host name, time. One that came out of an image is for loads of that image; it has processes, which stand
 * still until it is taken, so that it costs no time of any core. How many there are, and of what, is the caller's affair; the keeper only ends those that
 * are of no use any more.
 *
 * Callers: create.c, ops.c, and main.c's loop. */
#ifndef COVE_KEEPER_POOL_H
#define COVE_KEEPER_POOL_H

#include "keeper/keeper.h"

void pool_open(struct keeper *keeper);

/* For a request that was checked; NULL: none fits. `build` is the template's of now. */
struct sandbox *pool_take(struct keeper *keeper, const struct keeper_request *request,
                          uint64_t build, int connection);

/* It runs: one that is for the pool and has processes is stopped. */
void pool_made(struct keeper *keeper, struct sandbox *sandbox);

/* A server cares for them: called when their list is asked for. Ends those whose template was made again. */
void pool_heard(struct keeper *keeper);

/* A create needs a place: those in the pool go before a create has to be refused. */
void pool_make_room(struct keeper *keeper);

/* Ends all of them. */
void pool_clear(struct keeper *keeper, const char *reason);

/* Ends them when no server asked for a minute. As sandbox_tick(). */
int pool_tick(struct keeper *keeper);

#endif
