#include "server/guard/bodies.h"

#include "base/hash.h"
#include "server/guard/audit.h"

#include <pthread.h>

#define COUNTS  256
#define RETRY_S 1

static struct {
    pthread_mutex_t lock;
    uint64_t all, of[COUNTS];
} own = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t *count_of(const struct caller *caller)
{
    return &own.of[hash_text(HASH_START, caller->tenant) % COUNTS];
}

int bodies_take(struct caller *caller, uint64_t bytes, struct err *err)
{
    uint64_t *mine = count_of(caller);
    bool full;

    (void) pthread_mutex_lock(&own.lock);
    full = bytes > BODIES_TENANT - *mine || bytes > BODIES_ALL - own.all;
    *mine += full ? 0 : bytes;
    own.all += full ? 0 : bytes;
    (void) pthread_mutex_unlock(&own.lock);
    if (!full)
        return 0;
    err_set(err, ERR_TOO_MANY,
            "quota of bodies: %u MiB of large bodies and answers at once are allowed",
            BODIES_TENANT >> 20);
    caller->blame.retry_s = RETRY_S;
    (void) caller_blame(caller, NULL, "bodies", "quota");
    audit_refusal(caller, "quota.bodies", err);
    return -1;
}

void bodies_give(const struct caller *caller, uint64_t bytes)
{
    (void) pthread_mutex_lock(&own.lock);
    *count_of(caller) -= bytes;
    own.all -= bytes;
    (void) pthread_mutex_unlock(&own.lock);
}
