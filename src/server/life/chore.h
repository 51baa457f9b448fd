/* chore.h - what the server does by itself, round after round, in a thread of its own.
 *
 *     static struct chore own = CHORE_INIT;
 *     do
 *         one_round(app);
 *     while (chore_rest(&own, ROUND_MS));
 *
 * Owns:    the thread, from start to stop.
 * Callers: history.c, idle.c, shrink.c, upkeep.c. (pool.c waits for what its own lock guards, deadline.c for descriptors.)
 * Never:   guards what the work is about: that has a lock of its own. */
#ifndef COVE_SERVER_LIFE_CHORE_H
#define COVE_SERVER_LIFE_CHORE_H

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct chore {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool running, stop, nudged;
};

/* clang-format off */
#define CHORE_INIT { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER }
/* clang-format on */

/* what: of the error, "start the thread of <what>". */
int chore_start(struct chore *chore, const char *what, void *(*run)(void *), void *arg,
                struct err *err);
/* Its thread only, as is chore_wait: lets the time pass. false: the server ends. */
bool chore_rest(struct chore *chore, uint64_t ms);
/* The same, but a nudge ends it at once, also one from before. */
bool chore_wait(struct chore *chore, uint64_t ms);
/* There is something to do: any thread. */
void chore_nudge(struct chore *chore);
/* Returns when the round that is under way has ended. Nothing, if it was never started. */
void chore_stop(struct chore *chore);

#endif
