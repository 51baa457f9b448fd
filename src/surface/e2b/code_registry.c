/* One lock over everything here; nothing waits while it has it. Unused contexts are kept for the next cell,
 * up to KEPT_MAX; what is forgotten is found again by asking the sandbox. */
#include "base/hash.h"
#include "base/own.h"
#include "surface/e2b/code.h"

#include <string.h>
#include <time.h>

#define BUCKETS  1024
#define KEPT_MAX 4096
#define ROOMS    16

static struct {
    pthread_mutex_t lock;
    struct code_context *buckets[BUCKETS];
    size_t count;
    uint64_t clock;
    unsigned rooms; /* taken */
    pthread_cond_t room;
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER, .room = PTHREAD_COND_INITIALIZER };

static struct timespec in_ms(unsigned ms)
{
    struct timespec at;

    (void) clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += (long) (ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

static struct code_context **bucket_of(const char *sandbox, const char *id)
{
    return &registry.buckets[hash_text(hash_text(HASH_START, sandbox), id) % BUCKETS];
}

static struct code_context *find(const char *sandbox, const char *id)
{
    struct code_context *context = *bucket_of(sandbox, id);

    while (context && (strcmp(context->sandbox, sandbox) != 0 || strcmp(context->id, id) != 0))
        context = context->next;
    return context;
}

static void unlink_it(struct code_context *context)
{
    struct code_context **at = bucket_of(context->sandbox, context->id);

    while (*at && *at != context)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = context->next;
    registry.count--;
}

static void destroy(struct code_context *context)
{
    (void) pthread_cond_destroy(&context->moved);
    free(context);
}

/* The one that was not used for longest. */
static void forget_one(void)
{
    struct code_context *oldest = NULL;

    for (size_t i = 0; i < BUCKETS; i++)
        for (struct code_context *c = registry.buckets[i]; c; c = c->next)
            if (c->refs == 0 && (!oldest || c->used < oldest->used))
                oldest = c;
    if (!oldest)
        return;
    unlink_it(oldest);
    destroy(oldest);
}

static struct code_context *hold(struct code_context *context)
{
    if (context) {
        context->refs++;
        context->used = ++registry.clock;
    }
    return context;
}

struct code_context *code_registry_get(const char *sandbox, const char *id)
{
    struct code_context *context;

    (void) pthread_mutex_lock(&registry.lock);
    context = hold(find(sandbox, id));
    (void) pthread_mutex_unlock(&registry.lock);
    return context;
}

struct code_context *code_registry_add(const struct code_context *seen)
{
    struct code_context *context;

    (void) pthread_mutex_lock(&registry.lock);
    context = find(seen->sandbox, seen->id);
    if (!context && (context = calloc(1, sizeof *context))) {
        struct code_context **bucket = bucket_of(seen->sandbox, seen->id);

        memcpy(context->sandbox, seen->sandbox, sizeof context->sandbox);
        memcpy(context->id, seen->id, sizeof context->id);
        memcpy(context->cwd, seen->cwd, sizeof context->cwd);
        context->language = seen->language;
        context->proc = seen->proc;
        context->root = seen->root;
        context->as_root = seen->as_root;
        context->warm = seen->warm;
        context->from_stdout = seen->from_stdout;
        context->from_stderr = seen->from_stderr;
        (void) pthread_cond_init(&context->moved, NULL);
        if (registry.count >= KEPT_MAX)
            forget_one();
        context->next = *bucket;
        *bucket = context;
        registry.count++;
    }
    (void) hold(context);
    (void) pthread_mutex_unlock(&registry.lock);
    return context;
}

void code_registry_put(struct code_context *context)
{
    if (!context)
        return;
    (void) pthread_mutex_lock(&registry.lock);
    if (--context->refs == 0 && context->removed)
        destroy(context);
    (void) pthread_mutex_unlock(&registry.lock);
}

void code_registry_remove(struct code_context *context)
{
    (void) pthread_mutex_lock(&registry.lock);
    if (!context->removed)
        unlink_it(context);
    context->removed = true;
    (void) pthread_cond_broadcast(&context->moved);
    (void) pthread_mutex_unlock(&registry.lock);
}

/* ---- turns ---- */

void code_turn_join(struct code_context *context, struct code_turn *turn)
{
    struct code_turn **at = &context->first;

    turn->next = NULL;
    (void) pthread_mutex_lock(&registry.lock);
    while (*at)
        at = &(*at)->next;
    *at = turn;
    (void) pthread_mutex_unlock(&registry.lock);
}

bool code_turn_wait(struct code_context *context, const struct code_turn *turn, unsigned ms)
{
    struct timespec until = in_ms(ms);
    int r = 0;
    bool ours;

    (void) pthread_mutex_lock(&registry.lock);
    while (context->first != turn && r == 0)
        r = pthread_cond_timedwait(&context->moved, &registry.lock, &until);
    ours = context->first == turn;
    (void) pthread_mutex_unlock(&registry.lock);
    return ours;
}

void code_turn_leave(struct code_context *context, struct code_turn *turn)
{
    struct code_turn **at = &context->first;

    (void) pthread_mutex_lock(&registry.lock);
    while (*at && *at != turn)
        at = &(*at)->next;
    if (*at)
        *at = turn->next;
    (void) pthread_cond_broadcast(&context->moved);
    (void) pthread_mutex_unlock(&registry.lock);
}

/* ---- room for long lines ---- */

bool code_room_take(unsigned ms)
{
    struct timespec until = in_ms(ms);
    int r = 0;
    bool taken;

    (void) pthread_mutex_lock(&registry.lock);
    while (registry.rooms == ROOMS && r == 0)
        r = pthread_cond_timedwait(&registry.room, &registry.lock, &until);
    taken = registry.rooms < ROOMS;
    registry.rooms += taken;
    (void) pthread_mutex_unlock(&registry.lock);
    return taken;
}

void code_room_give(void)
{
    (void) pthread_mutex_lock(&registry.lock);
    registry.rooms--;
    (void) pthread_cond_signal(&registry.room);
    (void) pthread_mutex_unlock(&registry.lock);
}
