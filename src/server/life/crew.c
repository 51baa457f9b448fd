#include "server/life/crew.h"

#include "base/log.h"
#include "base/own.h"

#include <pthread.h>
#include <string.h>

#define THREADS_MAX 24
#define WAITING_MAX 4096 /* more is found again in the next round */

/* Of the threads: for a kind, and for a tenant's of that kind. Together the later kinds never have all of them. */
static const struct share {
    unsigned all, tenant;
} shares[CREW_KINDS] = {
    [CREW_END] = { THREADS_MAX, 8 },
    [CREW_PAUSE] = { 12, 4 },
    [CREW_SAVE] = { 6, 2 },
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct app *app;
    pthread_t thread[THREADS_MAX];
    unsigned threads, idle;
    const struct crew_task *running[THREADS_MAX]; /* by thread; NULL: idle */
    struct crew_task waiting[WAITING_MAX];        /* in the order in which they came */
    size_t count;
    bool stop;
} own = { .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER };

/* ---- under the lock ---- */

static bool is_same(const struct crew_task *a, const struct crew_task *b)
{
    return a->kind == b->kind && strcmp(a->id, b->id) == 0;
}

static bool is_known(const struct crew_task *task)
{
    for (unsigned i = 0; i < own.threads; i++)
        if (own.running[i] && is_same(own.running[i], task))
            return true;
    for (size_t i = 0; i < own.count; i++)
        if (is_same(&own.waiting[i], task))
            return true;
    return false;
}

/* tenant NULL: everybody's. */
static unsigned count_running(enum crew_kind kind, const char *tenant)
{
    unsigned count = 0;

    for (unsigned i = 0; i < own.threads; i++)
        count += own.running[i] && own.running[i]->kind == kind &&
                 (!tenant || strcmp(own.running[i]->tenant, tenant) == 0);
    return count;
}

/* Of a kind, the one whose tenant has fewest under way, and of those the one that came first; -1: none may begin. */
static int choose(enum crew_kind kind)
{
    unsigned least = shares[kind].tenant;
    int best = -1;

    if (count_running(kind, NULL) >= shares[kind].all)
        return -1;
    for (size_t i = 0; i < own.count && least > 0; i++) {
        unsigned has;

        if (own.waiting[i].kind != kind)
            continue;
        has = count_running(kind, own.waiting[i].tenant);
        if (has < least) {
            least = has;
            best = (int) i;
        }
    }
    return best;
}

static bool take(struct crew_task *ret)
{
    for (int kind = 0; kind < CREW_KINDS; kind++) {
        int i = choose((enum crew_kind) kind);

        if (i < 0)
            continue;
        *ret = own.waiting[i];
        own.count--;
        memmove(&own.waiting[i], &own.waiting[i + 1],
                (own.count - (size_t) i) * sizeof own.waiting[0]);
        return true;
    }
    return false;
}

/* ---- the threads ---- */

static void *work(void *arg)
{
    unsigned self = (unsigned) (uintptr_t) arg;
    struct crew_task task;

    (void) pthread_mutex_lock(&own.lock);
    while (!own.stop) {
        if (!take(&task)) {
            own.idle++;
            (void) pthread_cond_wait(&own.work, &own.lock);
            own.idle--;
            continue;
        }
        own.running[self] = &task;
        (void) pthread_mutex_unlock(&own.lock);
        task.run(own.app, &task);
        (void) pthread_mutex_lock(&own.lock);
        own.running[self] = NULL;
        if (own.count > 0) /* something may have waited for this share */
            (void) pthread_cond_broadcast(&own.work);
    }
    (void) pthread_mutex_unlock(&own.lock);
    return NULL;
}

/* Where none can be started, those that are there do it. */
static void start_another(void)
{
    if (own.idle >= own.count || own.threads == THREADS_MAX)
        return;
    if (pthread_create(&own.thread[own.threads], NULL, work, (void *) (uintptr_t) own.threads) == 0)
        own.threads++;
    else
        log_line(LOG_WARNING, "a thread for deadlines could not be started: there are %u",
                 own.threads);
}

void crew_start(struct app *app)
{
    own.app = app;
    own.stop = false;
}

bool crew_add(const struct crew_task *task)
{
    bool added;

    (void) pthread_mutex_lock(&own.lock);
    added = !own.stop && own.count < WAITING_MAX && !is_known(task);
    if (added) {
        own.waiting[own.count++] = *task;
        start_another();
        (void) pthread_cond_signal(&own.work);
    }
    (void) pthread_mutex_unlock(&own.lock);
    return added;
}

void crew_stop(void)
{
    (void) pthread_mutex_lock(&own.lock);
    own.stop = true;
    own.count = 0;
    (void) pthread_cond_broadcast(&own.work);
    (void) pthread_mutex_unlock(&own.lock);
    for (unsigned i = 0; i < own.threads; i++)
        (void) pthread_join(own.thread[i], NULL);
    own.threads = 0;
}

void crew_count(enum crew_kind kind, unsigned *ret_running, unsigned *ret_waiting)
{
    (void) pthread_mutex_lock(&own.lock);
    *ret_running = count_running(kind, NULL);
    *ret_waiting = 0;
    for (size_t i = 0; i < own.count; i++)
        *ret_waiting += own.waiting[i].kind == kind;
    (void) pthread_mutex_unlock(&own.lock);
}
