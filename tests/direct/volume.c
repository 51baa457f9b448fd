/* volume.c - `cove volume`, and what --volume means.
 *
 * The keeper knows volumes by ids; their names and tenants are in the server's store, where the command line looks
 * them up as the server does. Both are always changed in the same order: a new volume is in the store before it is at the
 * keeper, an old one stays there until the keeper has removed it, so that no image is ever without a name. */
#include "direct/volume.h"

#include "base/own.h"
#include "cli/common.h"
#include "cli/listing.h"
#include "cli/report.h"
#include "cli/subverbs.h"
#include "client/volume.h"
#include "direct/substore.h"

#include <inttypes.h>
#include <string.h>

#define SIZE_DEFAULT (1024 * VOLUME_MIB)

struct volume_values {
    const char *tenant;
    uint64_t bytes, inodes;
    bool json, all;
};

#define AT(field) offsetof(struct volume_values, field)

/* clang-format off */
static const struct option create_options[] = {
    { 0, "size",   OPTION_SIZE,   AT(bytes),  "SIZE", COMPLETE_NONE, "what it can hold, its file system included (1g)" },
    { 0, "inodes", OPTION_NUMBER, AT(inodes), "N",    COMPLETE_NONE, "files and directories it can hold (one per 16k)" },
    { 0, "tenant", OPTION_TEXT,   AT(tenant), "NAME", COMPLETE_NONE, "whose it is (local)" },
};
static const struct option ls_options[] = {
    { 0, "tenant", OPTION_TEXT, AT(tenant), "NAME", COMPLETE_NONE, "whose they are (local)" },
    { 0, "all",    OPTION_FLAG, AT(all),    NULL,   COMPLETE_NONE, "of all tenants" },
    { 0, "json",   OPTION_FLAG, AT(json),   NULL,   COMPLETE_NONE, "as JSON" },
};
static const struct option rm_options[] = {
    { 0, "tenant", OPTION_TEXT, AT(tenant), "NAME", COMPLETE_NONE, "whose they are (local)" },
};

static int volume_create(int argc, char **argv);
static int volume_ls(int argc, char **argv);
static int volume_rm(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "create", .synopsis = "[OPTION…] NAME", .summary = "make a volume",
      .options = create_options, .option_count = ARRAY_LEN(create_options), .run = volume_create },
    { .name = "ls", .synopsis = "[OPTION…]", .summary = "list volumes, what they hold and who has them",
      .options = ls_options, .option_count = ARRAY_LEN(ls_options), .run = volume_ls },
    { .name = "rm", .synopsis = "[OPTION…] NAME…", .summary = "remove volumes that no sandbox has, and all that is in them",
      .options = rm_options, .option_count = ARRAY_LEN(rm_options), .run = volume_rm },
};

const struct verb volume_verb = {
    .name = "volume",
    .synopsis = "create|ls|rm …",
    .summary = "directories that outlive sandboxes",
    .details =
        "A volume is mounted when a sandbox is made: 'cove run --volume NAME:/path' to write,\n"
        "'NAME:/path:ro' to read. One sandbox at a time writes to it, any number read.",
    .command_at = 1,
    .run = verb_volume,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

static const struct volume_values presets = { .tenant = STORE_LOCAL_TENANT, .bytes = SIZE_DEFAULT };

static int fill(const struct volume_values *values, const char *name, struct store_volume *ret,
                struct err *err)
{
    *ret = (struct store_volume){ .bytes = volume_round(values->bytes),
                                  .inodes = values->inodes,
                                  .created_ms = store_now_ms() };
    if (!ret->inodes)
        ret->inodes = volume_inodes_default(ret->bytes);
    if (!name_ok(name) || !name_ok(values->tenant))
        return err_set(err, ERR_INVALID, "a volume's name is a-z, 0-9, inner '-', '_', '.'");
    (void) snprintf(ret->name, sizeof ret->name, "%s", name);
    (void) snprintf(ret->tenant, sizeof ret->tenant, "%s", values->tenant);
    return volume_size_check(ret->bytes, ret->inodes, err) < 0 ? -1 : volume_new_id(ret->id, err);
}

static int volume_create(int argc, char **argv)
{
    auto_link struct link link = { .fd = -1 };
    auto_store struct store *store = NULL;
    struct volume_values values = presets;
    struct store_volume volume;
    struct err err = { 0 };
    char **names;
    int count, code;

    code = subverb_parse(&volume_verb, "create", argc, argv, &values, "the volume's name", 1, 1,
                         &names, &count);
    if (code >= 0)
        return code;
    if (fill(&values, names[0], &volume, &err) < 0 || common_open(&link, &err) < 0 ||
        subverb_store(&store, &err) < 0 || store_volume_add(store, &volume, &err) < 0)
        return report_error(&err);
    if (volume_make(&link, volume.id, volume.bytes, volume.inodes, &err) < 0) {
        (void) store_volume_remove(store, volume.id, &(struct err){ 0 });
        return report_error(&err);
    }
    if (subverb_audit(store, volume.tenant, "volume.create", volume.name, &err) < 0)
        return report_error(&err);
    return report_end(0);
}

/* ---- removing ---- */

static int refuse_user(void *arg, const struct store_volume_use *use, struct err *err)
{
    (void) arg;
    return err_set(err, ERR_VOLUME_BUSY, "volume '%s' is in use by sandbox '%s'", use->name,
                   use->sandbox);
}

static int remove_one(struct store *store, struct link *link, const char *tenant, const char *name,
                      struct err *err)
{
    struct store_volume volume;

    /* A sandbox that sleeps on disk has its volumes, too, and the keeper knows nothing of it. */
    if (store_volume_get(store, tenant, name, &volume, err) < 0 ||
        store_volume_users(store, volume.id, refuse_user, NULL, err) < 0)
        return -1;
    if (volume_drop(link, volume.id, err) < 0 && err->kind != ERR_NO_VOLUME)
        return -1;
    return store_volume_remove(store, volume.id, err) < 0
               ? -1
               : subverb_audit(store, tenant, "volume.remove", volume.name, err);
}

static int volume_rm(int argc, char **argv)
{
    auto_link struct link link = { .fd = -1 };
    auto_store struct store *store = NULL;
    struct volume_values values = presets;
    struct err err = { 0 };
    char **names;
    int count, code;

    code = subverb_parse(&volume_verb, "rm", argc, argv, &values, "the volume's name", 1, INT32_MAX,
                         &names, &count);
    if (code >= 0)
        return code;
    if (common_open(&link, &err) < 0 || subverb_store(&store, &err) < 0)
        return report_error(&err);
    code = 0;
    for (int i = 0; i < count; i++)
        if (remove_one(store, &link, values.tenant, names[i], &err) < 0)
            code = report_error(&err);
    return report_end(code);
}

/* ---- listing ---- */

struct volumes {
    struct volume_info *kept; /* what the keeper knows of them */
    size_t kept_count;
    struct listing listing;
};

static const struct volume_info *find_kept(const struct volumes *v, const char *id)
{
    static const struct volume_info none;

    for (size_t i = 0; i < v->kept_count; i++)
        if (strcmp(v->kept[i].id, id) == 0)
            return &v->kept[i];
    return &none;
}

static void put_json(struct json_out *json, const struct store_volume *volume,
                     const struct volume_info *kept)
{
    json_out_object(json, NULL);
    json_out_text(json, "id", volume->id);
    json_out_text(json, "name", volume->name);
    json_out_text(json, "tenant", volume->tenant);
    json_out_number(json, "size", volume->bytes);
    json_out_number(json, "inodes", volume->inodes);
    json_out_number(json, "stored_bytes", kept->stored);
    json_out_number(json, "readers", kept->readers);
    json_out_number(json, "writers", kept->writers);
    json_out_number(json, "created_ms", volume->created_ms);
    json_out_end(json);
}

static void put_row(struct table *table, const struct store_volume *volume,
                    const struct volume_info *kept)
{
    char text[32];

    table_cell(table, "%s", volume->name);
    table_cell(table, "%s", volume->tenant);
    table_cell(table, "%s", report_size(text, sizeof text, volume->bytes));
    table_cell(table, "%s", report_size(text, sizeof text, kept->stored));
    table_cell(table, "%u", kept->writers);
    table_cell(table, "%u", kept->readers);
    table_cell(table, "%s", subverb_when(text, sizeof text, volume->created_ms));
}

static int list_one(void *arg, const struct store_volume *volume, struct err *err)
{
    struct volumes *v = arg;

    (void) err;
    if (v->listing.form == LISTING_JSON)
        put_json(&v->listing.json, volume, find_kept(v, volume->id));
    else
        put_row(&v->listing.table, volume, find_kept(v, volume->id));
    return 0;
}

static int list_all(struct store *store, struct link *link, const struct volume_values *values,
                    struct volumes *v, struct err *err)
{
    auto_free struct volume_info *kept = NULL;

    if (volume_list(link, NULL, &kept, &v->kept_count, err) < 0)
        return -1;
    v->kept = kept;
    return store_volume_list(store, values->all ? NULL : values->tenant, list_one, v, err);
}

static int volume_ls(int argc, char **argv)
{
    static const char *const headings[] = { "VOLUME",   "TENANT",   ">SIZE",  ">STORED",
                                            ">WRITERS", ">READERS", "CREATED" };
    auto_link struct link link = { .fd = -1 };
    auto_store struct store *store = NULL;
    struct volume_values values = presets;
    struct volumes v = { .kept = NULL };
    struct err err = { 0 };
    char **names;
    int count, code;

    code = subverb_parse(&volume_verb, "ls", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (common_open(&link, &err) < 0 || subverb_store(&store, &err) < 0)
        return report_error(&err);
    listing_init(&v.listing, listing_form_of(values.json), ARRAY_LEN(headings), headings);
    if (listing_end(&v.listing, list_all(store, &link, &values, &v, &err)) < 0)
        return report_error(&err);
    return report_end(0);
}

int verb_volume(int argc, char **argv)
{
    subverb_product(argv);
    return subverbs_run(&volume_verb, argc, argv);
}

/* ---- --volume ---- */

struct wish {
    char tenant[STORE_TENANT_MAX], name[STORE_NAME_MAX];
};

/* "[TENANT/]NAME:/path[:ro|:rw]" */
static int parse_wish(const char *text, struct wish *wish, struct volume_use *use, struct err *err)
{
    const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
    const char *name = slash && slash < colon ? slash + 1 : text;
    const char *path = colon ? colon + 1 : "";
    size_t len = strlen(path), name_len = colon ? (size_t) (colon - name) : 0;
    size_t tenant_len = name > text ? (size_t) (name - 1 - text) : 0;

    if (len > 3 && (strcmp(path + len - 3, ":ro") == 0 || strcmp(path + len - 3, ":rw") == 0)) {
        use->flags = path[len - 1] == 'o' ? VOLUME_READ_ONLY : 0;
        len -= 3;
    }
    if (!colon || name_len == 0 || name_len >= sizeof wish->name ||
        tenant_len >= sizeof wish->tenant || len >= sizeof use->path)
        return err_set(err, ERR_USAGE, "--volume: '%.60s' is not NAME:/path or NAME:/path:ro",
                       text);
    (void) snprintf(wish->name, sizeof wish->name, "%.*s", (int) name_len, name);
    (void) snprintf(wish->tenant, sizeof wish->tenant, "%.*s",
                    tenant_len ? (int) tenant_len : (int) strlen(STORE_LOCAL_TENANT),
                    tenant_len ? text : STORE_LOCAL_TENANT);
    memcpy(use->path, path, len);
    return volume_path_check(use->path, err) < 0 ? err_wrap(err, "--volume") : 0;
}

int volume_wishes(const struct option_list *list, struct volume_use ret[VOLUMES_MAX],
                  struct err *err)
{
    auto_store struct store *store = NULL;
    int r = 0;

    memset(ret, 0, VOLUMES_MAX * sizeof ret[0]);
    if (list->count == 0)
        return 0;
    if (list->count > VOLUMES_MAX)
        return err_set(err, ERR_USAGE, "--volume: at most %d", VOLUMES_MAX);
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        struct store_volume volume;
        struct wish wish;

        r = parse_wish(list->items[i], &wish, &ret[i], err);
        if (r == 0 && !store)
            r = subverb_store(&store, err);
        if (r == 0)
            r = store_volume_get(store, wish.tenant, wish.name, &volume, err);
        if (r == 0)
            (void) snprintf(ret[i].volume, sizeof ret[i].volume, "%s", volume.id);
    }
    return r;
}
