/* The table of pools: who is in it, what is wanted of whom, and what the store has of that. */
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "server/life/pool_own.h"

#include <string.h>

struct pools pools = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

/* ---- the table; all with the lock held ---- */

static bool same_kind(const struct pool_kind *a, const struct pool_kind *b)
{
    return a->root == b->root && a->warm == b->warm && a->once == b->once &&
           a->isolation == b->isolation && strcmp(a->template, b->template) == 0 &&
           memcmp(&a->limits, &b->limits, sizeof a->limits) == 0;
}

struct pool_kind pool_kind_of(const struct keeper_sandbox *s, bool warm)
{
    struct pool_kind kind = { .root = s->flags & KEEPER_FLAG_ROOT,
                              .warm = warm,
                              .once = s->flags & KEEPER_FLAG_ONCE,
                              .isolation = s->isolation,
                              .limits = s->limits };

    memcpy(kind.template, s->template, sizeof kind.template);
    return kind;
}

struct pool *pool_find(const struct pool_kind *kind)
{
    for (size_t i = 0; i < pools.count; i++)
        if (same_kind(&pools.list[i].kind, kind))
            return &pools.list[i];
    return NULL;
}

const struct pool_image *pool_image_of(const struct pool_kind *kind)
{
    struct pool_kind warm = *kind;

    warm.warm = true;
    for (size_t i = 0; i < pools.image_count; i++)
        if (same_kind(&pools.images[i].kind, &warm))
            return &pools.images[i];
    return NULL;
}

/* The place of the one that was unused for longest and that holds nothing; NULL: all hold something. */
static struct pool *free_place(void)
{
    struct pool *oldest = NULL;

    if (pools.count < POOLS_MAX)
        return &pools.list[pools.count++];
    for (size_t i = 0; i < pools.count; i++)
        if (pools.list[i].ready == 0 && pools.list[i].target == 0 &&
            (!oldest || pools.list[i].used_ms < oldest->used_ms))
            oldest = &pools.list[i];
    return oldest;
}

static struct pool *find_or_add(const struct pool_kind *kind)
{
    const struct pool_image *image = kind->warm ? pool_image_of(kind) : NULL;
    struct pool *p = pool_find(kind);

    if (p || !(p = free_place()))
        return p;
    /* Until one is there to be looked at, its memory is taken to be as large as its image. */
    *p = (struct pool){ .kind = *kind, .cost_bytes = POOL_COST_LEAST + (image ? image->bytes : 0) };
    return p;
}

void pool_create_begins(void)
{
    (void) pthread_mutex_lock(&pools.lock);
    pools.creating++;
    (void) pthread_mutex_unlock(&pools.lock);
}

void pool_create_ends(const struct keeper_sandbox *kept, bool warm)
{
    uint64_t now = io_now_ms();
    struct pool_kind kind;
    struct pool *p = NULL;

    (void) pthread_mutex_lock(&pools.lock);
    pools.creating--;
    if (kept &&
        !limits_io(&kept->limits)) { /* those are rare, and no row of the store has that limit */
        kind = pool_kind_of(kept, warm);
        p = find_or_add(&kind);
    }
    if (p) {
        bool taken = kept->flags & KEEPER_FLAG_TAKE;

        demand_add(&p->demand, now, 1);
        p->used_ms = now;
        p->hits += taken;
        p->misses += !taken;
        p->ready -= taken && p->ready > 0;
        pools.changed = true;
        (void) pthread_cond_signal(&pools.wake);
    }
    (void) pthread_mutex_unlock(&pools.lock);
}

void pool_changed(void)
{
    (void) pthread_mutex_lock(&pools.lock);
    pools.changed = true;
    pools.told = true;
    (void) pthread_cond_signal(&pools.wake);
    (void) pthread_mutex_unlock(&pools.lock);
}

/* Field by field: save() compares bytes. */
static void report(const struct pool *p, struct store_pool *ret)
{
    memset(ret, 0, sizeof *ret);
    memcpy(ret->template, p->kind.template, sizeof ret->template);
    ret->root = p->kind.root;
    ret->warm = p->kind.warm;
    ret->once = p->kind.once;
    ret->isolation = p->kind.isolation;
    ret->memory_bytes = p->kind.limits.memory_bytes;
    ret->disk_bytes = p->kind.limits.disk_bytes;
    ret->disk_inodes = p->kind.limits.disk_inodes;
    ret->cpu_milli = p->kind.limits.cpu_milli;
    ret->processes = p->kind.limits.processes;
    ret->open_files = p->kind.limits.open_files;
    ret->ptys = p->kind.limits.ptys;
    ret->ready = p->ready;
    ret->target = p->target;
    ret->least = p->least;
    ret->most = p->most;
    ret->hits = p->hits;
    ret->misses = p->misses;
}

void pool_look(struct pool_report *ret)
{
    (void) pthread_mutex_lock(&pools.lock);
    *ret = (struct pool_report){ .budget_bytes = pools.budget_bytes,
                                 .made = pools.made,
                                 .failures = pools.failures,
                                 .count = pools.count };
    for (size_t i = 0; i < pools.count; i++) {
        report(&pools.list[i], &ret->list[i]);
        ret->used_bytes += pools.list[i].ready * pools.list[i].cost_bytes;
    }
    (void) pthread_mutex_unlock(&pools.lock);
}

/* With the lock. What is there at the first look, and was not remembered, an earlier server thought of use: it is as
 * if there had been that many creates just now. */
void pool_count_ready(const struct keeper_sandbox *list, size_t count, uint64_t now)
{
    static bool looked; /* the thread's alone */

    for (size_t i = 0; i < pools.count; i++)
        pools.list[i].ready = 0;
    for (size_t i = 0; i < count; i++) {
        const struct keeper_sandbox *s = &list[i];
        struct pool_kind kind;
        struct pool *p;

        if (s->life == LIFE_STOPPING || s->life == LIFE_GONE)
            continue;
        kind = pool_kind_of(s, s->flags & KEEPER_FLAG_LOADED);
        p = find_or_add(&kind);
        if (p && !looked && p->used_ms == 0)
            demand_add(&p->demand, now, 1);
        if (p)
            p->ready++;
    }
    looked = true;
}

/* Of which size and profile some wait at any time, where a rule wants that: that of the template's image, or without one
 * the default. */
static void standing_kind(const char *template, uint32_t isolation, struct pool_kind *ret)
{
    *ret = (struct pool_kind){ .isolation = isolation };
    (void) snprintf(ret->template, sizeof ret->template, "%s", template);
    limits_default(&ret->limits);
    for (size_t i = 0; i < pools.image_count; i++)
        if (strcmp(pools.images[i].kind.template, template) == 0)
            *ret = pools.images[i].kind;
}

/* With the lock. Rules that want some at any time have a pool from the start. */
static void add_standing(const struct pool_rules *rules, uint32_t isolation)
{
    struct pool_kind kind;

    for (size_t i = 0; i < rules->count; i++)
        if (rules->list[i].least > 0 && strcmp(rules->list[i].template, "*") != 0) {
            standing_kind(rules->list[i].template, isolation, &kind);
            (void) find_or_add(&kind);
        }
}

/* With the lock. */
void pool_set_targets(const struct pool_rules *rules, uint32_t isolation, uint64_t budget_bytes,
                      uint64_t now)
{
    struct plan_item items[POOLS_MAX];
    struct pool_kind standing;

    add_standing(rules, isolation);
    for (size_t i = 0; i < pools.count; i++) {
        struct pool *p = &pools.list[i];
        const struct store_pool_rule *rule = pool_rules_find(rules, p->kind.template);

        /* Of a template that got an image, or has none any more, the others are of no use. */
        if (p->kind.warm != (pool_image_of(&p->kind) != NULL))
            rule = NULL;
        p->least = rule ? (uint32_t) rule->least : 0;
        p->most = rule ? (uint32_t) rule->most : 0;
        standing_kind(p->kind.template, isolation, &standing);
        items[i] = (struct plan_item){
            .least = p->least,
            .most = p->most,
            .standing = same_kind(&p->kind, &standing),
            .cost_bytes = p->cost_bytes,
        };
        items[i].peak = demand_peak(&p->demand, now, &items[i].total);
    }
    pools.budget_bytes = budget_bytes;
    pools.used_bytes = pool_plan(items, pools.count, budget_bytes);
    for (size_t i = 0; i < pools.count; i++)
        pools.list[i].target = items[i].target;
}

/* ---- the store: what `cove pool` shows, and what a server after this one begins with ---- */

/* A new server makes those for one command each behind the second command. */
static void drop_once(struct pool_report *report)
{
    size_t kept = 0;

    for (size_t i = 0; i < report->count; i++)
        if (!report->list[i].once)
            report->list[kept++] = report->list[i];
    report->count = kept;
}

void pool_save(struct app *app)
{
    static struct pool_report before; /* the thread's alone */
    static struct pool_report now;
    struct err err;

    pool_look(&now);
    drop_once(&now);
    if (now.count == before.count &&
        memcmp(now.list, before.list, now.count * sizeof *now.list) == 0)
        return;
    before = now;
    for (size_t i = 0; i < now.count; i++)
        now.list[i].updated_ms = store_now_ms();
    if (store_pools_save(app->store, now.list, now.count, &err) < 0)
        log_line(LOG_WARNING, "pools not saved: %s", err.msg);
}

struct limits pool_limits(const struct store_pool *row)
{
    return (struct limits){ .memory_bytes = row->memory_bytes,
                            .disk_bytes = row->disk_bytes,
                            .disk_inodes = row->disk_inodes,
                            .cpu_milli = row->cpu_milli,
                            .processes = row->processes,
                            .open_files = row->open_files,
                            .ptys = row->ptys };
}

/* What was wanted before a restart is wanted now, if that was not long ago. */
static int remember(void *arg, const struct store_pool *row, struct err *err)
{
    struct pool_kind kind = { .root = row->root,
                              .warm = row->warm,
                              .isolation = (uint32_t) row->isolation,
                              .limits = pool_limits(row) };
    uint64_t now = store_now_ms();
    struct pool *p;

    (void) arg, (void) err;
    if (row->updated_ms > now || now - row->updated_ms > DEMAND_STEP_MS * DEMAND_STEPS)
        return 0;
    (void) snprintf(kind.template, sizeof kind.template, "%s", row->template);
    (void) pthread_mutex_lock(&pools.lock);
    p = find_or_add(&kind);
    if (p) {
        p->hits = row->hits;
        p->misses = row->misses;
        p->used_ms = io_now_ms();
        demand_add(&p->demand, p->used_ms, (uint32_t) row->target);
    }
    (void) pthread_mutex_unlock(&pools.lock);
    return 0;
}

void pool_remember(struct app *app)
{
    struct err err;

    if (store_pools_list(app->store, remember, NULL, &err) < 0)
        log_line(LOG_WARNING, "pools not read: %s", err.msg);
}
