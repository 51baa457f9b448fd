/* Only tenants that have a quota of stored bytes are measured. One sandbox is one question to the keeper, who does one
 * thing at a time: so there is a pause after every few, in which others get their turn. */
#include "server/life/upkeep.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "client/image.h"
#include "client/sandbox.h"
#include "server/app/app.h"
#include "server/guard/audit.h"
#include "server/guard/live.h"
#include "server/guard/quota.h"
#include "server/life/chore.h"
#include "server/life/uploads.h"
#include "server/net/network.h"
#include "store/pulled.h"
#include "store/store.h"

#include <inttypes.h>
#include <string.h>

#define ROUND_MS     3000
#define PRUNE_MS     3600000
#define AT_ONCE      32 /* questions, then a pause */
#define PAUSE_MS     10
#define TENANTS_MOST 4096
#define DAY_MS       86400000ull

static struct chore own = CHORE_INIT;

/* ---- stored bytes ---- */

struct ids {
    char (*list)[ID_LEN + 1];
    size_t count, room;
};

static int keep_id(void *arg, const struct store_sandbox *record, struct err *err)
{
    struct ids *ids = arg;

    if (ids->count == ids->room) {
        size_t room = ids->room ? 2 * ids->room : 64;
        void *more = realloc(ids->list, room * sizeof *ids->list);

        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for a list of sandboxes");
        ids->list = more;
        ids->room = room;
    }
    memcpy(ids->list[ids->count++], record->id, sizeof *ids->list);
    return 0;
}

/* One that is gone, or is being made, has nothing. */
static int sum_up(struct app *app, const struct ids *ids, uint64_t *ret, struct err *err)
{
    struct keeper_stats stats;
    struct link link;
    int r = 0;

    *ret = 0;
    if (app_link_take(app, &link, err) < 0)
        return -1;
    for (size_t i = 0; i < ids->count; i++) {
        if (i % AT_ONCE == AT_ONCE - 1 && !chore_rest(&own, PAUSE_MS))
            break;
        r = sandbox_stats(&link, ids->list[i], &stats, err);
        if (r == 0)
            *ret += stats.disk_bytes + stats.layer_bytes;
        else if (err->kind == ERR_UNAVAILABLE || err->kind == ERR_PROTOCOL)
            break;
        r = 0;
    }
    app_link_give(app, &link, r == 0);
    return r;
}

/* What images there are, as the keeper counts them now: the records say what they were when they were made. */
struct saved {
    struct keeper_image *list;
    size_t count;
};

static int list_saved(struct app *app, struct saved *ret, struct err *err)
{
    struct link link;
    int r;

    if (app_link_take(app, &link, err) < 0)
        return -1;
    r = image_list(&link, &ret->list, &ret->count, err);
    app_link_give(app, &link, r == 0);
    return r;
}

static uint64_t saved_bytes(const struct saved *saved, const char *tenant)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < saved->count; i++)
        if (strcmp(saved->list[i].owner, tenant) == 0)
            bytes += saved->list[i].bytes;
    return bytes;
}

static void measure(struct app *app, const char *tenant, const struct saved *saved)
{
    struct ids ids = { .list = NULL };
    struct store_volume_usage volumes;
    uint64_t stored, pulled;
    struct err err;

    if (store_sandbox_list(app->store, tenant, 0, 0, keep_id, &ids, &err) == 0 &&
        sum_up(app, &ids, &stored, &err) == 0 &&
        store_volume_usage(app->store, tenant, &volumes, &err) == 0 &&
        store_pulled_bytes(app->store, tenant, &pulled, &err) == 0)
        quota_set_stored(app, tenant,
                         stored + volumes.bytes + pulled + saved_bytes(saved, tenant) +
                             uploads_sweep(app, tenant).bytes);
    else /* the figure of before stays */
        log_line(LOG_WARNING, "tenant=%s stored bytes not measured: %s", tenant, err.msg);
    free(ids.list);
}

struct names {
    char (*list)[STORE_TENANT_MAX];
    size_t count;
};

static int keep_name(void *arg, const struct store_tenant *tenant, struct err *err)
{
    struct names *names = arg;

    (void) err;
    if (tenant->quotas.stored_bytes > 0 && names->count < TENANTS_MOST)
        memcpy(names->list[names->count++], tenant->name, sizeof *names->list);
    return 0;
}

static void measure_all(struct app *app)
{
    struct names names = { .list = malloc(TENANTS_MOST * sizeof *names.list) };
    struct saved saved = { .list = NULL };
    struct err err;

    if (names.list && store_tenant_list(app->store, keep_name, &names, &err) == 0 &&
        names.count > 0) {
        if (list_saved(app, &saved, &err) < 0) /* the figures of before stay */
            log_line(LOG_WARNING, "stored bytes not measured: %s", err.msg);
        else
            for (size_t i = 0; i < names.count; i++)
                measure(app, names.list[i], &saved);
    }
    free(saved.list);
    free(names.list);
}

/* ---- the audit log ---- */

static void pruned(int rc, uint64_t count, const char *why, uint64_t most, const struct err *err)
{
    if (rc < 0)
        log_line(LOG_WARNING, "audit log not pruned: %s", err->msg);
    if (rc < 0 || count == 0)
        return;
    log_line(LOG_INFO, "audit log pruned records=%" PRIu64 " %s=%" PRIu64, count, why, most);
}

static void prune(struct app *app)
{
    uint64_t days = app_config(app)->audit_days, count = 0, now = store_now_ms();
    struct err err;
    int rc;

    if (days == 0 || days * DAY_MS >= now)
        return;
    rc = audit_prune(app, NULL, now - days * DAY_MS, &count, &err);
    pruned(rc, count, "days", days, &err);
}

static void shrink(struct app *app)
{
    uint64_t most = app_config(app)->audit_bytes, count = 0;
    struct err err;
    int rc;

    if (most == 0)
        return;
    rc = audit_shrink(app, most, &count, &err);
    pruned(rc, count, "bytes", most, &err);
}

/* ---- the thread ---- */

static void *run(void *arg)
{
    struct app *app = arg;
    uint64_t pruned_ms = 0, pruned_days = 0;

    do {
        uint64_t now = io_now_ms(), days = app_config(app)->audit_days;

        live_expire(store_now_ms());
        measure_all(app);
        network_secrets_poll(app);
        shrink(app);
        /* Also at once when the setting was changed. */
        if (pruned_ms == 0 || now - pruned_ms >= PRUNE_MS || days != pruned_days) {
            prune(app);
            pruned_ms = now;
            pruned_days = days;
        }
    } while (chore_rest(&own, ROUND_MS));
    return NULL;
}

int upkeep_start(struct app *app, struct err *err)
{
    return chore_start(&own, "upkeep", run, app, err);
}

void upkeep_stop(void)
{
    chore_stop(&own);
}
