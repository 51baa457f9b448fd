#include "server/life/deadline.h"

#include "check.h"

static void a_clock_that_drifts_is_no_jump(void)
{
    int64_t ahead = 1000000;

    CHECK_INT(deadline_jump(&ahead, 1000000), 0);
    CHECK_INT(deadline_jump(&ahead, 1001999), 0);
    CHECK_INT(deadline_jump(&ahead, 998001), 0);
    CHECK_INT(ahead, 1000000);
}

static void a_clock_that_is_set_is_one_in_both_directions(void)
{
    int64_t ahead = 1000000;

    CHECK_INT(deadline_jump(&ahead, 1000000 + 3600000), 3600000);
    CHECK_INT(deadline_jump(&ahead, 1000000 + 3600000), 0); /* once */
    CHECK_INT(deadline_jump(&ahead, 1000000), -3600000);
    CHECK_INT(ahead, 1000000);
}

static void drift_counts_when_it_adds_up(void)
{
    int64_t ahead = 0;

    for (int64_t now = 0; now < 2000; now += 100)
        CHECK_INT(deadline_jump(&ahead, now), 0);
    CHECK_INT(deadline_jump(&ahead, 2000), 2000);
}

CHECK_MAIN(T(a_clock_that_drifts_is_no_jump), T(a_clock_that_is_set_is_one_in_both_directions),
           T(drift_counts_when_it_adds_up))
