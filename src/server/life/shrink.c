#include "server/life/shrink.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "client/warm.h"
#include "server/app/app.h"
#include "server/life/chore.h"
#include "server/life/sleep_own.h"

#include <stdlib.h>
#include <string.h>

#define ROUND_MS  30000
#define SOON_MS   1000 /* between rounds, for one that was told to be quick (a setting of seconds) */
#define LOOK_MS   250
#define FAILED_MS 3600000 /* until one that could not be compressed is tried again */
#define FAILED    64

static struct chore own = CHORE_INIT;

/* Of the thread alone. A ring: who falls out is tried again, and comes back. */
static struct {
    char id[ID_LEN + 1];
    uint64_t until_ms;
} failed[FAILED];
static size_t failed_next;

static bool has_failed(const char *id)
{
    for (size_t i = 0; i < FAILED; i++)
        if (strcmp(failed[i].id, id) == 0 && io_now_ms() < failed[i].until_ms)
            return true;
    return false;
}

static void note_failed(const char *id)
{
    (void) snprintf(failed[failed_next].id, sizeof failed[0].id, "%.*s", ID_LEN, id);
    failed[failed_next].until_ms = io_now_ms() + FAILED_MS;
    failed_next = (failed_next + 1) % FAILED;
}

/* A paused sandbox's record is compared with its image elsewhere (sleep_settle); that of a snapshot here. */
static void count(struct app *app, const struct keeper_image *image)
{
    struct store_snapshot record;
    struct err err;

    if (image->flags & KEEPER_IMAGE_PAUSED) {
        bool lost;

        (void) sleep_settle(app, image->id, true, &lost, &err);
        return;
    }
    if (store_snapshot_get(app->store, NULL, image->id, &record, &err) == 0 &&
        store_snapshot_stays(record.state) && record.bytes != image->bytes &&
        store_snapshot_set_bytes(app->store, image->id, image->bytes, &err) < 0)
        log_line(LOG_WARNING, "snapshot=%s its size is not written: %s", image->id, err.msg);
}

/* Templates' own are for starts that take no time. */
static bool is_due(struct app *app, const struct keeper_image *image)
{
    uint64_t after = app_config(app)->image_compress_after_ms, now = store_now_ms();

    return after > 0 && image->flags & KEEPER_IMAGE_MEMORY &&
           !(image->flags & (KEEPER_IMAGE_COMPRESSED | KEEPER_IMAGE_SHRINKING)) &&
           strcmp(image->owner, WARM_OWNER) != 0 &&
           now >= (uint64_t) image->used_s * 1000u + after && !has_failed(image->id);
}

/* The keeper is not waited for, so that the server can end meanwhile. */
static int compress(struct app *app, struct link *link, const char *id, struct err *err)
{
    struct keeper_image image;

    if (image_compress(link, id, false, &image, err) < 0)
        return -1;
    do {
        if (image_get(link, id, &image, err) < 0)
            return -1;
    } while (image.flags & KEEPER_IMAGE_SHRINKING && chore_rest(&own, LOOK_MS));
    if (image.flags & KEEPER_IMAGE_COMPRESSED) {
        log_line(LOG_INFO, "image=%s compressed bytes=%llu", id, (unsigned long long) image.bytes);
        count(app, &image);
    } else if (!(image.flags & KEEPER_IMAGE_SHRINKING)) {
        note_failed(id); /* the keeper's log has the reason */
    }
    return 0;
}

static void one_round(struct app *app)
{
    auto_free struct keeper_image *images = NULL;
    size_t count_all = 0;
    struct link link;
    struct err err;
    int r;

    if (app_config(app)->image_compress_after_ms == 0 || app_link_take(app, &link, &err) < 0)
        return;
    r = image_list(&link, &images, &count_all, &err);
    for (size_t i = 0; r == 0 && i < count_all && chore_rest(&own, 0); i++) {
        if (images[i].flags & KEEPER_IMAGE_COMPRESSED)
            count(app, &images[i]);
        if (!is_due(app, &images[i]))
            continue;
        r = compress(app, &link, images[i].id, &err);
        /* It was resumed or dropped meanwhile; or another thread has another one compressed. */
        if (r < 0 && (sleep_no_image(&err) || err.kind == ERR_STATE || err.kind == ERR_TOO_MANY))
            r = 0;
    }
    sleep_close(app, &link, r, &err);
}

static void *run(void *arg)
{
    uint64_t after;

    do {
        one_round(arg);
        after = app_config(arg)->image_compress_after_ms;
    } while (chore_rest(&own, after > 0 && after < ROUND_MS ? SOON_MS : ROUND_MS));
    return NULL;
}

int shrink_start(struct app *app, struct err *err)
{
    return chore_start(&own, "compressing", run, app, err);
}

void shrink_stop(void)
{
    chore_stop(&own);
}
