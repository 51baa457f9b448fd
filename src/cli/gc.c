/* What nothing needs any more: images of a tenant without a record in the server's store, snapshots that a server left
 * half made, records of snapshots whose image is gone, volumes without a record, files of imported images that no template has, and, with --older-than, all snapshots
 * that are older. A sandbox that is paused to disk and has a record is never touched; nor is one that the command
 * line paused, which has none. With --compress, images that nobody used for long take less room.
 *
 * Images are listed before records are looked up, and have theirs before they are made: one without is nobody's. So it
 * is with volumes. */
#include "base/json.h"
#include "base/own.h"
#include "cli/common.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/substore.h"
#include "cli/subverbs.h"
#include "client/volume.h"
#include "client/warm.h"
#include "template/image_store.h"
#include "template/template_store.h"

#include <stdlib.h>
#include <string.h>

#define UNFINISHED_MS 3600000 /* longer than any save takes */
#define UNRECORDED_MS 60000   /* of a template's: longer than it takes to record it */

struct gc_options {
    bool dry_run, json;
    uint64_t older_ms, compress_ms;
};

#define AT(field) offsetof(struct gc_options, field)
#define NEVER     UINT64_MAX

/* clang-format off */
static const struct option gc_options[] = {
    { 0, "dry-run", OPTION_FLAG, AT(dry_run), NULL, COMPLETE_NONE,
      "only say what would be done" },
    { 0, "older-than", OPTION_DURATION, AT(older_ms), "AGE", COMPLETE_NONE,
      "also remove snapshots that are older than 30d, 12h …" },
    { 0, "compress", OPTION_DURATION, AT(compress_ms), "AGE", COMPLETE_NONE,
      "compress the memory of images that were not used for 7d, 0s …" },
    { 0, "json", OPTION_FLAG, AT(json), NULL, COMPLETE_NONE,
      "as JSON: what was done to what, and why" },
};

const struct verb gc_verb = {
    .name = "gc",
    .synopsis = "[OPTION…]",
    .summary = "remove what nothing needs any more, and make what is old smaller",
    .details = "Prints a line for each image, snapshot or volume as it goes: its id, its size, and why. Paused\n"
               "sandboxes that can still be resumed are kept, whatever their age. What cannot be done is\n"
               "said, and the rest is done; the exit code is then that of the first failure.",
    .options = gc_options,
    .option_count = ARRAY_LEN(gc_options),
    .run = verb_gc,
};
/* clang-format on */

struct gc {
    const struct gc_options *options;
    struct link *link;
    struct store *store; /* NULL: none */
    struct json_out json;
    size_t seen, removed, compressed;
    uint64_t freed;
    int code; /* of the first failure */
};

static bool is_old(const struct gc_options *options, const struct keeper_image *image, uint64_t now)
{
    return options->older_ms > 0 && now > image->saved_ms &&
           now - image->saved_ms > options->older_ms;
}

/* Why it may go; NULL: it stays. -1: it is not known. */
static int judge(struct store *store, const struct gc_options *options,
                 const struct keeper_image *image, const char **ret_why, struct err *err)
{
    bool paused = image->flags & KEEPER_IMAGE_PAUSED;
    struct store_snapshot snapshot = { .state = STORE_SNAPSHOT_READY };
    struct store_sandbox sandbox;
    uint64_t now = store_now_ms();

    *ret_why = NULL;
    if (strcmp(image->owner, WARM_OWNER) == 0) {
        if (now > image->saved_ms + UNRECORDED_MS && store &&
            store_warm_has(store, image->id, err) == 0)
            *ret_why = "no template has it";
        return 0;
    }
    if (store && image->owner[0]) {
        int r = paused ? store_sandbox_get(store, NULL, image->id, &sandbox, err)
                       : store_snapshot_get(store, NULL, image->id, &snapshot, err);

        if (r < 0 && err->kind != ERR_NO_SANDBOX && err->kind != ERR_NO_IMAGE)
            return -1;
        if (r < 0)
            *ret_why = "its tenant has no record of it";
        else if (!store_snapshot_stays(snapshot.state) && now > snapshot.created_ms + UNFINISHED_MS)
            *ret_why = "it was never finished";
    }
    if (!*ret_why && !paused && snapshot.state != STORE_SNAPSHOT_TEMPLATE &&
        is_old(options, image, now))
        *ret_why = "it is old";
    return 0;
}

/* ---- what was done ---- */

enum deed { REMOVE, COMPRESS };

/* One line, or object: freed bytes of something, or why it could not be. */
static void tell(struct gc *gc, enum deed deed, const char *kind, const char *id, uint64_t freed,
                 const char *why, const struct err *failure)
{
    char text[32];

    if (gc->options->json) {
        json_out_object(&gc->json, NULL);
        json_out_text(&gc->json, "kind", kind);
        json_out_text(&gc->json, "id", id);
        json_out_text(&gc->json, "action", deed == REMOVE ? "remove" : "compress");
        json_out_text(&gc->json, "reason", why);
        json_out_number(&gc->json, "freed_bytes", failure ? 0 : freed);
        json_out_text(&gc->json, "error", failure ? failure->msg : NULL);
        json_out_end(&gc->json);
    } else if (!failure) {
        printf("%s  %s  %s\n", id, report_size(text, sizeof text, freed), why);
        (void) fflush(stdout); /* the next one may take its time */
    }
    if (failure) {
        int code = report_error(failure);

        gc->code = gc->code ? gc->code : code;
        return;
    }
    gc->freed += freed;
    gc->removed += deed == REMOVE;
    gc->compressed += deed == COMPRESS;
}

static void remove_image(struct gc *gc, const struct keeper_image *image, const char *why)
{
    bool paused = image->flags & KEEPER_IMAGE_PAUSED;
    struct err err;
    int r = 0;

    if (!gc->options->dry_run) {
        r = image_drop(gc->link, image->id, &err);
        if (r < 0 && err.kind == ERR_NO_IMAGE)
            r = 0;
        if (r == 0 && gc->store)
            r = store_snapshot_remove(gc->store, image->id, &err);
    }
    tell(gc, REMOVE, paused ? "sandbox" : "snapshot", image->id, image->bytes, why,
         r < 0 ? &err : NULL);
}

/* An estimate cannot be told before it is done: a dry run says what it takes now. */
static void compress(struct gc *gc, const struct keeper_image *image)
{
    struct keeper_image now = *image;
    struct err err;
    int r = 0;

    if (!gc->options->dry_run) {
        r = image_compress(gc->link, image->id, true, &now, &err);
        if (r == 0 && gc->store && !(image->flags & KEEPER_IMAGE_PAUSED))
            r = store_snapshot_set_bytes(gc->store, image->id, now.bytes, &err);
    }
    tell(gc, COMPRESS, image->flags & KEEPER_IMAGE_PAUSED ? "sandbox" : "snapshot", image->id,
         image->bytes > now.bytes ? image->bytes - now.bytes : 0,
         gc->options->dry_run ? "would be compressed" : "compressed", r < 0 ? &err : NULL);
}

static bool is_compressible(const struct gc *gc, const struct keeper_image *image)
{
    uint64_t now = store_now_ms(), used_ms = (uint64_t) image->used_s * 1000u;

    return gc->options->compress_ms != NEVER && image->flags & KEEPER_IMAGE_MEMORY &&
           !(image->flags & KEEPER_IMAGE_COMPRESSED) && strcmp(image->owner, WARM_OWNER) != 0 &&
           now >= used_ms && now - used_ms >= gc->options->compress_ms;
}

/* ---- images, records, volumes ---- */

static int collect_images(struct gc *gc, struct err *err)
{
    auto_free struct keeper_image *images = NULL;
    const char *why;
    size_t count;

    if (saved_images(gc->link, &images, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (judge(gc->store, gc->options, &images[i], &why, err) < 0)
            return -1;
        if (why)
            remove_image(gc, &images[i], why);
        else if (is_compressible(gc, &images[i]))
            compress(gc, &images[i]);
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
        struct keeper_image image;
        struct err gone;

        if (image_get(gc->link, ids.all[i], &image, &gone) == 0 || gone.kind != ERR_NO_IMAGE)
            continue;
        gone.kind = ERR_NONE;
        if (!gc->options->dry_run)
            (void) store_snapshot_remove(gc->store, ids.all[i], &gone);
        tell(gc, REMOVE, "record", ids.all[i], 0, "its image is gone", gone.kind ? &gone : NULL);
    }
    free(ids.all);
    return r;
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
        struct err failure = { .kind = ERR_NONE };
        bool known = false;

        for (size_t n = 0; n < ids.count && !known; n++)
            known = strcmp(ids.all[n], volumes[i].id) == 0;
        if (known)
            continue;
        /* The keeper refuses while a sandbox has it, also one that sleeps. */
        if (!gc->options->dry_run && volume_drop(gc->link, volumes[i].id, &failure) == 0)
            failure.kind = ERR_NONE;
        tell(gc, REMOVE, "volume", volumes[i].id, volumes[i].stored, "no record mentions it",
             failure.kind && failure.kind != ERR_NO_VOLUME ? &failure : NULL);
    }
    gc->seen += count;
    free(ids.all);
    return r;
}

static void tell_layer(void *context, const char *key, uint64_t bytes)
{
    struct gc *gc = context;

    gc->seen++;
    tell(gc, REMOVE, "layer", key, bytes, "no template has it", NULL);
}

/* Files of imported images. */
static int collect_layers(struct gc *gc, struct err *err)
{
    auto_close int templates_fd = -1;

    if (template_store_look(report_state(), &templates_fd, err) < 0)
        return err->kind == ERR_NO_TEMPLATE ? 0 : -1;
    return image_store_collect(templates_fd, gc->options->dry_run, tell_layer, gc, err);
}

static int collect(struct gc *gc, struct err *err)
{
    const char *would = gc->options->dry_run ? "would be " : "";
    char text[32];
    int r;

    if (gc->options->json) {
        json_out_init(&gc->json, stdout);
        json_out_object(&gc->json, NULL);
        json_out_bool(&gc->json, "dry_run", gc->options->dry_run);
        json_out_array(&gc->json, "items");
    }
    r = collect_images(gc, err);
    if (r == 0 && gc->store && (collect_records(gc, err) < 0 || collect_volumes(gc, err) < 0))
        r = -1;
    if (r == 0)
        r = collect_layers(gc, err);
    if (gc->options->json) {
        json_out_end(&gc->json);
        json_out_number(&gc->json, "removed", gc->removed);
        json_out_number(&gc->json, "compressed", gc->compressed);
        json_out_number(&gc->json, "freed_bytes", gc->freed);
        json_out_end(&gc->json);
        (void) json_out_finish(&gc->json);
    } else if (r == 0) {
        printf("%zu of %zu %sremoved", gc->removed, gc->seen, would);
        if (gc->options->compress_ms != NEVER)
            printf(", %zu %scompressed", gc->compressed, would);
        printf(", %s\n", report_size(text, sizeof text, gc->freed));
    }
    if (r == 0 && gc->removed + gc->compressed > 0 && gc->store && !gc->options->dry_run)
        r = subverb_audit(gc->store, "", "snapshot.gc", "cove gc", err);
    return r;
}

int verb_gc(int argc, char **argv)
{
    struct gc_options options = { .compress_ms = NEVER };
    struct gc gc = { .options = &options };
    struct link link;
    struct err err;
    char **operands;
    int count, code, r;

    code = common_parse(&gc_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 0)
        return common_excess(&gc_verb, operands[0]);
    if (saved_store(&gc.store, &err) < 0)
        return report_error(&err);
    if (common_open(&link, &err) < 0) {
        store_close(gc.store);
        return report_error(&err);
    }
    gc.link = &link;
    r = collect(&gc, &err);
    link_close(&link);
    store_close(gc.store);
    return r < 0 ? report_error(&err) : report_end(gc.code);
}
