/* Requests of one user in a window. */
#include "server/guard/user_rate.h"

#include "check.h"

#include <stdio.h>

#define MOST   3
#define WINDOW 1000

static struct user_rate *rate;

static uint64_t take(const char *user, uint64_t now_ms)
{
    if (!rate)
        rate = user_rate_new(); /* until the end of the program */
    return user_rate_take(rate, user, MOST, WINDOW, now_ms);
}

static void a_window_takes_so_many_and_the_next_begins_anew(void)
{
    for (int i = 0; i < MOST; i++)
        CHECK_INT(take("a", 5000 + (uint64_t) i), 0);
    CHECK_INT(take("a", 5400), 600);
    CHECK_INT(take("b", 5400), 0);
    CHECK_INT(take("a", 5999), 1);
    CHECK_INT(take("a", 6000), 0);
}

static void refusals_do_not_lengthen_a_window(void)
{
    for (int i = 0; i < MOST; i++)
        CHECK_INT(take("c", 7000), 0);
    for (int i = 0; i < 100; i++)
        CHECK_INT(take("c", 7500), 500);
    CHECK_INT(take("c", 8000), 0);
}

static void a_crowd_of_users_is_forgotten_oldest_first(void)
{
    char name[32];

    for (int i = 0; i < 100000; i++) {
        (void) snprintf(name, sizeof name, "user-%d", i);
        CHECK_INT(take(name, 9000 + (uint64_t) i / 1000), 0);
    }
    for (int i = 0; i < MOST - 1; i++)
        CHECK_INT(take("user-99999", 9100), 0);
    CHECK_INT(take("user-99999", 9100), 999); /* the newest is still known */
}

CHECK_MAIN(T(a_window_takes_so_many_and_the_next_begins_anew), T(refusals_do_not_lengthen_a_window),
           T(a_crowd_of_users_is_forgotten_oldest_first))
