/* pool.h - sandboxes that are made ahead, so that a create need not wait for one.
 *
 * A pool is of one template in one size (limits) and one profile; where the template has a memory image of that size,
 * of what comes out of it. The keeper holds what waits (keeper/pool.h) and gives
 * it to a create that fits; this module counts creates, decides how many are to wait (pool_plan.h), and has them made
 * and ended, one at a time and behind those who wait for a create of their own.
 *
 * Owns:    a thread, and the tables `pools` and `pool_rules` of the store.
 * Callers: main.c; ops.c around every create; v1_pools.c and metrics.c look. */
#ifndef COVE_SERVER_LIFE_POOL_H
#define COVE_SERVER_LIFE_POOL_H

#include "server/app/app.h"
#include "store/store.h"

int pool_start(struct app *app, struct err *err);
void pool_stop(void);

/* Around a create: while one is under way, none is made ahead. `kept` is what the keeper made or gave; NULL: it failed.
 * warm: it came out of its template's image. */
void pool_create_begins(void);
void pool_create_ends(const struct keeper_sandbox *kept, bool warm);

/* Rules or settings changed: looked at now, not at the next round. */
void pool_changed(void);

#define POOLS_MAX 64

struct pool_report {
    uint64_t budget_bytes, used_bytes; /* memory of those that wait */
    uint64_t made, failures;           /* since the server started */
    size_t count;
    struct store_pool list[POOLS_MAX];
};
void pool_look(struct pool_report *ret);
struct limits pool_limits(const struct store_pool *pool);

#endif
