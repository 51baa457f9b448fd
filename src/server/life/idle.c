#include "server/life/idle.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "client/sandbox.h"
#include "server/app/app.h"
#include "server/guard/audit.h"
#include "server/life/chore.h"
#include "server/life/crew.h"
#include "server/life/sleep_own.h"
#include "server/life/use.h"
#include "server/life/warm.h"
#include "server/net/network.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_MS        2000
#define AT_ONCE         32 /* questions to the keeper, then a pause in which others get their turn */
#define PAUSE_MS        10
#define ORPHANS_MS      600000 /* how often they are looked for; more often at first */
#define ORPHANS_SOON_MS 180000
#define DAY_MS          86400000ull
/* Of a core: more is work; a server's timers are less. The kernel of a guest is busy by itself: gVisor's with 25, a machine's with 5. */
#define WORK_PER_1000  5
#define GUEST_PER_1000 50

/* What is needed of a record. */
struct one {
    char id[ID_LEN + 1];
    char tenant[STORE_TENANT_MAX];
    struct store_sleep sleep;
    uint64_t idle_pause_ms, idle_disk_ms;
    bool held;
    /* of one that is awake and has idle times: */
    uint64_t cpu_us, seen_ms, busy_ms; /* in the time of io_now_ms(); seen_ms 0: not yet */
    uint32_t isolation;
};

struct list {
    struct one *all;
    size_t count, room;
};

static struct {
    struct chore chore;
    struct list seen; /* of the round before, by id; the thread's alone */
    uint64_t began_ms;
} own = { .chore = CHORE_INIT };

bool idle_works(uint32_t isolation, uint64_t cpu_us, uint64_t wall_ms)
{
    return cpu_us > wall_ms * (isolation == ISOLATION_JAIL ? WORK_PER_1000 : GUEST_PER_1000);
}

/* ---- records ---- */

static int keep(void *arg, const struct store_sandbox *record, struct err *err)
{
    struct list *list = arg;
    struct one *one;

    if (record->sleep.tier == STORE_AWAKE && !record->idle_pause_ms && !record->idle_disk_ms)
        return 0;
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct one *more = realloc(list->all, room * sizeof *more);

        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for a list of sandboxes");
        list->all = more;
        list->room = room;
    }
    one = &list->all[list->count++];
    *one = (struct one){ .sleep = record->sleep,
                         .idle_pause_ms = record->idle_pause_ms,
                         .idle_disk_ms = record->idle_disk_ms,
                         .held = record->on_timeout & STORE_TIMEOUT_HELD };
    memcpy(one->id, record->id, sizeof one->id);
    memcpy(one->tenant, record->tenant, sizeof one->tenant);
    return 0;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct one *) a)->id, ((const struct one *) b)->id);
}

static void note(struct app *app, const char *tenant, const char *sandbox, const char *action,
                 const char *detail)
{
    struct audit_facts facts = AUDIT_FACTS;

    facts.detail = detail;
    audit_system(app, tenant, action, sandbox, &facts);
}

static void told(struct app *app, const struct crew_task *task, const char *why,
                 const struct sleep_told *told)
{
    char detail[ERR_MSG_MAX + 64];

    (void) snprintf(detail, sizeof detail, "%s: %s%s%s", why, sleep_tier_name(told->tier),
                    told->fallback[0] ? ", since " : "", told->fallback);
    note(app, task->tenant, task->id, "sandbox.pause", detail);
    log_line(LOG_INFO, "sandbox=%s %s", task->id, detail);
}

/* To a thread of the crew's: this one waits for no sandbox. Not added: it is under way, or the next round finds it again. */
static void hand_over(const struct one *one, enum crew_kind kind, int how,
                      void (*run)(struct app *, const struct crew_task *))
{
    struct crew_task task = { .kind = kind, .how = how, .run = run };

    memcpy(task.id, one->id, sizeof task.id);
    memcpy(task.tenant, one->tenant, sizeof task.tenant);
    (void) crew_add(&task);
}

/* ---- what sleeps in memory ---- */

static void move_now(struct app *app, const struct crew_task *task)
{
    struct sleep_told done;
    struct err err;

    if (sleep_move(app, task->id, &done, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s not moved to disk: %s", task->id, err.msg);
    else if (done.tier)
        told(app, task, "moved", &done);
}

static void move(struct app *app, const struct one *one)
{
    uint64_t now = store_now_ms(), after = 0;

    if (one->sleep.by == STORE_BY_REQUEST)
        after = app_config(app)->pause_disk_after_ms;
    else if (one->sleep.by == STORE_BY_IDLENESS && one->idle_disk_ms > one->idle_pause_ms)
        after = one->idle_disk_ms - one->idle_pause_ms;
    if (now >= one->sleep.since_ms + after)
        hand_over(one, CREW_SAVE, 0, move_now);
}

/* ---- what is awake ---- */

static bool is_busy(struct app *app, struct link *link, struct one *one)
{
    uint64_t now = io_now_ms(), last_ms;
    const struct one *before =
        own.seen.count ? bsearch(one, own.seen.all, own.seen.count, sizeof *one, by_id) : NULL;
    struct keeper_sandbox kept = { 0 };
    struct keeper_stats stats;
    struct err err;
    bool busy, known = before && before->seen_ms > 0; /* else it slept, or was being made */

    if (!known && sandbox_get(link, one->id, &kept, &err) < 0)
        return true;
    one->isolation = known ? before->isolation : kept.isolation;
    if (sandbox_stats(link, one->id, &stats, &err) < 0)
        return true; /* being made, or gone: not ours to judge */
    one->cpu_us = stats.cpu_us;
    one->seen_ms = now;
    if (!known)
        return true;
    busy = stats.cpu_us < before->cpu_us ||
           idle_works(one->isolation, stats.cpu_us - before->cpu_us, now - before->seen_ms);
    busy = use_now(one->id, &last_ms) || busy || network_busy(app, one->id);
    one->busy_ms = before->busy_ms > last_ms ? before->busy_ms : last_ms;
    return busy;
}

static void pause_now(struct app *app, const struct crew_task *task)
{
    struct sleep_ask ask = {
        .by = STORE_BY_IDLENESS, .tier = task->how, .if_unused = true, .if_free = true
    };
    struct sleep_told done;
    struct err err;

    if (sleep_pause(app, task->id, &ask, &done, &err) < 0) {
        if (err.kind != ERR_STATE && err.kind != ERR_NO_SANDBOX)
            log_line(LOG_WARNING, "sandbox=%s not paused for idleness: %s", task->id, err.msg);
    } else if (!done.already) {
        told(app, task, "idle", &done);
    }
}

static void look_at(struct app *app, struct link *link, struct one *one)
{
    uint64_t idle_ms;
    bool hot = one->idle_pause_ms > 0 &&
               (one->idle_disk_ms == 0 || one->idle_pause_ms < one->idle_disk_ms);

    if (is_busy(app, link, one)) {
        one->busy_ms = io_now_ms();
        return;
    }
    idle_ms = io_now_ms() - one->busy_ms;
    if (idle_ms < (hot ? one->idle_pause_ms : one->idle_disk_ms))
        return;
    hand_over(one, hot ? CREW_PAUSE : CREW_SAVE, hot ? STORE_AWAKE : STORE_DISK, pause_now);
    one->busy_ms = io_now_ms(); /* should it fail, it is tried again after as long a time */
}

/* ---- what was kept long enough ---- */

static void expire_now(struct app *app, const struct crew_task *task)
{
    struct err err;

    if (sleep_end(app, task->id, SLEEP_IF_FREE, &err) < 0 ||
        store_sandbox_remove(app->store, task->id, &err) < 0) {
        log_line(LOG_WARNING, "sandbox=%s not ended after %" PRIu64 " days: %s", task->id,
                 app_config(app)->paused_days, err.msg);
        return;
    }
    network_ended(app, task->id);
    note(app, task->tenant, task->id, "sandbox.expire",
         "it was paused for as long as paused_days allows");
}

static void expire(struct app *app, const struct one *one)
{
    uint64_t days = app_config(app)->paused_days;

    if (days > 0 && one->held && store_now_ms() >= one->sleep.since_ms + days * DAY_MS)
        hand_over(one, CREW_END, 0, expire_now);
}

struct old {
    struct app *app;
    char ids[64][ID_LEN + 1]; /* a round's share */
    char tenants[64][STORE_TENANT_MAX];
    size_t count;
};

/* Of a server that ended in the middle; of a fork that did; or older than snapshots are kept. */
static int find_old(void *arg, const struct store_snapshot *s, struct err *err)
{
    struct old *old = arg;
    uint64_t days = app_config(old->app)->snapshot_days;
    bool left = !store_snapshot_stays(s->state) && s->created_ms < own.began_ms;

    (void) err;
    if ((!left && (days == 0 || s->state != STORE_SNAPSHOT_READY ||
                   store_now_ms() < s->created_ms + days * DAY_MS)) ||
        old->count == ARRAY_LEN(old->ids))
        return 0;
    memcpy(old->ids[old->count], s->id, sizeof s->id);
    memcpy(old->tenants[old->count++], s->tenant, sizeof s->tenant);
    return 0;
}

static void drop_old(struct app *app)
{
    auto_free struct old *old = calloc(1, sizeof *old);
    struct err err;

    if (!old)
        return;
    old->app = app;
    if (store_snapshot_list(app->store, NULL, 0, 0, find_old, old, &err) < 0)
        log_line(LOG_WARNING, "snapshots could not be read: %s", err.msg);
    for (size_t i = 0; i < old->count; i++) {
        if (sleep_drop(app, old->ids[i], &err) < 0)
            log_line(LOG_WARNING, "snapshot=%s not dropped: %s", old->ids[i], err.msg);
        else
            note(app, old->tenants[i], "", "snapshot.expire", old->ids[i]);
    }
}

/* Or is none that needs one: what the command line made, and paused sandboxes. */
static bool has_record(struct app *app, const struct keeper_image *image)
{
    struct store_snapshot record;
    struct err err;

    return !image->owner[0] || (image->flags & KEEPER_IMAGE_PAUSED) ||
           store_snapshot_get(app->store, NULL, image->id, &record, &err) == 0 ||
           err.kind != ERR_NO_IMAGE;
}

/* An image of a template has its record behind it, so that one without is not yet a lost one. */
static bool is_lost(struct app *app, const struct keeper_image *image)
{
    struct err ignored;

    return store_now_ms() > image->saved_ms + ORPHANS_SOON_MS &&
           store_warm_has(app->store, image->id, &ignored) == 0;
}

/* An image has its record before it is made. One of a tenant's without a record is what the keeper finished after the
 * server that wanted it was killed. */
static void drop_orphans(struct app *app)
{
    auto_free struct keeper_image *images = NULL;
    size_t count = 0;
    struct link link;
    struct err err;
    int r;

    if (app_link_take(app, &link, &err) < 0)
        return;
    r = image_list(&link, &images, &count, &err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (strcmp(images[i].owner, WARM_OWNER) == 0 ? !is_lost(app, &images[i])
                                                     : has_record(app, &images[i]))
            continue;
        log_line(LOG_INFO, "image=%s has no record: dropped", images[i].id);
        r = image_drop(&link, images[i].id, &err);
        if (r < 0 && sleep_no_image(&err))
            r = 0;
    }
    sleep_close(app, &link, r, &err);
}

/* ---- the thread ---- */

static void one_round(struct app *app)
{
    struct list list = { .all = NULL };
    struct link link;
    struct err err;

    drop_old(app);
    if (store_sandbox_list(app->store, NULL, 0, 0, keep, &list, &err) < 0 || list.count == 0 ||
        app_link_take(app, &link, &err) < 0) {
        free(list.all);
        return;
    }
    qsort(list.all, list.count, sizeof *list.all, by_id);
    for (size_t i = 0; i < list.count; i++) {
        struct one *one = &list.all[i];

        if (i % AT_ONCE == AT_ONCE - 1 && !chore_rest(&own.chore, PAUSE_MS))
            break;
        if (one->sleep.tier == STORE_AWAKE)
            look_at(app, &link, one);
        else if (one->sleep.aim && one->sleep.tier != STORE_DISK)
            move(app, one);
        else
            expire(app, one);
    }
    app_link_give(app, &link, true);
    free(own.seen.all);
    own.seen = list;
}

static void *run(void *arg)
{
    uint64_t looked_ms = 0, began_ms = io_now_ms();

    do {
        uint64_t now = io_now_ms();

        one_round(arg);
        if (now - began_ms < ORPHANS_SOON_MS || now - looked_ms > ORPHANS_MS) {
            drop_orphans(arg);
            looked_ms = now;
        }
    } while (chore_wait(&own.chore, ROUND_MS));
    return NULL;
}

int idle_start(struct app *app, struct err *err)
{
    own.began_ms = store_now_ms();
    return chore_start(&own.chore, "idleness", run, app, err);
}

void idle_changed(void)
{
    chore_nudge(&own.chore);
}

void idle_stop(void)
{
    chore_stop(&own.chore);
}
