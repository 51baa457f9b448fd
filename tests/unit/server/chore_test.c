#include "server/life/chore.h"

#include "check.h"

#include <stdatomic.h>

#define FOREVER_MS 3600000

static struct chore chore;
static atomic_int rounds;
static pthread_barrier_t round_done;

static void begin(void *(*run)(void *) )
{
    struct err err;

    chore = (struct chore) CHORE_INIT;
    atomic_store(&rounds, 0);
    (void) pthread_barrier_init(&round_done, NULL, 2);
    CHECK_INT(chore_start(&chore, "tests", run, NULL, &err), 0);
}

static void *wait_for_nudges(void *arg)
{
    do {
        atomic_fetch_add(&rounds, 1);
        (void) pthread_barrier_wait(&round_done);
    } while (chore_wait(&chore, FOREVER_MS));
    return arg;
}

static void *rest_for_ever(void *arg)
{
    (void) pthread_barrier_wait(&round_done);
    while (chore_rest(&chore, FOREVER_MS))
        atomic_fetch_add(&rounds, 1);
    return arg;
}

static void *many_rounds(void *arg)
{
    while (atomic_fetch_add(&rounds, 1) < 3 && chore_rest(&chore, 1))
        ;
    (void) pthread_barrier_wait(&round_done);
    return arg;
}

static void a_nudge_ends_a_wait_also_one_from_before(void)
{
    begin(wait_for_nudges);
    chore_nudge(&chore); /* the first round may be under way: it counts for the wait behind it */
    (void) pthread_barrier_wait(&round_done);
    (void) pthread_barrier_wait(&round_done);
    CHECK_INT(atomic_load(&rounds), 2);
    chore_stop(&chore);
    CHECK_INT(atomic_load(&rounds), 2);
}

static void a_nudge_does_not_end_a_rest_but_a_stop_does(void)
{
    begin(rest_for_ever);
    (void) pthread_barrier_wait(&round_done);
    chore_nudge(&chore);
    chore_stop(&chore);
    CHECK_INT(atomic_load(&rounds), 0);
}

static void a_rest_ends_when_its_time_is_over(void)
{
    begin(many_rounds);
    (void) pthread_barrier_wait(&round_done);
    CHECK_INT(atomic_load(&rounds), 4);
    chore_stop(&chore);
}

static void what_was_never_started_can_be_stopped(void)
{
    struct chore none = CHORE_INIT;

    chore_stop(&none);
    CHECK(!none.running);
}

CHECK_MAIN(T(a_nudge_ends_a_wait_also_one_from_before),
           T(a_nudge_does_not_end_a_rest_but_a_stop_does), T(a_rest_ends_when_its_time_is_over),
           T(what_was_never_started_can_be_stopped))
