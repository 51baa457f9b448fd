/* A pause tries the tier that was meant and, where the host or the sandbox cannot have it, the next one above it: from
 * disk to warm to hot. The record is changed before the keeper is asked, to "paused in memory", so that no request finds
 * a sandbox that is about to stand still: a request counts itself in (use.h) before it reads the record, a pause of idle
 * ones looks for requests after it wrote it. One of the two sees the other.
 *
 * A sandbox that goes to disk with its processes loses its connections to the outside: they are reset before it is
 * saved, so that its programs see an error and not silence when they continue. Egress is opened again behind a
 * resume, in what is a new network namespace by then. */
#include "server/life/sleep.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "client/sandbox.h"
#include "server/gateway/gateway.h"
#include "server/life/deadline.h"
#include "server/life/sleep_own.h"
#include "server/life/use.h"
#include "server/net/network.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAKE_LEAST_MS 300000 /* of a sandbox that a request woke: what SDKs of E2B expect */
#define SAVED_MS      60000  /* a bound on hanging: a save is as long as there is memory */

const char *const sleep_tier_names[] = {
    [STORE_AWAKE] = "auto", [STORE_HOT] = "hot", [STORE_WARM] = "warm", [STORE_DISK] = "disk", NULL
};

const char *sleep_tier_name(int tier)
{
    return tier > STORE_AWAKE && tier <= STORE_DISK ? sleep_tier_names[tier] : NULL;
}

bool sleep_tier_parse(const char *text, int *ret)
{
    for (size_t i = 0; sleep_tier_names[i]; i++)
        if (strcmp(sleep_tier_names[i], text) == 0) {
            *ret = (int) i;
            return true;
        }
    return false;
}

/* ---- what there is ---- */

static int get(struct link *link, const char *sandbox, struct sleep_kept *ret, struct err *err)
{
    int r = sandbox_get(link, sandbox, &ret->sandbox, err);

    ret->there = r == 0;
    return r < 0 && err->kind != ERR_NO_SANDBOX ? -1 : 0;
}

static int get_saved(struct link *link, const char *sandbox, struct sleep_kept *ret,
                     struct err *err)
{
    int r = image_get(link, sandbox, &ret->image, err);

    if (r < 0)
        return sleep_no_image(err) ? 0 : -1;
    /* A snapshot has an id of its own: this is a paused sandbox, or has no record. */
    ret->saved = ret->image.flags & KEEPER_IMAGE_PAUSED;
    if (ret->saved)
        ret->sandbox = ret->image.sandbox;
    return 0;
}

/* Where nothing can be saved there are none. */
bool sleep_no_image(const struct err *err)
{
    return err->kind == ERR_NO_IMAGE || err->kind == ERR_UNSUPPORTED;
}

/* Twice, since one that is resumed between the two questions is in neither answer. */
int sleep_look(struct app *app, struct link *link, const char *sandbox, struct sleep_kept *ret,
               struct err *err)
{
    (void) app;
    *ret = (struct sleep_kept){ .there = false };
    if (get(link, sandbox, ret, err) < 0 || (!ret->there && get_saved(link, sandbox, ret, err) < 0))
        return -1;
    return ret->there || ret->saved ? 0 : get(link, sandbox, ret, err);
}

void sleep_close(struct app *app, struct link *link, int result, const struct err *err)
{
    bool broken = result < 0 && (err->kind == ERR_UNAVAILABLE || err->kind == ERR_PROTOCOL ||
                                 err->kind == ERR_TIMEOUT);

    app_link_give(app, link, !broken);
}

/* Its rules are in the store; without any it has no egress, but a member of a private network has a gateway all the
 * same. */
int sleep_network(struct app *app, const char *sandbox, struct err *err)
{
    auto_free struct reach *rules = malloc(sizeof *rules);

    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (!app->network)
        return 0;
    if (network_get(app, sandbox, rules, err) < 0)
        return -1;
    if (rules->mode == REACH_OFF)
        return gateway_nets_member(network_gateway(app), sandbox) ? network_hold(app, sandbox, err)
                                                                  : 0;
    return network_open(app, sandbox, rules, err);
}

/* ---- down ---- */

struct pause {
    struct app *app;
    struct link link;
    struct store_sandbox record;
    struct store_sleep before;
    bool frozen;
    struct keeper_image image;
};

static int to_hot(struct pause *p, struct err *err)
{
    if (p->frozen)
        return 0;
    if (sandbox_freeze(&p->link, p->record.id, err) < 0)
        return -1;
    p->frozen = true;
    return 0;
}

static int to_warm(struct pause *p, struct err *err)
{
    uint64_t bytes;

    return to_hot(p, err) < 0 ? -1 : sandbox_reclaim(&p->link, p->record.id, &bytes, err);
}

static int save(struct pause *p, struct err *err)
{
    return image_save(&p->link, p->record.id, p->record.id, p->record.tenant,
                      KEEPER_SAVE_STOP | (p->record.sleep.memory ? KEEPER_SAVE_MEMORY : 0),
                      &p->image, err);
}

static int to_disk(struct pause *p, struct err *err)
{
    struct err ignored;
    int r;

    if (sleep_room(p->app, &p->link, &p->record, p->record.sleep.memory, false, err) < 0)
        return -1;
    network_ended(p->app, p->record.id);
    r = save(p, err);
    if (r < 0 && sleep_network(p->app, p->record.id, &ignored) < 0)
        log_line(LOG_WARNING, "sandbox=%s lost its network: %s", p->record.id, ignored.msg);
    return r;
}

static const struct {
    int (*go)(struct pause *p, struct err *err);
} tiers[] = { [STORE_HOT] = { to_hot }, [STORE_WARM] = { to_warm }, [STORE_DISK] = { to_disk } };

/* Whether the tier above will do as well. */
static bool may_fall_back(const struct err *err)
{
    return err->kind == ERR_UNSUPPORTED || err->kind == ERR_DISK_FULL ||
           err->kind == ERR_TOO_MANY || err->kind == ERR_TOO_BIG;
}

static int go_down(struct pause *p, int tier, bool files_only, struct sleep_told *told,
                   struct err *err)
{
    int least = files_only ? STORE_DISK : STORE_HOT;

    for (; tier >= least; tier--) {
        if (tiers[tier].go(p, err) == 0) {
            told->tier = tier;
            return 0;
        }
        if (!may_fall_back(err) || tier == least)
            return -1;
        if (!told->fallback[0])
            memcpy(told->fallback, err->msg, sizeof told->fallback);
    }
    return -1;
}

static int set_sleep(struct pause *p, const struct store_sleep *sleep, struct err *err)
{
    p->record.sleep = *sleep;
    return store_sandbox_set_sleep(p->app->store, p->record.id, sleep, err);
}

/* By request: what is small stays in memory for a while, where waking takes a millisecond. By deadline or for
 * idleness it stands still at once, and is moved later by a thread that may take its time. */
static int choose(struct pause *p, const struct sleep_ask *ask, int *ret_aim)
{
    const struct config *config = app_config(p->app);
    struct keeper_stats stats = { .memory_bytes = UINT64_MAX };
    struct err ignored;

    *ret_aim = STORE_AWAKE;
    if (ask->files_only && ask->by == STORE_BY_REQUEST)
        return STORE_DISK;
    if (ask->tier)
        return ask->tier;
    if (ask->by == STORE_BY_REQUEST) {
        if (sandbox_stats(&p->link, p->record.id, &stats, &ignored) < 0 ||
            stats.memory_bytes - stats.memory_cache_bytes >= config->pause_hot_bytes)
            return STORE_DISK;
    }
    if (ask->by == STORE_BY_DEADLINE ||
        (ask->by == STORE_BY_REQUEST && config->pause_disk_after_ms > 0) ||
        (ask->by == STORE_BY_IDLENESS && p->record.idle_disk_ms > 0))
        *ret_aim = STORE_DISK;
    return STORE_HOT;
}

/* The rest of a pause whose sandbox is known to run, or to be frozen and to go further down. */
static int pause_it(struct pause *p, const struct sleep_ask *ask, struct sleep_told *told,
                    struct err *err)
{
    struct store_sleep sleep = { .tier = STORE_HOT,
                                 .by = ask->by,
                                 .memory = !ask->files_only,
                                 .since_ms = p->frozen && p->before.since_ms ? p->before.since_ms
                                                                             : store_now_ms() };
    uint64_t last_ms;
    struct err ignored;
    int tier, aim;

    tier = choose(p, ask, &aim);
    if (set_sleep(p, &sleep, err) < 0)
        return -1;
    if (ask->if_unused && use_now(p->record.id, &last_ms)) {
        err_set(err, ERR_STATE, "sandbox '%s' is in use", p->record.id);
        (void) set_sleep(p, &p->before, &ignored);
        return -1;
    }
    if (go_down(p, tier, ask->files_only && ask->by == STORE_BY_REQUEST, told, err) < 0) {
        (void) store_sandbox_set_sleep(p->app->store, p->record.id, &p->before, &ignored);
        return -1;
    }
    sleep.tier = told->tier;
    sleep.aim = told->fallback[0] ? STORE_AWAKE : aim;
    sleep.bytes = told->bytes = told->tier == STORE_DISK ? p->image.bytes : 0;
    return set_sleep(p, &sleep, err);
}

static int hold(struct pause *p, struct err *err)
{
    if (p->record.on_timeout & STORE_TIMEOUT_HELD)
        return 0;
    return store_sandbox_set_deadline(p->app->store, p->record.id, store_now_ms(),
                                      p->record.on_timeout | STORE_TIMEOUT_HELD, err);
}

static int pause_found(struct pause *p, const struct sleep_kept *kept, const struct sleep_ask *ask,
                       struct sleep_told *told, struct err *err)
{
    if (!kept->there && !kept->saved)
        return err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%s'", p->record.id);
    if (ask->hold && hold(p, err) < 0)
        return -1;
    p->before = p->record.sleep;
    p->frozen = kept->there && kept->sandbox.life == LIFE_PAUSED;
    told->already = kept->saved || (p->frozen && ask->tier <= p->before.tier && !ask->files_only);
    if (!told->already)
        return pause_it(p, ask, told, err);
    told->tier = kept->saved ? STORE_DISK : p->before.tier ? p->before.tier : STORE_HOT;
    told->bytes = kept->saved ? kept->image.bytes : 0;
    return 0;
}

int sleep_pause(struct app *app, const char *sandbox, const struct sleep_ask *ask,
                struct sleep_told *ret, struct err *err)
{
    struct pause p = { .app = app };
    struct sleep_kept kept;
    struct turn turn;
    int r = -1;

    *ret = (struct sleep_told){ .tier = STORE_AWAKE };
    if (sleep_turn(&turn, sandbox, ask->if_free, err) < 0)
        return -1;
    if (store_sandbox_get(app->store, NULL, sandbox, &p.record, err) == 0 &&
        app_link_take(app, &p.link, err) == 0) {
        r = sleep_look(app, &p.link, sandbox, &kept, err);
        if (r == 0)
            r = pause_found(&p, &kept, ask, ret, err);
        sleep_close(app, &p.link, r, err);
    }
    turn_give(&turn);
    return r;
}

int sleep_move(struct app *app, const char *sandbox, struct sleep_told *ret, struct err *err)
{
    struct pause p = { .app = app };
    struct store_sleep sleep;
    struct sleep_kept kept;
    struct turn turn;
    struct err ignored;
    int r = -1;

    *ret = (struct sleep_told){ .tier = STORE_AWAKE };
    if (sleep_turn(&turn, sandbox, true, err) < 0)
        return -1;
    if (store_sandbox_get(app->store, NULL, sandbox, &p.record, err) == 0 &&
        app_link_take(app, &p.link, err) == 0) {
        r = sleep_look(app, &p.link, sandbox, &kept, err);
        if (r == 0 && p.record.sleep.aim && kept.there && kept.sandbox.life == LIFE_PAUSED) {
            sleep = p.record.sleep;
            p.frozen = true;
            r = go_down(&p, sleep.aim, false, ret, err);
            /* Tried once: what cannot be saved today stays where it is. */
            sleep.aim = STORE_AWAKE;
            sleep.tier = r == 0 ? ret->tier : sleep.tier;
            sleep.bytes = ret->bytes = sleep.tier == STORE_DISK ? p.image.bytes : 0;
            if (set_sleep(&p, &sleep, &ignored) < 0)
                log_line(LOG_WARNING, "sandbox=%s record not written: %s", sandbox, ignored.msg);
        }
        sleep_close(app, &p.link, r, err);
    }
    turn_give(&turn);
    return r;
}

/* ---- up ---- */

/* A sandbox that still has a deadline only ever gets more time. */
static bool deadline_stays(const struct store_sandbox *record, bool runs, uint64_t timeout_ms)
{
    uint64_t now = store_now_ms();

    if (record->on_timeout & STORE_TIMEOUT_HELD)
        return false;
    if (timeout_ms == 0)
        return runs || record->deadline_ms == 0 || record->deadline_ms > now;
    return record->deadline_ms == 0 || record->deadline_ms >= now + timeout_ms;
}

static int set_deadline(struct app *app, const struct store_sandbox *record, uint64_t timeout_ms,
                        uint64_t least_ms, struct err *err)
{
    const struct config *config = app_config(app);
    uint64_t more = timeout_ms;

    if (more == 0) {
        more = record->timeout_ms ? record->timeout_ms : config->sandbox_timeout_ms;
        more = more > least_ms ? more : least_ms;
    }
    if (more > config->sandbox_timeout_most_ms && more != STORE_NEVER_MS)
        more = config->sandbox_timeout_most_ms;
    if (store_sandbox_set_deadline(app->store, record->id, store_deadline(store_now_ms(), more),
                                   record->on_timeout & ~STORE_TIMEOUT_HELD, err) < 0)
        return -1;
    deadline_changed(app);
    return 0;
}

static int load(struct app *app, struct link *link, const struct store_sandbox *record,
                struct err *err)
{
    const struct image_load_spec spec = { .image = record->id,
                                          .owner = record->tenant,
                                          .id = record->id };
    struct keeper_sandbox sandbox;
    struct err ignored;

    if (store_sandbox_claim(app->store, record, err) < 0)
        return -1;
    if (image_load(link, &spec, &sandbox, err) < 0) {
        (void) store_sandbox_set_sleep(app->store, record->id, &record->sleep, &ignored);
        return -1;
    }
    if (sleep_network(app, record->id, &ignored) < 0)
        log_line(LOG_WARNING, "sandbox=%s has no network: %s", record->id, ignored.msg);
    return 0;
}

/* A save without a waiting caller, since its server was killed, continues: what becomes of it is known at its end. */
static int look_at_rest(struct app *app, struct link *link, const char *sandbox,
                        struct sleep_kept *ret, struct err *err)
{
    for (uint64_t until = io_now_ms() + SAVED_MS;; (void) usleep(10000)) {
        if (sleep_look(app, link, sandbox, ret, err) < 0)
            return -1;
        if (!ret->there || ret->sandbox.life != LIFE_PAUSING)
            return 0;
        if (io_now_ms() > until)
            return err_set(err, ERR_STATE, "sandbox '%s' is being saved", sandbox);
    }
}

static int wake_found(struct app *app, struct link *link, struct store_sandbox *record,
                      const struct sleep_kept *kept, bool *ret_woken, struct err *err)
{
    static const struct store_sleep awake;

    *ret_woken = kept->saved || kept->sandbox.life == LIFE_PAUSED;
    if (kept->saved) {
        /* As the keeper has it, should the record say something else. */
        record->sleep.tier = STORE_DISK;
        record->sleep.bytes = kept->image.bytes;
        if (load(app, link, record, err) < 0)
            return -1;
    } else if (*ret_woken && sandbox_thaw(link, record->id, err) < 0) {
        return -1;
    }
    return *ret_woken || record->sleep.tier
               ? store_sandbox_set_sleep(app->store, record->id, &awake, err)
               : 0;
}

int sleep_wake(struct app *app, const char *sandbox, uint64_t timeout_ms, uint64_t least_ms,
               bool *ret_woken, struct err *err)
{
    struct store_sandbox record;
    struct sleep_kept kept;
    struct link link;
    struct turn turn;
    int r = -1;

    *ret_woken = false;
    turn_take(&turn, sandbox);
    if (store_sandbox_get(app->store, NULL, sandbox, &record, err) == 0 &&
        app_link_take(app, &link, err) == 0) {
        r = look_at_rest(app, &link, sandbox, &kept, err);
        if (r == 0 && !kept.there && !kept.saved)
            r = err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%s'", sandbox);
        /* The deadline first: one that has passed would pause it again at once. */
        if (r == 0 &&
            !deadline_stays(&record, kept.there && kept.sandbox.life == LIFE_RUNNING, timeout_ms))
            r = set_deadline(app, &record, timeout_ms, least_ms, err);
        if (r == 0)
            r = wake_found(app, &link, &record, &kept, ret_woken, err);
        sleep_close(app, &link, r, err);
    }
    turn_give(&turn);
    return r;
}

int sleep_answer(struct app *app, const struct store_sandbox *record, bool *ret_woken,
                 struct err *err)
{
    struct store_sandbox now;
    struct err ignored;
    bool lost;

    *ret_woken = false;
    if (record->sleep.tier == STORE_AWAKE)
        return 0;
    if (record->auto_resume || record->sleep.by == STORE_BY_IDLENESS)
        return sleep_wake(app, record->id, 0, WAKE_LEAST_MS, ret_woken, err);
    /* It may have been resumed past the server. */
    if (sleep_settle(app, record->id, false, &lost, &ignored) == 0 &&
        store_sandbox_get(app->store, NULL, record->id, &now, &ignored) == 0 &&
        now.sleep.tier == STORE_AWAKE)
        return 0;
    return err_set(err, ERR_STATE, "sandbox '%s' is paused: resume it first", record->id);
}
