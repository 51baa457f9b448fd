#include "server/life/chore.h"

#include "base/io.h"

#include <errno.h>

int chore_start(struct chore *chore, const char *what, void *(*run)(void *), void *arg,
                struct err *err)
{
    int why = pthread_create(&chore->thread, NULL, run, arg);

    if (why)
        return err_sys(err, why, "start the thread of %s", what);
    chore->running = true;
    return 0;
}

/* By the clock that cannot be set: one that was set back by a day would end the rounds for a day. */
static bool pass(struct chore *chore, uint64_t ms, bool until_nudged)
{
    struct timespec until = io_after_ms(ms);
    bool stop;

    (void) pthread_mutex_lock(&chore->lock);
    while (!chore->stop && !(until_nudged && chore->nudged) &&
           pthread_cond_clockwait(&chore->wake, &chore->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
        ;
    stop = chore->stop;
    if (until_nudged)
        chore->nudged = false;
    (void) pthread_mutex_unlock(&chore->lock);
    return !stop;
}

bool chore_rest(struct chore *chore, uint64_t ms)
{
    return pass(chore, ms, false);
}

bool chore_wait(struct chore *chore, uint64_t ms)
{
    return pass(chore, ms, true);
}

static void wake(struct chore *chore, bool *flag)
{
    (void) pthread_mutex_lock(&chore->lock);
    *flag = true;
    (void) pthread_cond_signal(&chore->wake);
    (void) pthread_mutex_unlock(&chore->lock);
}

void chore_nudge(struct chore *chore)
{
    wake(chore, &chore->nudged);
}

void chore_stop(struct chore *chore)
{
    if (!chore->running)
        return;
    wake(chore, &chore->stop);
    (void) pthread_join(chore->thread, NULL);
    chore->running = false;
}
