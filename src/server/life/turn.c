#include "server/life/turn.h"

#include "base/io.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t given;
    struct turn *taken;
} own = { .lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER };

/* Under the lock. */
static bool is_taken(const char *id)
{
    for (const struct turn *t = own.taken; t; t = t->next)
        if (strcmp(t->id, id) == 0)
            return true;
    return false;
}

static void enter(struct turn *turn, const char *id)
{
    (void) snprintf(turn->id, sizeof turn->id, "%s", id);
    turn->next = own.taken;
    own.taken = turn;
}

void turn_take(struct turn *turn, const char *id)
{
    (void) pthread_mutex_lock(&own.lock);
    while (is_taken(id))
        (void) pthread_cond_wait(&own.given, &own.lock);
    enter(turn, id);
    (void) pthread_mutex_unlock(&own.lock);
}

bool turn_try(struct turn *turn, const char *id)
{
    bool free;

    (void) pthread_mutex_lock(&own.lock);
    free = !is_taken(id);
    if (free)
        enter(turn, id);
    (void) pthread_mutex_unlock(&own.lock);
    return free;
}

bool turn_wait(struct turn *turn, const char *id, uint64_t ms)
{
    struct timespec until = io_after_ms(ms);
    bool free;

    (void) pthread_mutex_lock(&own.lock);
    while (is_taken(id) &&
           pthread_cond_clockwait(&own.given, &own.lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
        ;
    free = !is_taken(id);
    if (free)
        enter(turn, id);
    (void) pthread_mutex_unlock(&own.lock);
    return free;
}

void turn_give(struct turn *turn)
{
    struct turn **at = &own.taken;

    (void) pthread_mutex_lock(&own.lock);
    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    (void) pthread_cond_broadcast(&own.given);
    (void) pthread_mutex_unlock(&own.lock);
}
