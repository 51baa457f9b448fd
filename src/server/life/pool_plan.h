/* pool_plan.h - how many sandboxes are to wait: demand, and the memory there is for it. Pure.
 *
 * Demand is creates in ten seconds. A pool wants as many as were made in the busiest ten seconds of the last ten
 * minutes, as soon as there were two in all; after a create that comes alone, no sandbox waits for the next. The rule of its
 * template has the bounds, and the budget the last word.
 *
 * Callers: pool.c. Rules are pool_rules.h. */
#ifndef COVE_SERVER_LIFE_POOL_PLAN_H
#define COVE_SERVER_LIFE_POOL_PLAN_H

#include "base/err.h"
#include "server/app/pool_rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- demand ---- */

#define DEMAND_STEP_MS 10000
#define DEMAND_STEPS   60

struct demand {
    uint64_t step; /* the latest of `made`, counted from the clock's zero */
    uint32_t made[DEMAND_STEPS];
};

void demand_add(struct demand *demand, uint64_t now_ms, uint32_t count);
/* In the busiest step; *ret_total: in all of them. */
uint32_t demand_peak(struct demand *demand, uint64_t now_ms, uint32_t *ret_total);

/* ---- the plan ---- */

struct plan_item {
    uint32_t peak, total; /* demand */
    uint32_t least, most; /* of its rule; most 0: none */
    bool standing;        /* least counts also without any demand */
    uint64_t cost_bytes;  /* memory of one that waits */
    uint32_t target;      /* the answer */
};

/* The template in more demand is served first when the budget does not do for all. Returns the bytes that the targets
 * cost. */
uint64_t pool_plan(struct plan_item *items, size_t count, uint64_t budget_bytes);

#endif
