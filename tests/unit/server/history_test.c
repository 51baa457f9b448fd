#include "server/life/history.h"

#include "check.h"

#include <stdlib.h>

static void a_ring_keeps_the_last_points_in_order(void)
{
    struct history_ring ring = { .points = NULL };

    for (uint64_t i = 0; i < 3 * HISTORY_POINTS + 7; i++) {
        struct history_point point = { .time_ms = i };

        CHECK_INT(history_ring_add(&ring, &point), 0);
        CHECK(history_ring_at(&ring, ring.count - 1)->time_ms == i);
    }
    CHECK_INT(ring.count, HISTORY_POINTS);
    CHECK_INT(ring.room, HISTORY_POINTS);
    for (size_t i = 0; i < ring.count; i++)
        CHECK(history_ring_at(&ring, i)->time_ms == 2 * HISTORY_POINTS + 7 + i);
    free(ring.points);
}

static void a_young_ring_is_small(void)
{
    struct history_ring ring = { .points = NULL };
    struct history_point point = { .time_ms = 1 };

    CHECK_INT(history_ring_add(&ring, &point), 0);
    CHECK_INT(ring.count, 1);
    CHECK(ring.room <= 64);
    free(ring.points);
}

static void a_sandbox_that_nobody_knows_has_no_points(void)
{
    struct history_point *points = NULL;
    size_t count = 9;
    struct err err;

    CHECK_INT(history_read("i0000abcdefghijklmnop", 0, 0, &points, &count, &err), 0);
    CHECK_INT(count, 0);
    free(points);
}

CHECK_MAIN(T(a_ring_keeps_the_last_points_in_order), T(a_young_ring_is_small),
           T(a_sandbox_that_nobody_knows_has_no_points))
