#include "cli/up/restart.h"

#include "check.h"

#include <signal.h>
#include <sys/wait.h>

static void the_first_end_costs_no_wait_and_the_others_double_it(void)
{
    static const unsigned want[] = { 0, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000 };
    struct restart r = { .was_ready = true };
    unsigned wait;

    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        CHECK(restart_again(&r, SIGKILL, 0, &wait));
        CHECK_INT(wait, want[i]);
    }
    for (int i = 0; i < 100000; i++)
        CHECK(restart_again(&r, SIGKILL, 0, &wait));
    CHECK_INT(wait, RESTART_MOST_MS);
}

static void health_is_rewarded(void)
{
    struct restart r = { .was_ready = true };
    unsigned wait;

    for (int i = 0; i < 8; i++)
        CHECK(restart_again(&r, SIGKILL, 0, &wait));
    CHECK(restart_again(&r, SIGKILL, 3500, &wait)); /* 8 - 3 + 1 */
    CHECK_INT(wait, 1600);
    CHECK(restart_again(&r, SIGKILL, 60000, &wait));
    CHECK_INT(wait, 0);
    for (int i = 0; i < 40; i++) { /* killed every second, it is back at once each time */
        CHECK(restart_again(&r, SIGKILL, 1000, &wait));
        CHECK_INT(wait, 0);
    }
}

static void what_was_never_ready_is_given_up(void)
{
    struct restart r = { 0 };
    unsigned wait;

    for (int i = 1; i < RESTART_TRIES; i++)
        CHECK(restart_again(&r, W_EXITCODE(70, 0), 0, &wait));
    CHECK(!restart_again(&r, W_EXITCODE(70, 0), 0, &wait));
}

static void a_wrong_configuration_is_given_up_at_once_but_not_later(void)
{
    struct restart fresh = { 0 }, old = { .was_ready = true }, crashed = { 0 };
    unsigned wait;

    CHECK(!restart_again(&fresh, W_EXITCODE(65, 0), 0, &wait));
    CHECK(restart_again(&old, W_EXITCODE(65, 0), 0, &wait));
    CHECK(restart_again(&crashed, SIGSEGV, 0, &wait));
}

static void reasons_are_for_people_and_codes_for_shells(void)
{
    char text[64];

    CHECK_STR(restart_reason(W_EXITCODE(70, 0), text, sizeof text), "exit code 70");
    CHECK_STR(restart_reason(SIGKILL, text, sizeof text), "signal 9 (SIGKILL)");
    CHECK_STR(restart_reason(SIGSEGV | 0x80, text, sizeof text), "signal 11 (SIGSEGV)");
    CHECK_STR(restart_reason(40, text, sizeof text), "signal 40 (SIG?)");
    CHECK_INT(restart_exit_code(W_EXITCODE(65, 0)), 65);
    CHECK_INT(restart_exit_code(SIGKILL), 137);
}

CHECK_MAIN(T(the_first_end_costs_no_wait_and_the_others_double_it), T(health_is_rewarded),
           T(what_was_never_ready_is_given_up),
           T(a_wrong_configuration_is_given_up_at_once_but_not_later),
           T(reasons_are_for_people_and_codes_for_shells))
