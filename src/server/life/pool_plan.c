#include "server/life/pool_plan.h"

#include "base/own.h"
#include "base/parse.h"

#include <ctype.h>
#include <string.h>

/* ---- demand ---- */

/* Steps that passed without anything are empty. */
static void move_on(struct demand *d, uint64_t now_ms)
{
    uint64_t step = now_ms / DEMAND_STEP_MS;

    if (step <= d->step)
        return;
    if (step - d->step >= DEMAND_STEPS)
        memset(d->made, 0, sizeof d->made);
    else
        for (uint64_t s = d->step + 1; s <= step; s++)
            d->made[s % DEMAND_STEPS] = 0;
    d->step = step;
}

void demand_add(struct demand *d, uint64_t now_ms, uint32_t count)
{
    move_on(d, now_ms);
    d->made[d->step % DEMAND_STEPS] += count;
}

uint32_t demand_peak(struct demand *d, uint64_t now_ms, uint32_t *ret_total)
{
    uint32_t peak = 0, total = 0;

    move_on(d, now_ms);
    for (size_t i = 0; i < DEMAND_STEPS; i++) {
        peak = d->made[i] > peak ? d->made[i] : peak;
        total += d->made[i];
    }
    *ret_total = total;
    return peak;
}

/* ---- the plan ---- */

#define TARGET_LEAST 2 /* as soon as there is demand at all: one is taken, one is there */

static uint32_t wanted(const struct plan_item *item)
{
    uint32_t want = 0;

    if (item->total >= 2) /* once is no reason */
        want = item->peak > TARGET_LEAST ? item->peak : TARGET_LEAST;
    if ((item->standing || item->total >= 2) && want < item->least)
        want = item->least;
    return want > item->most ? item->most : want;
}

uint64_t pool_plan(struct plan_item *items, size_t count, uint64_t budget_bytes)
{
    uint64_t used = 0;

    for (size_t i = 0; i < count; i++)
        items[i].target = UINT32_MAX; /* not yet served */
    for (size_t round = 0; round < count; round++) {
        struct plan_item *next = NULL;
        uint64_t room;

        for (size_t i = 0; i < count; i++)
            if (items[i].target == UINT32_MAX && (!next || items[i].peak > next->peak))
                next = &items[i];
        room = next->cost_bytes > 0 ? (budget_bytes - used) / next->cost_bytes : UINT32_MAX;
        next->target = wanted(next);
        if (next->target > room)
            next->target = (uint32_t) room;
        used += next->target * next->cost_bytes;
    }
    return used;
}
