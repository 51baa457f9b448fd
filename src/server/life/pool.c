/* One round: the rules as they are now, the keeper's list of what waits, a plan, then ends and beginnings until the
 * plan is met. The list is asked for every ROUND_MS, which also tells the keeper that a server is there; between two
 * lists the table is kept up to date by what this server does itself. A round is begun early when one was taken.
 *
 * What is made ahead must not cost those who wait now. So there is one at a time, on one link; and before each, the
 * thread waits until no create is under way, but not for ever: in a stream of creates that never pauses a pool would
 * never fill, and would be of no use when it is needed most. */
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "client/image.h"
#include "client/warm.h"
#include "server/guard/quota.h"
#include "server/life/pool_own.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#define ROUND_MS 2000
#define YIELD_MS 20 /* how long creates under way can hold up the next that is made ahead */
/* A restore keeps a core busy for a while, just when the taker of the last one has its first request. */
#define REST_MS    300  /* after a create, before the next is restored */
#define REST_MOST  2000 /* in a stream of creates */
#define PAUSE_MS   10   /* after a create that took the only one: its command begins now */
#define LOOK_EVERY 16   /* that many are made for each whose memory is looked at */
#define RETRY_MS   1000
#define RETRY_MOST 60000

/* ---- what there is, and what is wanted ---- */

static int add_rule(void *arg, const struct store_pool_rule *rule, struct err *err)
{
    (void) err;
    (void) pool_rules_put(arg, rule);
    return 0;
}

/* What was told at run time wins over the configuration. */
static void read_rules(struct app *app, struct pool_rules *ret)
{
    struct err err;

    if (pool_rules_parse(app_config(app)->pool, ret, &err) < 0 || /* checked when it was set */
        store_pool_rules(app->store, add_rule, ret, &err) < 0)
        log_line(LOG_WARNING, "pool rules not read: %s", err.msg);
}

struct image_reading {
    struct link *link;
    size_t count;
    struct pool_image list[POOL_IMAGES_MAX];
};

static int add_image(void *arg, const struct store_warm *warm, struct err *err)
{
    struct image_reading *reading = arg;
    struct pool_image *image = &reading->list[reading->count];
    struct keeper_image found;

    if (reading->count == POOL_IMAGES_MAX)
        return 0;
    if (image_get(reading->link, warm->image, &found, err) < 0) {
        if (err->kind == ERR_UNAVAILABLE || err->kind == ERR_PROTOCOL)
            return -1;
        return 0; /* it is lost: creates go without, and so do we */
    }
    if (strcmp(found.sandbox.template, warm->template) != 0 || !(found.flags & KEEPER_IMAGE_MEMORY))
        return 0;
    *image =
        (struct pool_image){ .kind = pool_kind_of(&found.sandbox, true), .bytes = found.bytes };
    memcpy(image->id, warm->image, sizeof image->id);
    reading->count++;
    return 0;
}

/* Which templates have an image, of what size. */
static int read_images(struct app *app, struct link *link, struct err *err)
{
    static struct image_reading reading; /* the thread's alone */

    reading.link = link;
    reading.count = 0;
    if (store_warm_list(app->store, add_image, &reading, err) < 0)
        return -1;
    (void) pthread_mutex_lock(&pools.lock);
    pools.image_count = reading.count;
    memcpy(pools.images, reading.list, sizeof reading.list);
    (void) pthread_mutex_unlock(&pools.lock);
    return 0;
}

/* ---- making and ending ---- */

/* With the lock. Figures of before one was looked at may have been too low. */
static bool within_budget(const struct pool *more)
{
    uint64_t bytes = more->cost_bytes;

    for (size_t i = 0; i < pools.count; i++)
        bytes += pools.list[i].ready * pools.list[i].cost_bytes;
    return bytes <= pools.budget_bytes;
}

/* The pool that lacks most, or with `surplus` has most too many; a copy. */
static bool next_pool(bool surplus, uint64_t now, struct pool *ret)
{
    const struct pool *next = NULL;
    uint32_t most = 0;

    (void) pthread_mutex_lock(&pools.lock);
    for (size_t i = 0; i < pools.count && !pools.stop; i++) {
        const struct pool *p = &pools.list[i];
        uint32_t gap = surplus ? p->ready - p->target : p->target - p->ready;

        if ((surplus ? p->ready <= p->target
                     : p->ready >= p->target || p->retry_ms > now || !within_budget(p)) ||
            gap <= most)
            continue;
        most = gap;
        next = p;
    }
    if (next)
        *ret = *next;
    (void) pthread_mutex_unlock(&pools.lock);
    return next != NULL;
}

static void note_made(const struct pool *of, const struct keeper_stats *stats,
                      const struct err *err)
{
    struct pool *p;

    (void) pthread_mutex_lock(&pools.lock);
    pools.made += !err;
    pools.failures += err != NULL;
    p = pool_find(&of->kind);
    if (p && !err) {
        p->ready++;
        p->made++;
        p->pause_ms = 0;
        p->retry_ms = 0;
        p->cost_bytes = POOL_COST_LEAST + stats->memory_bytes;
    } else if (p) {
        if (err->kind == ERR_NO_TEMPLATE) /* gone: who wants it next will say so */
            p->demand = (struct demand){ .step = 0 };
        p->pause_ms = p->pause_ms == 0               ? RETRY_MS
                      : 2 * p->pause_ms < RETRY_MOST ? 2 * p->pause_ms
                                                     : RETRY_MOST;
        p->retry_ms = io_now_ms() + p->pause_ms;
    }
    (void) pthread_mutex_unlock(&pools.lock);
}

/* "": none any more; the next round knows it, too. */
static void find_image(const struct pool *p, char ret[ID_LEN + 1])
{
    const struct pool_image *image;

    (void) pthread_mutex_lock(&pools.lock);
    image = p->kind.warm ? pool_image_of(&p->kind) : NULL;
    (void) snprintf(ret, ID_LEN + 1, "%s", image ? image->id : "");
    (void) pthread_mutex_unlock(&pools.lock);
}

/* -1: the link is of no use any more. */
static int make_one(struct link *link, const struct pool *p)
{
    struct sandbox_spec spec = { .template = p->kind.template,
                                 .flags = KEEPER_FLAG_POOLED |
                                          (p->kind.root ? KEEPER_FLAG_ROOT : 0) |
                                          (p->kind.once ? KEEPER_FLAG_ONCE : 0),
                                 .isolation = p->kind.isolation,
                                 .limits = p->kind.limits };
    char image[ID_LEN + 1];
    struct keeper_stats stats = { 0 };
    struct keeper_sandbox kept;
    struct err err, ignored;

    find_image(p, image);
    if ((p->kind.warm ? warm_create_ahead(link, &spec, image, &kept, &err)
                      : sandbox_create(link, &spec, &kept, &err)) == 0) {
        /* It may be taken by now; then the figure of another does, as it does for most. */
        if (p->made % LOOK_EVERY != 0 || sandbox_stats(link, kept.id, &stats, &ignored) < 0)
            stats.memory_bytes = p->cost_bytes - POOL_COST_LEAST;
        note_made(p, &stats, NULL);
        return 0;
    }
    if (err.kind == ERR_UNAVAILABLE || err.kind == ERR_PROTOCOL)
        return -1; /* no fault of the pool's */
    note_made(p, &stats, &err);
    log_line(LOG_WARNING, "pool template=%s none made: %s", p->kind.template, err.msg);
    return 0;
}

/* With the lock: for how long after the last create of its kind nothing is made; 0: no more. */
static uint64_t rest_left(const struct pool_kind *kind)
{
    const struct pool *p = pool_find(kind);
    uint64_t now = io_now_ms(), end;

    if (!p || p->used_ms == 0)
        return 0;
    end = p->used_ms + (kind->warm ? REST_MS : p->ready + 1 >= p->target ? PAUSE_MS : 0);
    return end > now ? end - now : 0;
}

/* Before one is restored, until creates of its kind have paused; before another is made, until the command of the create that took the
 * last one has begun. In a stream of creates there is no pause for the second: the pool would run dry. */
static void rest(const struct pool_kind *kind)
{
    uint64_t most = io_now_ms() + REST_MOST, left;

    (void) pthread_mutex_lock(&pools.lock);
    while (!pools.stop && (left = rest_left(kind)) > 0 && io_now_ms() < most) {
        struct timespec until = io_after_ms(left);

        (void) pthread_cond_clockwait(&pools.wake, &pools.lock, CLOCK_MONOTONIC, &until);
    }
    (void) pthread_mutex_unlock(&pools.lock);
}

/* Those under way first. False: the server ends. */
static bool yield_to_creates(const struct pool *p)
{
    struct timespec until;
    bool stop;

    rest(&p->kind);
    until = io_after_ms(YIELD_MS);
    (void) pthread_mutex_lock(&pools.lock);
    while (!pools.stop && pools.creating > 0 &&
           pthread_cond_clockwait(&pools.wake, &pools.lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
        ;
    stop = pools.stop;
    (void) pthread_mutex_unlock(&pools.lock);
    return !stop;
}

static bool is_of(const struct keeper_sandbox *s, const struct pool *p)
{
    return (s->life == LIFE_RUNNING || s->life == LIFE_PAUSED) &&
           !(s->flags & KEEPER_FLAG_ROOT) == !p->kind.root &&
           !(s->flags & KEEPER_FLAG_ONCE) == !p->kind.once &&
           !(s->flags & KEEPER_FLAG_LOADED) == !p->kind.warm && s->isolation == p->kind.isolation &&
           strcmp(s->template, p->kind.template) == 0 &&
           memcmp(&s->limits, &p->kind.limits, sizeof s->limits) == 0;
}

/* One that was taken since the list was made has another id, and is not found: no tenant's sandbox is ended here. */
static void end_surplus(struct link *link, struct keeper_sandbox *list, size_t count)
{
    struct pool p;
    struct err err;

    while (next_pool(true, 0, &p)) {
        size_t i = 0;
        struct pool *now;

        while (i < count && !is_of(&list[i], &p))
            i++;
        if (i < count && sandbox_destroy(link, list[i].id, &err) < 0 && err.kind != ERR_NO_SANDBOX)
            return;
        if (i < count)
            list[i].life = LIFE_GONE;
        (void) pthread_mutex_lock(&pools.lock);
        now = pool_find(&p.kind);
        if (now && now->ready > 0)
            now->ready = i < count ? now->ready - 1 : 0;
        (void) pthread_mutex_unlock(&pools.lock);
    }
}

/* Until the plan is met, or the next list is due. */
static int fill(struct link *link, uint64_t until_ms)
{
    struct pool p;

    while (io_now_ms() < until_ms && next_pool(false, io_now_ms(), &p))
        if (!yield_to_creates(&p) || make_one(link, &p) < 0)
            return -1;
    return 0;
}

/* ---- the thread ---- */

static uint64_t budget(struct app *app)
{
    struct quota_host host;
    struct err err;

    quota_host_now(app, &host);
    return quota_host_check(&host, &err) < 0 ? 0 : app_config(app)->pool_memory;
}

/* `list`: also ask the keeper what there is. */
static void one_round(struct app *app, bool list, uint64_t until_ms)
{
    auto_free struct keeper_sandbox *kept = NULL;
    static struct pool_rules rules; /* the thread's alone */
    size_t count = 0;
    uint32_t isolation;
    struct link link;
    struct err err;
    int r = 0;

    if (isolation_parse(app_config(app)->isolation, &isolation, &err) < 0 || /* checked when set */
        app_link_take(app, &link, &err) < 0)
        return; /* the next user of the keeper says so */
    read_rules(app, &rules);
    if (list)
        r = sandbox_list_pool(&link, &kept, &count, &err) < 0 ? -1 : read_images(app, &link, &err);
    if (r == 0) {
        uint64_t bytes = budget(app), now = io_now_ms();

        (void) pthread_mutex_lock(&pools.lock);
        if (list)
            pool_count_ready(kept, count, now);
        pool_set_targets(&rules, isolation, bytes, now);
        (void) pthread_mutex_unlock(&pools.lock);
        if (list) /* or it would not know whom */
            end_surplus(&link, kept, count);
        r = fill(&link, until_ms);
    }
    app_link_give(app, &link, r == 0);
}

/* Until something changed, or the time has come. False: the server ends. */
static bool wait_until(uint64_t until_ms, bool *ret_told)
{
    uint64_t now = io_now_ms();
    struct timespec until = io_after_ms(until_ms > now ? until_ms - now : 0);
    bool stop;

    (void) pthread_mutex_lock(&pools.lock);
    while (!pools.stop && !pools.changed &&
           pthread_cond_clockwait(&pools.wake, &pools.lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
        ;
    *ret_told = pools.told;
    pools.changed = false;
    pools.told = false;
    stop = pools.stop;
    (void) pthread_mutex_unlock(&pools.lock);
    return !stop;
}

static void *run(void *arg)
{
    struct app *app = arg;
    uint64_t list_ms = 0;
    bool told = false;

    (void) setpriority(PRIO_PROCESS, 0, 5); /* of this thread */
    pool_remember(app);
    do {
        bool list = told || io_now_ms() >= list_ms;

        if (list) {
            list_ms = io_now_ms() + ROUND_MS;
            pool_save(app);
        }
        one_round(app, list, list_ms);
    } while (wait_until(list_ms, &told));
    pool_save(app);
    return NULL;
}

int pool_start(struct app *app, struct err *err)
{
    int why = pthread_create(&pools.thread, NULL, run, app);

    if (why)
        return err_sys(err, why, "start the thread of pools");
    pools.running = true;
    return 0;
}

/* What waits keeps waiting, for the server after this one: the keeper ends it if none comes. */
void pool_stop(void)
{
    if (!pools.running)
        return;
    (void) pthread_mutex_lock(&pools.lock);
    pools.stop = true;
    (void) pthread_cond_signal(&pools.wake);
    (void) pthread_mutex_unlock(&pools.lock);
    (void) pthread_join(pools.thread, NULL);
    pools.running = false;
}
