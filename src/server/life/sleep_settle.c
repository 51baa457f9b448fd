/* Ends, and what is found to be otherwise than it was meant. */
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "client/sandbox.h"
#include "server/guard/quota.h"
#include "server/life/sleep_own.h"

#define END_MS   30000 /* the keeper promises two seconds: a bound on hanging */
#define AGAIN_MS 50

int sleep_room(struct app *app, struct link *link, const struct store_sandbox *record, bool memory,
               bool recorded, struct err *err)
{
    struct keeper_stats stats;
    uint64_t bytes;

    if (quota_image(app, record->tenant, recorded, err) < 0 ||
        sandbox_stats(link, record->id, &stats, err) < 0)
        return -1;
    bytes = memory && stats.memory_bytes > stats.memory_cache_bytes
                ? stats.memory_bytes - stats.memory_cache_bytes
                : 0;
    return quota_store_more(app, record->tenant, bytes, err);
}

int sleep_list(struct link *link, struct keeper_sandbox **ret, size_t *ret_count,
               struct keeper_image **ret_images, size_t *ret_image_count, struct err *err)
{
    auto_free struct keeper_sandbox *list = NULL;
    auto_free struct keeper_image *images = NULL;
    size_t count, image_count = 0;

    if (sandbox_list(link, &list, &count, err) < 0)
        return -1;
    if (image_list(link, &images, &image_count, err) < 0 && !sleep_no_image(err))
        return -1;
    *ret_images = take_ptr(&images);
    *ret_image_count = image_count;
    *ret = take_ptr(&list);
    *ret_count = count;
    return 0;
}

int sleep_turn(struct turn *turn, const char *sandbox, bool if_free, struct err *err)
{
    if (!if_free)
        turn_take(turn, sandbox);
    else if (!turn_try(turn, sandbox))
        return err_set(err, ERR_STATE, "sandbox '%s' is being paused or resumed", sandbox);
    return 0;
}

/* Of those whose turn it is: what they wait for ends with the sandbox. */
static int interrupt(struct app *app, const char *sandbox, enum sleep_force force, struct err *err)
{
    struct keeper_sandbox kept;
    struct link link;
    int r;

    if (app_link_take(app, &link, err) < 0)
        return -1;
    link.patience_ms = END_MS;
    r = sandbox_get(&link, sandbox, &kept, err);
    if (r == 0 && force == SLEEP_IF_SAVING && kept.life != LIFE_PAUSING)
        r = err_set(err, ERR_STATE, "sandbox '%s' is being paused or resumed", sandbox);
    if (r == 0)
        r = sandbox_destroy(&link, sandbox, err);
    sleep_close(app, &link, r, err);
    return r < 0 && err->kind != ERR_NO_SANDBOX ? -1 : 0;
}

/* Again and again: one who wakes it may only be about to ask the keeper for it. */
static int take_over(struct app *app, struct turn *turn, const char *sandbox,
                     enum sleep_force force, struct err *err)
{
    uint64_t until = io_now_ms() + END_MS;

    while (!turn_wait(turn, sandbox, AGAIN_MS)) {
        if (interrupt(app, sandbox, force, err) < 0)
            return -1;
        if (io_now_ms() > until)
            return err_set(err, ERR_TIMEOUT, "sandbox '%s' does not end", sandbox);
    }
    return 0;
}

static int end_turn(struct app *app, struct turn *turn, const char *sandbox, enum sleep_force force,
                    struct err *err)
{
    if (force == SLEEP_IF_FREE)
        return sleep_turn(turn, sandbox, true, err);
    return turn_try(turn, sandbox) ? 0 : take_over(app, turn, sandbox, force, err);
}

int sleep_end(struct app *app, const char *sandbox, enum sleep_force force, struct err *err)
{
    struct link link;
    struct turn turn;
    int r = -1;

    if (end_turn(app, &turn, sandbox, force, err) < 0)
        return -1;
    if (app_link_take(app, &link, err) == 0) {
        link.patience_ms = END_MS;
        r = sandbox_destroy(&link, sandbox, err);
        if (r < 0 && err->kind == ERR_NO_SANDBOX) {
            r = image_drop(&link, sandbox, err);
            if (r < 0 && sleep_no_image(err))
                r = 0; /* lost: only its record is left */
        }
        sleep_close(app, &link, r, err);
    }
    turn_give(&turn);
    return r;
}

int sleep_drop(struct app *app, const char *snapshot, struct err *err)
{
    struct link link;
    int r;

    if (app_link_take(app, &link, err) < 0)
        return -1;
    r = image_drop(&link, snapshot, err);
    if (r < 0 && sleep_no_image(err))
        r = 0;
    sleep_close(app, &link, r, err);
    return r < 0 ? -1 : store_snapshot_remove(app->store, snapshot, err);
}

/* What the record should say; false: it says it. */
static bool differs(const struct store_sandbox *record, const struct sleep_kept *kept,
                    struct store_sleep *ret)
{
    bool paused = kept->there && kept->sandbox.life == LIFE_PAUSED;
    int tier = record->sleep.tier;

    *ret = record->sleep;
    if (kept->saved && (tier != STORE_DISK || record->sleep.bytes != kept->image.bytes)) {
        *ret = (struct store_sleep){ .tier = STORE_DISK,
                                     .by = record->sleep.by,
                                     .memory = kept->image.flags & KEEPER_IMAGE_MEMORY,
                                     .since_ms = record->sleep.since_ms ? record->sleep.since_ms
                                                                        : kept->image.saved_ms,
                                     .bytes = kept->image.bytes };
        return true;
    }
    if (paused && (tier == STORE_AWAKE || tier == STORE_DISK)) {
        *ret = (struct store_sleep){ .tier = STORE_HOT, .since_ms = store_now_ms() };
        return true;
    }
    if (kept->there && kept->sandbox.life == LIFE_RUNNING && tier != STORE_AWAKE) {
        *ret = (struct store_sleep){ .tier = STORE_AWAKE };
        return true;
    }
    return false;
}

int sleep_settle(struct app *app, const char *sandbox, bool if_free, bool *ret_lost,
                 struct err *err)
{
    struct store_sandbox record;
    struct store_sleep sleep;
    struct sleep_kept kept;
    struct link link;
    struct turn turn;
    int r = -1;

    *ret_lost = false;
    if (sleep_turn(&turn, sandbox, if_free, err) < 0)
        return 0;
    if (store_sandbox_get(app->store, NULL, sandbox, &record, err) == 0 &&
        app_link_take(app, &link, err) == 0) {
        r = sleep_look(app, &link, sandbox, &kept, err);
        sleep_close(app, &link, r, err);
        if (r == 0) {
            *ret_lost = !kept.there && !kept.saved;
            if (differs(&record, &kept, &sleep)) {
                log_line(LOG_INFO, "sandbox=%s is found %s, and was meant to be %s", sandbox,
                         sleep.tier ? sleep_tier_name(sleep.tier) : "awake",
                         record.sleep.tier ? sleep_tier_name(record.sleep.tier) : "awake");
                r = store_sandbox_set_sleep(app->store, sandbox, &sleep, err);
                if (r == 0 && kept.there && record.sleep.tier == STORE_DISK)
                    r = sleep_network(app, sandbox, err); /* another thread brought it back */
            }
        }
    }
    turn_give(&turn);
    return r;
}
