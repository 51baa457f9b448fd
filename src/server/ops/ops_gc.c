/* What nothing needs any more: images of a tenant without a record in the store, snapshots that a server left half made, records of
 * snapshots whose image is gone, volumes without a record and, if asked, all snapshots that are older than some age. A sandbox that is
 * paused to disk and has a record is never touched; nor is one without an owner.
 *
 * Images are listed before records are looked up, and have theirs before they are made: one without belongs to no record. So it is with
 * volumes. An image goes before its record: a server that is killed between the two leaves a record, which goes the next time. */
#include "server/ops/ops_host.h"

#include "base/own.h"
#include "client/volume.h"
#include "client/warm.h"
#include "server/guard/audit.h"
#include "server/ops/ops_own.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define UNFINISHED_MS 3600000 /* longer than any save takes */
#define UNRECORDED_MS 60000   /* of a template's: longer than it takes to record it */
#define LOOK_MS       250

struct gc {
    struct ops *ops;
    const struct ops_gc *wish;
    struct store *store;
    struct link *link;
    ops_gc_each *each;
    void *arg;
    uint64_t seen, removed, compressed;
};

static bool is_old(const struct ops_gc *wish, const struct keeper_image *image, uint64_t now)
{
    return wish->older_ms > 0 && now > image->saved_ms && now - image->saved_ms > wish->older_ms;
}

/* Why it may go; NULL: it stays. -1: it is not known. */
static int judge(struct gc *gc, const struct keeper_image *image, const char **ret_why,
                 struct err *err)
{
    bool paused = image->flags & KEEPER_IMAGE_PAUSED;
    struct store_snapshot snapshot = { .state = STORE_SNAPSHOT_READY };
    struct store_sandbox sandbox;
    uint64_t now = store_now_ms();

    *ret_why = NULL;
    if (strcmp(image->owner, WARM_OWNER) == 0) {
        if (now > image->saved_ms + UNRECORDED_MS && store_warm_has(gc->store, image->id, err) == 0)
            *ret_why = "no template has it";
        return 0;
    }
    if (image->owner[0]) {
        int r = paused ? store_sandbox_get(gc->store, NULL, image->id, &sandbox, err)
                       : store_snapshot_get(gc->store, NULL, image->id, &snapshot, err);

        if (r < 0 && err->kind != ERR_NO_SANDBOX && err->kind != ERR_NO_IMAGE)
            return -1;
        if (r < 0)
            *ret_why = "its tenant has no record of it";
        else if (!store_snapshot_stays(snapshot.state) && now > snapshot.created_ms + UNFINISHED_MS)
            *ret_why = "it was never finished";
    }
    /* One that is being made, or that forks are being made of, has its own end. */
    if (!*ret_why && !paused && snapshot.state == STORE_SNAPSHOT_READY &&
        is_old(gc->wish, image, now))
        *ret_why = "it is old";
    return 0;
}

/* ---- what was done ---- */

static int tell(struct gc *gc, const struct ops_gc_item *item, struct err *err)
{
    if (!item->failure)
        *(strcmp(item->action, "remove") == 0 ? &gc->removed : &gc->compressed) += 1;
    return gc->each(gc->arg, item, err);
}

static const char *kind_of(const struct keeper_image *image)
{
    return image->flags & KEEPER_IMAGE_PAUSED ? "sandbox" : "snapshot";
}

static int remove_image(struct gc *gc, const struct keeper_image *image, const char *why,
                        struct err *err)
{
    struct ops_gc_item item = { kind_of(image), image->id, "remove", why, image->bytes, NULL };
    struct err failure;
    int r = 0;

    if (!gc->wish->dry_run) {
        r = image_drop(gc->link, image->id, &failure);
        if (r < 0 && failure.kind == ERR_NO_IMAGE)
            r = 0;
        if (r == 0)
            r = store_snapshot_remove(gc->store, image->id, &failure);
    }
    item.failure = r < 0 ? &failure : NULL;
    return tell(gc, &item, err);
}

/* The keeper is not waited for, so that a caller who is gone is noticed. -1: *ret_failure says why, or kind ERR_NONE: *err does. */
static int shrink(struct gc *gc, const char *id, struct keeper_image *ret, struct err *failure,
                  struct err *err)
{
    if (image_compress(gc->link, id, false, ret, failure) < 0)
        return -1;
    for (;;) {
        if (image_get(gc->link, id, ret, failure) < 0)
            return -1;
        if (!(ret->flags & KEEPER_IMAGE_SHRINKING))
            break;
        (void) poll(NULL, 0, LOOK_MS);
        if (gc->each(gc->arg, NULL, err) < 0) {
            failure->kind = ERR_NONE;
            return -1;
        }
    }
    if (!(ret->flags & KEEPER_IMAGE_COMPRESSED))
        return err_set(failure, ERR_STATE, "'%s' was not compressed: the keeper's log says why",
                       id);
    return ret->flags & KEEPER_IMAGE_PAUSED
               ? 0
               : store_snapshot_set_bytes(gc->store, id, ret->bytes, failure);
}

/* An estimate cannot be told before it is done: a dry run says what it takes now. */
static int compress(struct gc *gc, const struct keeper_image *image, struct err *err)
{
    struct ops_gc_item item = { kind_of(image), image->id, "compress", "compressed", 0, NULL };
    struct keeper_image now = *image;
    struct err failure;

    if (gc->wish->dry_run)
        item.reason = "would be compressed";
    else if (shrink(gc, image->id, &now, &failure, err) < 0) {
        if (failure.kind == ERR_NONE)
            return -1;
        item.failure = &failure;
    }
    item.freed = !item.failure && image->bytes > now.bytes ? image->bytes - now.bytes : 0;
    return tell(gc, &item, err);
}

static bool is_compressible(const struct gc *gc, const struct keeper_image *image)
{
    uint64_t now = store_now_ms(), used_ms = (uint64_t) image->used_s * 1000u;

    return gc->wish->compress_ms != OPS_GC_NEVER && image->flags & KEEPER_IMAGE_MEMORY &&
           !(image->flags & KEEPER_IMAGE_COMPRESSED) && strcmp(image->owner, WARM_OWNER) != 0 &&
           now >= used_ms && now - used_ms >= gc->wish->compress_ms;
}

/* ---- images, records, volumes ---- */

static int collect_images(struct gc *gc, struct err *err)
{
    auto_free struct keeper_image *images = NULL;
    const char *why;
    size_t count = 0;

    if (image_list(gc->link, &images, &count, err) < 0)
        return err->kind == ERR_UNSUPPORTED ? 0 : -1; /* nothing can be saved here */
    for (size_t i = 0; i < count; i++) {
        if (judge(gc, &images[i], &why, err) < 0)
            return -1;
        if (why ? remove_image(gc, &images[i], why, err) < 0
                : is_compressible(gc, &images[i]) && compress(gc, &images[i], err) < 0)
            return -1;
    }
    gc->seen += count;
    return 0;
}

struct ids {
    char (*all)[STORE_VOLUME_ID_MAX];
    size_t count, room;
};

static int keep_id(struct ids *ids, const char *id, struct err *err)
{
    if (ids->count == ids->room) {
        size_t room = ids->room ? 2 * ids->room : 64;
        void *more = realloc(ids->all, room * sizeof *ids->all);

        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for a list");
        ids->all = more;
        ids->room = room;
    }
    (void) snprintf(ids->all[ids->count++], sizeof ids->all[0], "%s", id);
    return 0;
}

static int keep_snapshot(void *arg, const struct store_snapshot *snapshot, struct err *err)
{
    return store_snapshot_stays(snapshot->state) ? keep_id(arg, snapshot->id, err) : 0;
}

static int keep_volume(void *arg, const struct store_volume *volume, struct err *err)
{
    return keep_id(arg, volume->id, err);
}

/* A snapshot's record counts for its tenant's quota, whether its image is there or not. */
static int collect_records(struct gc *gc, struct err *err)
{
    struct ids ids = { .all = NULL };
    int r = store_snapshot_list(gc->store, NULL, 0, 0, keep_snapshot, &ids, err);

    for (size_t i = 0; r == 0 && i < ids.count; i++) {
        struct ops_gc_item item = { "record", ids.all[i], "remove", "its image is gone", 0, NULL };
        struct keeper_image image;
        struct err gone;

        if (image_get(gc->link, ids.all[i], &image, &gone) == 0 || gone.kind != ERR_NO_IMAGE)
            continue;
        if (!gc->wish->dry_run && store_snapshot_remove(gc->store, ids.all[i], &gone) < 0)
            item.failure = &gone;
        r = tell(gc, &item, err);
    }
    free(ids.all);
    return r;
}

static bool is_known(const struct ids *ids, const char *id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (strcmp(ids->all[i], id) == 0)
            return true;
    return false;
}

static int collect_volumes(struct gc *gc, struct err *err)
{
    auto_free struct volume_info *volumes = NULL;
    struct ids ids = { .all = NULL };
    size_t count = 0;
    int r = volume_list(gc->link, NULL, &volumes, &count, err);

    if (r == 0)
        r = store_volume_list(gc->store, NULL, keep_volume, &ids, err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct ops_gc_item item = { "volume",          volumes[i].id,
                                    "remove",          "no record mentions it",
                                    volumes[i].stored, NULL };
        struct err failure;

        if (is_known(&ids, volumes[i].id))
            continue;
        /* The keeper refuses while a sandbox has it, also one that sleeps. */
        if (!gc->wish->dry_run && volume_drop(gc->link, volumes[i].id, &failure) < 0 &&
            failure.kind != ERR_NO_VOLUME)
            item.failure = &failure;
        r = tell(gc, &item, err);
    }
    gc->seen += count;
    free(ids.all);
    return r;
}

/* The record of a collection that was cut short says so. */
static int note(struct gc *gc, int r, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    char detail[80];

    (void) snprintf(detail, sizeof detail, "%llu removed, %llu compressed",
                    (unsigned long long) gc->removed, (unsigned long long) gc->compressed);
    facts.detail = detail;
    facts.refusal = r < 0 ? err : NULL;
    if (r == 0)
        return audit_durable(gc->ops->caller, "snapshot.gc", NULL, &facts, err);
    audit_note(gc->ops->caller, "snapshot.gc", NULL, &facts);
    return -1;
}

int ops_gc(struct ops *ops, const struct ops_gc *wish, ops_gc_each *each, void *arg,
           uint64_t *ret_seen, struct err *err)
{
    struct link link;
    struct gc gc = {
        .ops = ops, .wish = wish, .store = ops->app->store, .link = &link, .each = each, .arg = arg
    };
    int r;

    if (ops_operator_only(ops, "snapshot.gc", err) < 0 || app_link_take(ops->app, &link, err) < 0)
        return -1;
    r = collect_images(&gc, err);
    if (r == 0)
        r = collect_records(&gc, err);
    if (r == 0)
        r = collect_volumes(&gc, err);
    ops_box_close(ops, &link, r, err);
    *ret_seen = gc.seen;
    return wish->dry_run ? r : note(&gc, r, err);
}
