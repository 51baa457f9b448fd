#include "server/life/crew.h"

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Tasks that stay under way until the gate is opened. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static bool gate;
static atomic_int done;
static char order[64];

static void hang(struct app *app, const struct crew_task *task)
{
    (void) app, (void) task;
    (void) pthread_mutex_lock(&lock);
    while (!gate)
        (void) pthread_cond_wait(&opened, &lock);
    (void) pthread_mutex_unlock(&lock);
    atomic_fetch_add(&done, 1);
}

static void quick(struct app *app, const struct crew_task *task)
{
    (void) app;
    (void) pthread_mutex_lock(&lock);
    (void) strncat(order, task->kind == CREW_END ? "e" : "p", sizeof order - strlen(order) - 1);
    (void) pthread_mutex_unlock(&lock);
    atomic_fetch_add(&done, 1);
}

static void set_gate(bool open)
{
    (void) pthread_mutex_lock(&lock);
    gate = open;
    (void) pthread_cond_broadcast(&opened);
    (void) pthread_mutex_unlock(&lock);
}

static void begin(void)
{
    set_gate(false);
    atomic_store(&done, 0);
    order[0] = '\0';
    crew_start(NULL);
}

static void end(void)
{
    set_gate(true);
    crew_stop();
}

static bool add(enum crew_kind kind, const char *tenant, int number,
                void (*run)(struct app *, const struct crew_task *))
{
    struct crew_task task = { .kind = kind, .run = run };

    (void) snprintf(task.id, sizeof task.id, "i%.4s%d", tenant, number);
    (void) snprintf(task.tenant, sizeof task.tenant, "%s", tenant);
    return crew_add(&task);
}

static bool reaches(atomic_int *what, int wanted)
{
    for (int i = 0; i < 3000 && atomic_load(what) < wanted; i++)
        (void) usleep(10000);
    return atomic_load(what) >= wanted;
}

static unsigned running(enum crew_kind kind, unsigned wanted)
{
    unsigned now = 0, waiting;

    for (int i = 0; i < 3000; i++) {
        crew_count(kind, &now, &waiting);
        if (now >= wanted)
            break;
        (void) usleep(10000);
    }
    return now;
}

static void slow_sandboxes_of_one_tenant_are_waited_for_by_its_share_alone(void)
{
    begin();
    for (int i = 0; i < 100; i++)
        CHECK(add(CREW_PAUSE, "slow", i, hang));
    CHECK_INT(running(CREW_PAUSE, 4), 4);
    CHECK(add(CREW_PAUSE, "other", 1, quick));
    CHECK(add(CREW_END, "third", 1, quick));
    CHECK(reaches(&done, 2));
    CHECK_INT(running(CREW_PAUSE, 4), 4); /* as before */
    end();
}

static void many_slow_tenants_do_not_keep_anything_from_ending(void)
{
    char tenant[8];

    begin();
    for (int t = 0; t < 20; t++) {
        (void) snprintf(tenant, sizeof tenant, "t%d", t);
        for (int i = 0; i < 5; i++) {
            CHECK(add(CREW_PAUSE, tenant, i, hang));
            CHECK(add(CREW_SAVE, tenant, i, hang));
        }
    }
    CHECK_INT(running(CREW_PAUSE, 12), 12);
    CHECK_INT(running(CREW_SAVE, 6), 6);
    CHECK(add(CREW_END, "other", 1, quick));
    CHECK(reaches(&done, 1));
    end();
}

static void ends_come_first_and_then_what_came_first(void)
{
    begin();
    for (int i = 0; i < 24; i++) { /* every thread: three tenants' shares of ends */
        char tenant[8];

        (void) snprintf(tenant, sizeof tenant, "t%d", i / 8);
        CHECK(add(CREW_END, tenant, i, hang));
    }
    CHECK_INT(running(CREW_END, 24), 24);
    CHECK(add(CREW_PAUSE, "a", 1, quick));
    CHECK(add(CREW_END, "a", 2, quick));
    CHECK(add(CREW_END, "b", 3, quick));
    set_gate(true);
    CHECK(reaches(&done, 27));
    CHECK_INT(strlen(order), 3);
    CHECK(strchr(order, 'p') == NULL || strchr(order, 'p') > order); /* never the pause first */
    end();
}

static void the_same_is_done_once_at_a_time(void)
{
    begin();
    CHECK(add(CREW_END, "a", 1, hang));
    CHECK_INT(running(CREW_END, 1), 1);
    CHECK(!add(CREW_END, "a", 1, hang));  /* under way */
    CHECK(add(CREW_PAUSE, "a", 1, hang)); /* something else */
    set_gate(true);
    CHECK(reaches(&done, 2));
    while (running(CREW_END, 0) > 0)
        (void) usleep(1000);
    CHECK(add(CREW_END, "a", 1, quick)); /* again */
    CHECK(reaches(&done, 3));
    end();
}

static void *stop(void *arg)
{
    crew_stop();
    return arg;
}

static void an_end_forgets_what_waits(void)
{
    unsigned now, waiting;
    pthread_t ending;

    begin();
    for (int i = 0; i < 50; i++)
        CHECK(add(CREW_SAVE, "a", i, hang));
    CHECK_INT(running(CREW_SAVE, 2), 2);
    CHECK(!add(CREW_SAVE, "a", 3, hang)); /* it waits already */
    CHECK(pthread_create(&ending, NULL, stop, NULL) == 0);
    do
        crew_count(CREW_SAVE, &now, &waiting);
    while (waiting > 0);
    set_gate(true);
    (void) pthread_join(ending, NULL);
    CHECK_INT(atomic_load(&done), 2);
    CHECK(!add(CREW_SAVE, "a", 99, quick));
}

CHECK_MAIN(T(slow_sandboxes_of_one_tenant_are_waited_for_by_its_share_alone),
           T(many_slow_tenants_do_not_keep_anything_from_ending),
           T(ends_come_first_and_then_what_came_first), T(the_same_is_done_once_at_a_time),
           T(an_end_forgets_what_waits))
