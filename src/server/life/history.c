#include "server/life/history.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "client/sandbox.h"
#include "server/app/app.h"
#include "server/life/chore.h"
#include "store/store.h"

#include <string.h>

#define RING_FIRST 45 /* 720 after four doublings */

struct series {
    char id[ID_LEN + 1];
    uint64_t cpu_us, seen_ms; /* at the last look; seen_ms 0: none yet */
    struct history_ring ring;
};

/* The list is sorted by id. Only the thread changes it, under the lock; so it may read without. */
static struct {
    struct chore chore;
    pthread_mutex_t lock;
    struct series *list;
    size_t count;
} own = { .chore = CHORE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- rings ---- */

static int grow(struct history_ring *ring)
{
    size_t room = ring->room ? 2 * ring->room : RING_FIRST;
    struct history_point *more = realloc(ring->points, room * sizeof *more);

    if (!more)
        return -1;
    ring->points = more; /* it grows only before it has gone round: first is 0 */
    ring->room = room;
    return 0;
}

int history_ring_add(struct history_ring *ring, const struct history_point *point)
{
    if (ring->count == ring->room && ring->room < HISTORY_POINTS && grow(ring) < 0)
        return -1;
    if (ring->count < ring->room) {
        ring->points[ring->count++] = *point;
        return 0;
    }
    ring->points[ring->first] = *point;
    ring->first = (ring->first + 1) % ring->room;
    return 0;
}

const struct history_point *history_ring_at(const struct history_ring *ring, size_t i)
{
    return &ring->points[(ring->first + i) % ring->room];
}

static int series_by_id(const void *a, const void *b)
{
    return strcmp(((const struct series *) a)->id, ((const struct series *) b)->id);
}

static struct series *find(const char *sandbox)
{
    struct series key = { .cpu_us = 0 };

    if (own.count == 0 || strlen(sandbox) != ID_LEN)
        return NULL;
    memcpy(key.id, sandbox, ID_LEN);
    return bsearch(&key, own.list, own.count, sizeof key, series_by_id);
}

int history_read(const char *sandbox, uint64_t from_ms, uint64_t until_ms,
                 struct history_point **ret, size_t *ret_count, struct err *err)
{
    struct history_point *points = NULL;
    const struct series *series;
    size_t count = 0;
    int r = 0;

    (void) pthread_mutex_lock(&own.lock);
    series = find(sandbox);
    if (series && series->ring.count > 0) {
        points = calloc(series->ring.count, sizeof *points);
        r = points ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for the history");
    }
    for (size_t i = 0; points && i < series->ring.count; i++) {
        const struct history_point *point = history_ring_at(&series->ring, i);

        if (point->time_ms >= from_ms && (!until_ms || point->time_ms <= until_ms))
            points[count++] = *point;
    }
    (void) pthread_mutex_unlock(&own.lock);
    if (r == 0) {
        *ret = points;
        *ret_count = count;
    }
    return r;
}

/* ---- looking ---- */

static int kept_by_id(const void *a, const void *b)
{
    return strcmp(((const struct keeper_sandbox *) a)->id, ((const struct keeper_sandbox *) b)->id);
}

/* One series for each that is kept, in its order; those of others end. */
static int match_list(struct keeper_sandbox *kept, size_t count)
{
    struct series *next = calloc(count + 1, sizeof *next);

    if (!next)
        return -1;
    if (count > 0)
        qsort(kept, count, sizeof *kept, kept_by_id);
    (void) pthread_mutex_lock(&own.lock);
    for (size_t i = 0; i < count; i++) {
        struct series *before = find(kept[i].id);

        if (before) {
            next[i] = *before;
            before->ring.points = NULL;
        }
        (void) snprintf(next[i].id, sizeof next[i].id, "%.*s", ID_LEN, kept[i].id);
    }
    for (size_t i = 0; i < own.count; i++)
        free(own.list[i].ring.points);
    free(own.list);
    own.list = next;
    own.count = count;
    (void) pthread_mutex_unlock(&own.lock);
    return 0;
}

/* The first point tells of the time since the sandbox began. */
static void note(struct series *series, const struct keeper_sandbox *kept,
                 const struct keeper_stats *stats)
{
    uint64_t now = store_now_ms(), since = series->seen_ms ? series->seen_ms : kept->created_ms;
    uint64_t elapsed_ms = now > since ? now - since : 1;
    uint64_t used_us = stats->cpu_us > series->cpu_us ? stats->cpu_us - series->cpu_us : 0;
    struct history_point point = { .time_ms = now,
                                   .cpu_milli = used_us / elapsed_ms,
                                   .cpu_limit = kept->limits.cpu_milli,
                                   .memory_bytes = stats->memory_bytes,
                                   .memory_cache_bytes = stats->memory_cache_bytes,
                                   .memory_limit_bytes = kept->limits.memory_bytes,
                                   .disk_bytes = stats->disk_bytes,
                                   .disk_limit_bytes = kept->limits.disk_bytes };

    (void) pthread_mutex_lock(&own.lock);
    series->cpu_us = stats->cpu_us;
    series->seen_ms = now;
    (void) history_ring_add(&series->ring, &point); /* without memory a point is missing */
    (void) pthread_mutex_unlock(&own.lock);
}

static void one_round(struct app *app)
{
    auto_free struct keeper_sandbox *kept = NULL;
    struct keeper_stats stats;
    size_t count = 0;
    struct link link;
    struct err err;
    int r;

    if (app_link_take(app, &link, &err) < 0)
        return; /* the keeper is away: the next round */
    r = sandbox_list(&link, &kept, &count, &err);
    if (r == 0 && match_list(kept, count) == 0) {
        for (size_t i = 0; i < count && r == 0; i++) {
            if (kept[i].life != LIFE_RUNNING)
                continue;
            r = sandbox_stats(&link, kept[i].id, &stats, &err);
            if (r == 0)
                note(&own.list[i], &kept[i], &stats);
            else if (err.kind == ERR_NO_SANDBOX || err.kind == ERR_STATE || err.kind == ERR_NO_PATH)
                r = 0; /* ended since the list was made */
        }
    }
    app_link_give(app, &link, r == 0);
}

/* The rounds keep their distance however long each takes; one that comes too late starts the count again. */
static void *watch(void *arg)
{
    uint64_t now = io_now_ms(), next = now + HISTORY_EVERY_MS;

    while (chore_rest(&own.chore, next > now ? next - now : 0)) {
        one_round(arg);
        now = io_now_ms();
        next += HISTORY_EVERY_MS;
        if (next < now)
            next = now + HISTORY_EVERY_MS;
    }
    return NULL;
}

int history_start(struct app *app, struct err *err)
{
    return chore_start(&own.chore, "histories", watch, app, err);
}

void history_stop(void)
{
    chore_stop(&own.chore);
}
