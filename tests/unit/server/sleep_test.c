/* Turns, uses, and what counts as work. */
#include "server/life/idle.h"
#include "server/life/turn.h"
#include "server/life/use.h"
#include "wire/isolation.h"

#include "check.h"

#include <pthread.h>

#define BOX   "iaaaaaaaaaaaaaaaaaaaa"
#define OTHER "ibbbbbbbbbbbbbbbbbbbb"

static void a_turn_is_one_sandboxs_alone(void)
{
    struct turn first, second, other;

    turn_take(&first, BOX);
    CHECK(!turn_try(&second, BOX));
    CHECK(turn_try(&other, OTHER));
    turn_give(&first);
    CHECK(turn_try(&second, BOX));
    turn_give(&second);
    turn_give(&other);
}

static int inside, most, total;

static void *take_turns(void *arg)
{
    (void) arg;
    for (int i = 0; i < 2000; i++) {
        struct turn turn;

        turn_take(&turn, BOX);
        most = ++inside > most ? inside : most;
        total++;
        inside--;
        turn_give(&turn);
    }
    return NULL;
}

static void many_threads_have_it_one_after_the_other(void)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, take_turns, NULL) == 0);
    for (int i = 0; i < 4; i++)
        (void) pthread_join(threads[i], NULL);
    CHECK_INT(most, 1);
    CHECK_INT(total, 8000);
}

static void a_use_counts_until_the_last_one_ends(void)
{
    uint64_t last = 7;

    CHECK(!use_now(BOX, &last));
    CHECK_INT(last, 0);
    use_begin(BOX);
    use_begin(BOX);
    use_end(BOX);
    CHECK(use_now(BOX, &last));
    use_end(BOX);
    use_end(BOX); /* one too many is nobody's */
    CHECK(!use_now(BOX, &last));
    CHECK(last > 0);
    CHECK(!use_now(OTHER, &last));
}

static void half_a_percent_of_a_core_is_work(void)
{
    CHECK(!idle_works(ISOLATION_JAIL, 0, 2000));
    CHECK(!idle_works(ISOLATION_JAIL, 10000, 2000));
    CHECK(idle_works(ISOLATION_JAIL, 10001, 2000));
    CHECK(idle_works(ISOLATION_JAIL, 1, 0));
}

static void a_guests_own_kernel_is_no_work(void)
{
    for (uint32_t i = ISOLATION_JAIL + 1; i < ISOLATION_COUNT; i++) {
        CHECK(!idle_works(i, 100000, 2000));
        CHECK(idle_works(i, 100001, 2000));
    }
}

CHECK_MAIN(T(a_turn_is_one_sandboxs_alone), T(many_threads_have_it_one_after_the_other),
           T(a_use_counts_until_the_last_one_ends), T(half_a_percent_of_a_core_is_work),
           T(a_guests_own_kernel_is_no_work))
