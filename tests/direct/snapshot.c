/* Snapshots that belong to nobody: images of the keeper's, without a record in the server's store. */
#include "base/own.h"
#include "cli/listing.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/subverbs.h"
#include "client/warm.h"
#include "direct/common.h"
#include "direct/substore.h"

#include <stdlib.h>
#include <string.h>

struct snapshot_values {
    bool no_memory, json;
};

#define AT(field) offsetof(struct snapshot_values, field)

/* clang-format off */
static const struct option create_options[] = {
    { 0, "no-memory", OPTION_FLAG, AT(no_memory), NULL,   COMPLETE_NONE, "its files only, not its processes" },
};
static const struct option ls_options[] = {
    { 0, "json",      OPTION_FLAG, AT(json),      NULL,   COMPLETE_NONE, "as JSON" },
};

static int snapshot_create(int argc, char **argv);
static int snapshot_ls(int argc, char **argv);
static int snapshot_rm(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "create", .synopsis = "[OPTION…] SANDBOX", .summary = "save a running sandbox, which keeps running, and print the id",
      .options = create_options, .option_count = ARRAY_LEN(create_options), .operands = COMPLETE_SANDBOX, .run = snapshot_create },
    { .name = "ls", .synopsis = "[OPTION…]", .summary = "list snapshots",
      .options = ls_options, .option_count = ARRAY_LEN(ls_options), .run = snapshot_ls },
    { .name = "rm", .synopsis = "SNAPSHOT…", .summary = "remove snapshots; sandboxes that were made of them keep running",
      .run = snapshot_rm },
};

const struct verb snapshot_verb = {
    .name = "snapshot",
    .synopsis = "create|ls|rm …",
    .summary = "saved sandboxes, to make others of",
    .details = "'cove create --snapshot ID' makes a sandbox of one.",
    .command_at = 1,
    .run = verb_snapshot,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

int verb_snapshot(int argc, char **argv)
{
    return subverbs_run(&snapshot_verb, argc, argv);
}

/* ---- create ---- */

static int create(struct link *link, const char *name, bool memory, char ret_id[ID_LEN + 1],
                  struct err *err)
{
    struct keeper_sandbox sandbox;
    struct keeper_image image;

    return sandbox_get(link, name, &sandbox, err) < 0 || sandbox_new_id(ret_id, err) < 0
               ? -1
               : image_save(link, sandbox.id, ret_id, "", memory ? KEEPER_SAVE_MEMORY : 0, &image,
                            err);
}

static int snapshot_create(int argc, char **argv)
{
    struct snapshot_values values = { .json = false };
    char id[ID_LEN + 1];
    struct link link;
    struct err err;
    char **names;
    int count, code, r;

    code = subverb_parse(&snapshot_verb, "create", argc, argv, &values, "a sandbox", 1, 1, &names,
                         &count);
    if (code >= 0)
        return code;
    if (common_open(&link, &err) < 0)
        return report_error(&err);
    r = saved_resolve(&link, &names[0], &err);
    if (r == 0)
        r = create(&link, names[0], !values.no_memory, id, &err);
    link_close(&link);
    if (r < 0)
        return report_error(&err);
    printf("%s\n", id);
    return report_end(0);
}

/* ---- ls ---- */

static void put_json(struct json_out *json, const struct keeper_image *image)
{
    json_out_object(json, NULL);
    json_out_text(json, "id", image->id);
    json_out_text(json, "tenant", image->owner[0] ? image->owner : NULL);
    json_out_text(json, "sandbox", image->sandbox.id);
    json_out_text(json, "template", image->sandbox.template);
    json_out_bool(json, "memory", image->flags & KEEPER_IMAGE_MEMORY);
    json_out_number(json, "bytes", image->bytes);
    json_out_number(json, "created_ms", image->saved_ms);
    json_out_end(json);
}

static void put_row(struct table *table, const struct keeper_image *image)
{
    char text[32];

    table_cell(table, "%s", image->id);
    table_cell(table, "%s", image->owner[0] ? image->owner : "-");
    table_cell(table, "%s", image->sandbox.id);
    table_cell(table, "%s", image->sandbox.template);
    table_cell(table, "%s", image->flags & KEEPER_IMAGE_MEMORY ? "yes" : "no");
    table_cell(table, "%s", report_size(text, sizeof text, image->bytes));
    table_cell(table, "%s", subverb_when(text, sizeof text, image->saved_ms));
}

static void print(const struct keeper_image *images, size_t count, enum listing_form form)
{
    static const char *const headings[] = { "ID",     "TENANT", "SANDBOX", "TEMPLATE",
                                            "MEMORY", ">BYTES", "MADE" };
    struct listing l;

    listing_init(&l, form, ARRAY_LEN(headings), headings);
    for (size_t i = 0; i < count; i++) {
        if ((images[i].flags & KEEPER_IMAGE_PAUSED) || strcmp(images[i].owner, WARM_OWNER) == 0)
            continue;
        if (form == LISTING_JSON)
            put_json(&l.json, &images[i]);
        else
            put_row(&l.table, &images[i]);
    }
    (void) listing_end(&l, 0);
}

static int snapshot_ls(int argc, char **argv)
{
    struct snapshot_values values = { .json = false };
    auto_free struct keeper_image *images = NULL;
    auto_link struct link link = { .fd = -1 };
    struct err err;
    char **names;
    size_t count;
    int operands, code;

    code = subverb_parse(&snapshot_verb, "ls", argc, argv, &values, "", 0, 0, &names, &operands);
    if (code >= 0)
        return code;
    if (common_open(&link, &err) < 0 || saved_images(&link, &images, &count, &err) < 0)
        return report_error(&err);
    print(images, count, listing_form_of(values.json));
    return report_end(0);
}

/* ---- rm ---- */

static int remove_one(struct link *link, const char *name, void *context, struct err *err)
{
    struct keeper_image image;

    (void) context;
    return saved_snapshot(link, name, &image, err) < 0 ? -1 : image_drop(link, image.id, err);
}

static int snapshot_rm(int argc, char **argv)
{
    struct snapshot_values values = { .json = false };
    char **names;
    int count, code;

    code = subverb_parse(&snapshot_verb, "rm", argc, argv, &values, "a snapshot", 1, 1000, &names,
                         &count);
    return code >= 0 ? code : saved_each(&snapshot_verb, false, names, count, remove_one, NULL);
}
