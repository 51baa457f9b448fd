#include "server/life/use.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/parse.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS   1024
#define FORGET_MS 3600000

struct use {
    char id[ID_LEN + 1];
    unsigned open;
    uint64_t last_ms;
    struct use *next;
};

static struct {
    pthread_mutex_t lock;
    struct use *buckets[BUCKETS];
} own = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Under the lock, as the next. What is old in the same bucket goes. */
static struct use **find(const char *id)
{
    struct use **at = &own.buckets[hash_text(HASH_START, id) % BUCKETS];
    uint64_t now = io_now_ms();

    while (*at && strcmp((*at)->id, id) != 0) {
        struct use *old = *at;

        if (old->open == 0 && now - old->last_ms > FORGET_MS) {
            *at = old->next;
            free(old);
        } else {
            at = &old->next;
        }
    }
    return at;
}

/* Without memory for it a sandbox looks unused while it is asked; what was asked then fails for want of memory, too. */
void use_begin(const char *sandbox)
{
    struct use **at;

    (void) pthread_mutex_lock(&own.lock);
    at = find(sandbox);
    if (!*at) {
        struct use *made = calloc(1, sizeof *made);

        if (made)
            (void) snprintf(made->id, sizeof made->id, "%s", sandbox);
        *at = made;
    }
    if (*at)
        (*at)->open++;
    (void) pthread_mutex_unlock(&own.lock);
}

void use_end(const char *sandbox)
{
    struct use *use;

    (void) pthread_mutex_lock(&own.lock);
    use = *find(sandbox);
    if (use && use->open > 0) {
        use->open--;
        use->last_ms = io_now_ms();
    }
    (void) pthread_mutex_unlock(&own.lock);
}

void use_switch(char used[ID_LEN + 1], const char *sandbox)
{
    if (strcmp(used, sandbox) == 0)
        return;
    if (used[0])
        use_end(used);
    (void) snprintf(used, ID_LEN + 1, "%s", sandbox);
    if (sandbox[0])
        use_begin(sandbox);
}

bool use_now(const char *sandbox, uint64_t *ret_last_ms)
{
    const struct use *use;
    bool open;

    (void) pthread_mutex_lock(&own.lock);
    use = *find(sandbox);
    open = use && use->open > 0;
    *ret_last_ms = use ? use->last_ms : 0;
    (void) pthread_mutex_unlock(&own.lock);
    return open;
}
