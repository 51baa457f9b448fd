/* What is kept of steps. `held` guards that a snapshot which a build has just found is not dropped by another that makes room: a
 * build writes down what it stands on before it lets go of the lock. */
#include "server/build/build_own.h"

#include "base/log.h"
#include "base/own.h"

#include <pthread.h>
#include <string.h>

#define STEPS_KEPT  64           /* snapshots of steps, of one tenant */
#define STEPS_BYTES (8ull << 30) /* of those */

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

struct cache {
    struct run *run;
    size_t count;
    uint64_t bytes;
    char (*keys)[KEY_MAX], (*images)[ID_LEN + 1]; /* that go */
    size_t going;
};

static int find_excess(void *arg, const char *key, const char *snapshot, uint64_t bytes,
                       struct err *err)
{
    struct cache *cache = arg;
    void *keys, *images;

    cache->bytes += bytes;
    if (++cache->count <= STEPS_KEPT && cache->bytes <= STEPS_BYTES)
        return 0;
    keys = realloc(cache->keys, (cache->going + 1) * sizeof *cache->keys);
    if (keys)
        cache->keys = keys;
    images = realloc(cache->images, (cache->going + 1) * sizeof *cache->images);
    if (images)
        cache->images = images;
    if (!keys || !images)
        return err_set(err, ERR_NO_MEMORY, "no memory for a list of steps");
    (void) snprintf(cache->keys[cache->going], sizeof *cache->keys, "%s", key);
    (void) snprintf(cache->images[cache->going++], sizeof *cache->images, "%s", snapshot);
    return 0;
}

/* With `held`: those that were used longest ago go. */
static void evict(struct run *run)
{
    struct app *app = job_app(run->job);
    struct cache cache = { .run = run };
    struct err err;

    if (store_step_list(app->store, run->ops.caller->tenant, find_excess, &cache, &err) < 0)
        log_line(LOG_WARNING, "steps of builds could not be read: %s", err.msg);
    for (size_t i = 0; i < cache.going; i++)
        if (store_step_remove(app->store, run->ops.caller->tenant, cache.keys[i], &err) == 0)
            ops_template_drop(app, cache.images[i]);
    free(cache.keys);
    free(cache.images);
}

int cache_keep(struct run *run, const char *key, uint64_t seal_from, struct err *err)
{
    struct store_build *record = job_record(run->job);
    struct ops_save_template save = { .memory = false, .seal_from = seal_from };
    char before[ID_LEN + 1], replaced[ID_LEN + 1] = "";
    struct err ignored;
    int r;

    /* Without `held`: a save takes as long as the disk is large, and nothing speaks of the snapshot yet. */
    if (ops_template_save(&run->ops, record->sandbox, &save, err) < 0)
        return -1;
    (void) pthread_mutex_lock(&held);
    memcpy(before, record->snapshot, sizeof before);
    memcpy(record->snapshot, save.id, sizeof record->snapshot);
    if (key)
        (void) store_step_get(job_app(run->job)->store, run->ops.caller->tenant, key, replaced,
                              &ignored);
    r = job_save(run->job, err);
    if (r == 0 && key)
        r = store_step_add(job_app(run->job)->store, run->ops.caller->tenant, key, save.id,
                           save.bytes, err);
    ops_template_drop(job_app(run->job), before);
    ops_template_drop(job_app(run->job), replaced);
    evict(run);
    (void) pthread_mutex_unlock(&held);
    if (r == 0 && save.sealed)
        job_remove_sandbox(run->job); /* from the record of the build */
    return r;
}

/* The last step whose result is known, or 0; the record holds it. */
int cache_find(struct run *run, size_t *ret, struct err *err)
{
    const struct build_stage *stage = run->stage;
    char(*keys)[KEY_MAX] = run->keys[stage - job_spec(run->job)->stages];
    struct store_build *record = job_record(run->job);
    size_t most = job_spec(run->job)->force ? 0 : stage->count;
    int found = 0;

    for (size_t i = 0; i < stage->count && most > i; i++)
        if (stage->steps[i].force)
            most = i;
    *ret = 0;
    (void) pthread_mutex_lock(&held);
    for (size_t n = most; n > 0 && found == 0; n--) {
        found = store_step_get(job_app(run->job)->store, run->ops.caller->tenant, keys[n],
                               record->snapshot, err);
        *ret = found == 1 ? n : 0;
    }
    if (found == 1 && job_save(run->job, err) < 0)
        found = -1;
    (void) pthread_mutex_unlock(&held);
    return found < 0 ? -1 : 0;
}
