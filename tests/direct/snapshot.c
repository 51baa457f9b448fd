/* Snapshots. One of a tenant's sandbox gets a record in the server's store, so that the tenant sees it and can name it;
 * one of a sandbox that the command line made is an image and nothing more. */
#include "base/own.h"
#include "cli/listing.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/substore.h"
#include "cli/subverbs.h"
#include "client/warm.h"
#include "direct/common.h"

#include <stdlib.h>
#include <string.h>

struct snapshot_values {
    const char *name;
    bool no_memory, json;
};

#define AT(field) offsetof(struct snapshot_values, field)

/* clang-format off */
static const struct option create_options[] = {
    { 0, "name",      OPTION_TEXT, AT(name),      "NAME", COMPLETE_NONE, "a name for it, unique in its tenant; not without a server" },
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

static int fill(struct store *store, const struct keeper_sandbox *sandbox,
                const struct snapshot_values *values, struct store_snapshot *ret, struct err *err)
{
    struct store_sandbox record;

    if (store_sandbox_get(store, NULL, sandbox->id, &record, err) < 0)
        return -1;
    memcpy(ret->tenant, record.tenant, sizeof ret->tenant);
    memcpy(ret->sandbox, record.id, sizeof ret->sandbox);
    memcpy(ret->template, record.template, sizeof ret->template);
    memcpy(ret->metadata, record.metadata, sizeof ret->metadata);
    (void) snprintf(ret->name, sizeof ret->name, "%s", values->name ? values->name : "");
    ret->created_ms = store_now_ms();
    ret->state = STORE_SNAPSHOT_MAKING;
    return 0;
}

static int save(struct link *link, const struct keeper_sandbox *sandbox,
                const struct store_snapshot *snapshot, struct keeper_image *ret, struct err *err)
{
    return image_save(link, sandbox->id, snapshot->id, snapshot->tenant,
                      snapshot->memory ? KEEPER_SAVE_MEMORY : 0, ret, err);
}

/* As the server does it: the record first. */
static int save_recorded(struct link *link, struct store *store,
                         const struct keeper_sandbox *sandbox, struct store_snapshot *snapshot,
                         struct err *err)
{
    auto_free char *env = NULL, *network = NULL;
    struct keeper_image image;
    struct err ignored;

    if (store_sandbox_env(store, sandbox->id, &env, err) < 0 ||
        store_network_get(store, sandbox->id, &network, err) < 0)
        return -1;
    snapshot->env = env;
    snapshot->network = network;
    if (store_snapshot_add(store, snapshot, err) < 0)
        return -1;
    if (save(link, sandbox, snapshot, &image, err) < 0) {
        (void) store_snapshot_remove(store, snapshot->id, &ignored);
        return -1;
    }
    snapshot->state = STORE_SNAPSHOT_READY;
    snapshot->bytes = image.bytes;
    return store_snapshot_ready(store, snapshot, err) < 0
               ? -1
               : subverb_audit(store, snapshot->tenant, "snapshot.create", snapshot->id, err);
}

static int create(struct link *link, const char *name, const struct snapshot_values *values,
                  char ret_id[ID_LEN + 1], struct err *err)
{
    struct store_snapshot snapshot = { .memory = !values->no_memory };
    struct keeper_sandbox sandbox;
    struct keeper_image image;
    struct store *store;
    bool recorded;
    int r;

    if (values->name && (!name_ok(values->name) || id_ok(values->name)))
        return err_set(err, ERR_INVALID,
                       "name: 1 to 63 of a-z, 0-9, '-', '_', '.', and not like an id");
    if (sandbox_get(link, name, &sandbox, err) < 0 || sandbox_new_id(snapshot.id, err) < 0 ||
        saved_store(&store, err) < 0)
        return -1;
    memcpy(ret_id, snapshot.id, sizeof snapshot.id);
    recorded = store && fill(store, &sandbox, values, &snapshot, err) == 0;
    if (recorded)
        r = save_recorded(link, store, &sandbox, &snapshot, err);
    else if (values->name)
        r = err_set(err, ERR_INVALID, "name: only a sandbox of the server's has named snapshots");
    else
        r = save(link, &sandbox, &snapshot, &image, err);
    store_close(store);
    return r;
}

static int snapshot_create(int argc, char **argv)
{
    struct snapshot_values values = { .name = NULL };
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
        r = create(&link, names[0], &values, id, &err);
    link_close(&link);
    if (r < 0)
        return report_error(&err);
    printf("%s\n", id);
    return report_end(0);
}

/* ---- ls ---- */

static void name_of(struct store *store, const char *id, char *out, size_t size)
{
    struct store_snapshot record;
    struct err ignored;

    out[0] = '\0';
    if (store && store_snapshot_get(store, NULL, id, &record, &ignored) == 0)
        (void) snprintf(out, size, "%s", record.name);
}

static void put_json(struct json_out *json, const struct keeper_image *image, const char *name)
{
    json_out_object(json, NULL);
    json_out_text(json, "id", image->id);
    json_out_text(json, "name", name[0] ? name : NULL);
    json_out_text(json, "tenant", image->owner[0] ? image->owner : NULL);
    json_out_text(json, "sandbox", image->sandbox.id);
    json_out_text(json, "template", image->sandbox.template);
    json_out_bool(json, "memory", image->flags & KEEPER_IMAGE_MEMORY);
    json_out_number(json, "bytes", image->bytes);
    json_out_number(json, "created_ms", image->saved_ms);
    json_out_end(json);
}

static void put_row(struct table *table, const struct keeper_image *image, const char *name)
{
    char text[32];

    table_cell(table, "%s", image->id);
    table_cell(table, "%s", name[0] ? name : "-");
    table_cell(table, "%s", image->owner[0] ? image->owner : "-");
    table_cell(table, "%s", image->sandbox.id);
    table_cell(table, "%s", image->sandbox.template);
    table_cell(table, "%s", image->flags & KEEPER_IMAGE_MEMORY ? "yes" : "no");
    table_cell(table, "%s", report_size(text, sizeof text, image->bytes));
    table_cell(table, "%s", subverb_when(text, sizeof text, image->saved_ms));
}

static void print(const struct keeper_image *images, size_t count, struct store *store,
                  enum listing_form form)
{
    static const char *const headings[] = { "ID",       "NAME",   "TENANT", "SANDBOX",
                                            "TEMPLATE", "MEMORY", ">BYTES", "MADE" };
    char name[STORE_NAME_MAX];
    struct listing l;

    listing_init(&l, form, ARRAY_LEN(headings), headings);
    for (size_t i = 0; i < count; i++) {
        if ((images[i].flags & KEEPER_IMAGE_PAUSED) || strcmp(images[i].owner, WARM_OWNER) == 0)
            continue;
        name_of(store, images[i].id, name, sizeof name);
        if (form == LISTING_JSON)
            put_json(&l.json, &images[i], name);
        else
            put_row(&l.table, &images[i], name);
    }
    (void) listing_end(&l, 0);
}

static int snapshot_ls(int argc, char **argv)
{
    struct snapshot_values values = { .name = NULL };
    auto_free struct keeper_image *images = NULL;
    auto_link struct link link = { .fd = -1 };
    auto_store struct store *store = NULL;
    struct err err;
    char **names;
    size_t count;
    int operands, code;

    code = subverb_parse(&snapshot_verb, "ls", argc, argv, &values, "", 0, 0, &names, &operands);
    if (code >= 0)
        return code;
    if (common_open(&link, &err) < 0 || saved_images(&link, &images, &count, &err) < 0 ||
        saved_store(&store, &err) < 0)
        return report_error(&err);
    print(images, count, store, listing_form_of(values.json));
    return report_end(0);
}

/* ---- rm ---- */

static int remove_one(struct link *link, const char *name, void *context, struct err *err)
{
    struct keeper_image image;
    struct store *store;
    int r;

    (void) context;
    if (saved_snapshot(link, name, &image, err) < 0 || image_drop(link, image.id, err) < 0 ||
        saved_store(&store, err) < 0)
        return -1;
    r = store ? store_snapshot_remove(store, image.id, err) : 0;
    if (store && r == 0 && image.owner[0])
        r = subverb_audit(store, image.owner, "snapshot.delete", image.id, err);
    store_close(store);
    return r;
}

static int snapshot_rm(int argc, char **argv)
{
    struct snapshot_values values = { .name = NULL };
    char **names;
    int count, code;

    code = subverb_parse(&snapshot_verb, "rm", argc, argv, &values, "a snapshot", 1, 1000, &names,
                         &count);
    return code >= 0 ? code : saved_each(&snapshot_verb, false, names, count, remove_one, NULL);
}
