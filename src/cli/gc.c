/* What nothing needs any more: images of a tenant without a record in the server's store, snapshots that a server left
 * half made, and, with --older-than, all snapshots that are older. A sandbox that is paused to disk and has a record is
 * never touched; nor is one that the command line paused, which has none. */
#include "base/own.h"
#include "cli/common.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/subverbs.h"
#include "client/warm.h"

#include <stdlib.h>
#include <string.h>

#define UNFINISHED_MS 3600000 /* longer than any save takes */
#define UNRECORDED_MS 60000   /* of a template's: longer than it takes to record it */

struct gc_options {
    bool dry_run;
    uint64_t older_ms;
};

/* clang-format off */
static const struct option gc_options[] = {
    { 0, "dry-run", OPTION_FLAG, offsetof(struct gc_options, dry_run), NULL, COMPLETE_NONE,
      "only say what would go" },
    { 0, "older-than", OPTION_DURATION, offsetof(struct gc_options, older_ms), "AGE", COMPLETE_NONE,
      "also snapshots that are older than 30d, 12h …" },
};

const struct verb gc_verb = {
    .name = "gc",
    .synopsis = "[OPTION…]",
    .summary = "remove saved sandboxes that nothing needs any more",
    .details = "Prints a line for each: its id, its size, and why. Paused sandboxes that somebody can still\n"
               "resume are kept, whatever their age.",
    .options = gc_options,
    .option_count = ARRAY_LEN(gc_options),
    .run = verb_gc,
};
/* clang-format on */

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
        else if (snapshot.state != STORE_SNAPSHOT_READY &&
                 now > snapshot.created_ms + UNFINISHED_MS)
            *ret_why = "it was never finished";
    }
    if (!*ret_why && !paused && is_old(options, image, now))
        *ret_why = "it is old";
    return 0;
}

static int collect(struct link *link, struct store *store, const struct gc_options *options,
                   struct err *err)
{
    auto_free struct keeper_image *images = NULL;
    uint64_t bytes = 0;
    size_t count, gone = 0;
    const char *why;
    char text[32];

    if (saved_images(link, &images, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (judge(store, options, &images[i], &why, err) < 0)
            return -1;
        if (!why)
            continue;
        if (!options->dry_run &&
            ((image_drop(link, images[i].id, err) < 0 && err->kind != ERR_NO_IMAGE) ||
             (store && store_snapshot_remove(store, images[i].id, err) < 0)))
            return -1;
        printf("%s  %s  %s\n", images[i].id, report_size(text, sizeof text, images[i].bytes), why);
        bytes += images[i].bytes;
        gone++;
    }
    printf("%zu of %zu %s, %s\n", gone, count, options->dry_run ? "would be removed" : "removed",
           report_size(text, sizeof text, bytes));
    if (gone > 0 && store && !options->dry_run)
        return subverb_audit(store, "", "snapshot.gc", "cove gc", err);
    return 0;
}

int verb_gc(int argc, char **argv)
{
    struct gc_options options = { .dry_run = false };
    struct store *store = NULL;
    struct link link;
    struct err err;
    char **operands;
    int count, code, r;

    code = common_parse(&gc_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 0)
        return common_excess(&gc_verb, operands[0]);
    if (saved_store(&store, &err) < 0)
        return report_error(&err);
    if (common_open(&link, &err) < 0) {
        store_close(store);
        return report_error(&err);
    }
    r = collect(&link, store, &options, &err);
    link_close(&link);
    store_close(store);
    return r < 0 ? report_error(&err) : report_end(0);
}
