#include "cli/template/template_show.h"

#include "base/own.h"
#include "cli/api/show.h"
#include "cli/listing.h"
#include "cli/records.h"
#include "cli/report.h"
#include "cli/subverbs.h"
#include "cli/template/template_built.h"
#include "template/recipe.h"
#include "template/template_store.h"
#include "template/tree.h"

#include <stdlib.h>
#include <string.h>

static void json_manifest(struct json_out *json, const char *name, const struct manifest *manifest,
                          bool is_default)
{
    json_out_text(json, "name", name);
    json_out_bool(json, "default", is_default);
    json_out_text(json, "kind", manifest_kind_name(manifest->kind));
    json_out_text(json, "description", manifest->description);
    json_out_text(json, "user", manifest->user);
    json_out_text(json, "workdir", manifest->workdir);
    json_out_array(json, "env");
    for (size_t i = 0; i < manifest->env_count; i++)
        json_out_text(json, NULL, manifest_env_at(manifest, i));
    json_out_end(json);
    if (manifest->kind == MANIFEST_IMAGE) {
        json_out_text(json, "image", manifest->image);
        json_out_text(json, "digest", manifest->digest);
        json_out_raw(json, "entrypoint", manifest->entrypoint[0] ? manifest->entrypoint : "[]");
        json_out_raw(json, "cmd", manifest->cmd[0] ? manifest->cmd : "[]");
        json_out_array(json, "layers");
        for (size_t i = 0; i < manifest_below_count(manifest); i++) {
            char key[65];

            manifest_below_at(manifest, i, key);
            json_out_text(json, NULL, key);
        }
        json_out_text(json, NULL, manifest->layer);
        json_out_end(json);
    }
    json_out_text(json, "recipe", manifest->recipe);
    json_out_number(json, "created", manifest->created);
    json_out_number(json, "bytes", manifest->bytes);
    json_out_number(json, "files", manifest->files);
}

/* NULL: it has no memory image, or no server runs that would know. */
static json_t *warm_of(json_t *records, const char *name)
{
    json_t *warm = json_object_get(records_find(records, name), "warm");

    return json_is_object(warm) ? warm : NULL;
}

static void entry_json(struct json_out *json, const struct template_entry *entry, bool is_default,
                       json_t *records)
{
    json_out_object(json, NULL);
    if (entry->problem.kind == ERR_NONE) {
        json_manifest(json, entry->name, &entry->manifest, is_default);
        if (records)
            json_out_bool(json, "warm", warm_of(records, entry->name) != NULL);
        else
            json_out_text(json, "warm", NULL);
    } else {
        json_out_text(json, "name", entry->name);
        json_out_text(json, "problem", entry->problem.msg);
    }
    json_out_end(json);
}

static void entry_row(struct table *table, const struct template_entry *entry, bool is_default,
                      json_t *records)
{
    const struct manifest *manifest = &entry->manifest;
    bool bad = entry->problem.kind != ERR_NONE;
    json_t *warm = warm_of(records, entry->name);
    char text[32];

    table_cell(table, "%s", entry->name);
    table_cell(table, "%s", is_default ? "default" : "");
    table_cell(table, "-");
    table_cell(table, "%s", bad ? "broken" : manifest_kind_name(manifest->kind));
    table_cell(table, "%s", report_size(text, sizeof text, manifest->bytes));
    table_cell(table, "%llu", (unsigned long long) manifest->files);
    table_cell(table, "%s", subverb_when(text, sizeof text, manifest->created * 1000));
    table_cell(table, "%s",
               warm ? report_size(text, sizeof text, show_number(warm, "bytes")) : "-");
    table_cell(table, "%s", bad ? entry->problem.msg : manifest->description);
}

/* Of a server elsewhere the names alone are known. */
static void installed(struct listing *l, const char *name, const char *chosen)
{
    bool is_default = strcmp(name, chosen) == 0;

    if (l->form == LISTING_JSON) {
        json_out_object(&l->json, NULL);
        json_out_text(&l->json, "name", name);
        json_out_bool(&l->json, "default", is_default);
        json_out_text(&l->json, "kind", "installed");
        json_out_end(&l->json);
        return;
    }
    table_cell(&l->table, "%s", name);
    table_cell(&l->table, "%s", is_default ? "default" : "");
    table_cell(&l->table, "-");
    table_cell(&l->table, "installed");
    for (int i = 0; i < 5; i++)
        table_cell(&l->table, "%s", i < 4 ? "-" : "");
}

/* What there is on this host. */
struct files {
    struct template_entry *list;
    size_t count;
    const char *chosen; /* the default */
};

static int look(struct files *ret, struct err *err)
{
    auto_close int store_fd = -1;

    *ret = (struct files){ .list = NULL };
    /* No state, no templates: an empty list is the answer, not an error. */
    if (template_store_look(report_state(), &store_fd, err) < 0)
        return err->kind == ERR_NO_TEMPLATE ? 0 : -1;
    ret->chosen = template_default(store_fd);
    return template_list(store_fd, &ret->list, &ret->count, err);
}

static void list_files(struct listing *l, const struct files *files)
{
    json_t *records = NULL;
    struct err ignored;

    if (files->count > 0)
        (void) records_templates(&records, &ignored);
    for (size_t i = 0; i < files->count; i++) {
        bool is_default = files->chosen && strcmp(files->list[i].name, files->chosen) == 0;

        if (l->form == LISTING_JSON)
            entry_json(&l->json, &files->list[i], is_default, records);
        else
            entry_row(&l->table, &files->list[i], is_default, records);
    }
    json_decref(records);
}

static void list_served(struct listing *l, json_t *answer, bool all)
{
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(answer, "installed"), i, item)
    {
        if (all && json_is_string(item))
            installed(l, json_string_value(item), show_text(answer, "default"));
    }
    json_array_foreach(json_object_get(answer, "templates"), i, item)
    {
        if (l->form == LISTING_JSON)
            built_json(&l->json, item);
        else
            built_rows(&l->table, item);
    }
}

int template_show_all(bool as_json, const char *tenant)
{
    static const char *const headings[] = { "TEMPLATE", "",        "TAG",   "KIND",       ">SIZE",
                                            ">FILES",   "CREATED", ">WARM", "DESCRIPTION" };
    struct files files = { .list = NULL };
    struct err err = { 0 }, ignored;
    json_t *answer = NULL;
    struct listing l;
    int served = built_by_server(tenant, &err), r = served < 0 ? -1 : 0;

    if (served == 0) {
        r = look(&files, &err);
        /* A user who may not read the files is answered by the server. */
        served = r < 0 && err.kind == ERR_DENIED;
    }
    if (served > 0)
        r = built_list(&answer, &err);
    else if (r == 0 && records_server(&ignored) == 0)
        (void) built_list(&answer, &ignored); /* while it is down, they are not known */
    if (r < 0)
        return report_error(&err);
    listing_init(&l, listing_form_of(as_json), ARRAY_LEN(headings), headings);
    list_files(&l, &files);
    list_served(&l, answer, served > 0);
    json_decref(answer);
    free(files.list);
    (void) listing_end(&l, 0);
    return report_end(0);
}

int template_show_recipes(bool as_json)
{
    static const char *const headings[] = { "TEMPLATE", ">SPACE", "DESCRIPTION" };
    struct listing l;
    char size[32];

    listing_init(&l, listing_form_of(as_json), ARRAY_LEN(headings), headings);
    for (size_t i = 0; i < recipe_count; i++) {
        const struct recipe *recipe = &recipes[i];
        uint64_t space = (uint64_t) recipe->free_mib << 20;

        if (as_json) {
            json_out_object(&l.json, NULL);
            json_out_text(&l.json, "name", recipe->name);
            json_out_text(&l.json, "description", recipe->description);
            json_out_number(&l.json, "space_bytes", space);
            json_out_end(&l.json);
            continue;
        }
        table_cell(&l.table, "%s", recipe->name);
        table_cell(&l.table, "%s", report_size(size, sizeof size, space));
        table_cell(&l.table, "%s", recipe->description);
    }
    (void) listing_end(&l, 0);
    return report_end(0);
}

struct inspected {
    const char *name;
    struct manifest manifest;
    bool is_default;
    char path[4096];
    struct tree_size size;
    size_t users;
    bool users_known, up_to_date, has_recipe;
    json_t *records;        /* owned; NULL: no server to ask */
    json_t *warm, *network; /* borrowed of it; NULL: none */
};

/* An image's files that others may have, too. */
static int add_below(int template_fd, struct inspected *it, struct err *err)
{
    for (size_t i = 0; i < manifest_below_count(&it->manifest); i++) {
        char file[TEMPLATE_BELOW_NAME];
        struct tree_size size;

        template_below_name(file, it->manifest.root, i);
        if (tree_measure(template_fd, file, &size, err) < 0)
            return -1;
        it->size.bytes += size.bytes;
        it->size.files += size.files;
    }
    return 0;
}

static int look_at(const char *name, struct inspected *ret, struct err *err)
{
    auto_close int store_fd = -1, template_fd = -1;
    const struct recipe *recipe = recipe_find(name);
    const char *chosen;
    char hash[RECIPE_HASH_MAX] = "";
    struct err ignored;

    if (template_store_look(report_state(), &store_fd, err) < 0 ||
        template_find(store_fd, name, &ret->manifest, &template_fd, err) < 0 ||
        tree_measure(template_fd, ret->manifest.root, &ret->size, err) < 0 ||
        add_below(template_fd, ret, err) < 0)
        return -1;
    chosen = template_default(store_fd);
    ret->name = name;
    ret->is_default = chosen && strcmp(chosen, name) == 0;
    (void) snprintf(ret->path, sizeof ret->path, "%.3800s/templates/%s/%s", report_state(), name,
                    ret->manifest.root);
    ret->users_known = template_users(report_state(), name, &ret->users, &ignored) == 0;
    if (recipe)
        recipe_hash(recipe, hash);
    ret->has_recipe = recipe != NULL;
    if (records_templates(&ret->records, &ignored) == 0) {
        ret->warm = warm_of(ret->records, name);
        ret->network = json_object_get(records_find(ret->records, name), "network");
    }
    ret->up_to_date = recipe && strcmp(hash, ret->manifest.recipe) == 0;
    return 0;
}

static void inspect_json(const struct inspected *it)
{
    auto_free char *network = it->network ? json_dumps(it->network, JSON_ENCODE_ANY) : NULL;
    struct json_out json;

    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_manifest(&json, it->name, &it->manifest, it->is_default);
    json_out_text(&json, "path", it->path);
    json_out_number(&json, "bytes_now", it->size.bytes);
    json_out_number(&json, "files_now", it->size.files);
    if (it->users_known)
        json_out_number(&json, "sandboxes", it->users);
    else
        json_out_text(&json, "sandboxes", NULL);
    if (it->has_recipe)
        json_out_bool(&json, "up_to_date", it->up_to_date);
    json_out_raw(&json, "network", network ? network : "null");
    if (it->warm) {
        static const char *const texts[] = { "image", "start", "ready", "import" };

        json_out_object(&json, "warm");
        json_out_number(&json, "bytes", show_number(it->warm, "bytes"));
        json_out_number(&json, "made_ms", show_time(it->warm, "made_at"));
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
            json_out_text(&json, texts[i], show_text(it->warm, texts[i]));
        json_out_end(&json);
    }
    json_out_end(&json);
    (void) json_out_finish(&json);
}

static void show_word(const char *heading, json_t *json, const char *name)
{
    auto_free char *safe = report_safe(show_text(json, name));

    if (safe && safe[0])
        (void) printf("%-13s%s\n", heading, safe);
}

static void show_records(const struct inspected *it)
{
    auto_free char *network = json_is_object(it->network) ? json_dumps(it->network, 0) : NULL;
    char size[32], date[32];

    if (!it->records)
        (void) printf(
            "network      unknown: no server to ask\nwarm         unknown: no server to ask\n");
    if (network)
        (void) printf("network      %s\n", network);
    if (!it->warm)
        return;
    (void) printf("warm         %s, made %s\n",
                  report_size(size, sizeof size, show_number(it->warm, "bytes")),
                  subverb_when(date, sizeof date, show_time(it->warm, "made_at")));
    show_word("start", it->warm, "start");
    show_word("ready", it->warm, "ready");
    show_word("import", it->warm, "import");
}

/* The lowest first: what two templates have in common begins alike. */
static void show_layers(const struct manifest *manifest)
{
    size_t count = manifest_below_count(manifest);

    for (size_t i = 0; i < count; i++) {
        char key[65];

        manifest_below_at(manifest, i, key);
        (void) printf("%-13s%s\n", i == 0 ? "layers" : "", key);
    }
    (void) printf("%-13s%s\n", count == 0 ? "layers" : "", manifest->layer);
}

static void inspect_text(const struct inspected *it)
{
    const struct manifest *manifest = &it->manifest;
    char size[32], date[32];

    (void) printf("template     %s%s\n", it->name, it->is_default ? " (default)" : "");
    (void) printf("description  %s\n", manifest->description);
    (void) printf("kind         %s\n", manifest_kind_name(manifest->kind));
    (void) printf("path         %s\n", it->path);
    (void) printf("size         %s in %llu files\n", report_size(size, sizeof size, it->size.bytes),
                  (unsigned long long) it->size.files);
    (void) printf("created      %s\n", subverb_when(date, sizeof date, manifest->created * 1000));
    if (manifest->kind == MANIFEST_IMAGE)
        (void) printf("image        %s\ndigest       %s\nentrypoint   %s\ncmd          %s\n",
                      manifest->image, manifest->digest[0] ? manifest->digest : "unknown",
                      manifest->entrypoint, manifest->cmd);
    if (manifest->kind == MANIFEST_IMAGE)
        show_layers(manifest);
    else
        (void) printf("recipe       %s%s\n", manifest->recipe,
                      !it->has_recipe  ? ""
                      : it->up_to_date ? " (current)"
                                       : " (an older one: 'cove template build' rebuilds it)");
    (void) printf("user         %s\n", manifest->user);
    (void) printf("workdir      %s\n", manifest->workdir);
    for (size_t i = 0; i < manifest->env_count; i++)
        (void) printf("env          %s\n", manifest_env_at(manifest, i));
    show_records(it);
    if (it->users_known)
        (void) printf("sandboxes    %zu\n", it->users);
    else
        (void) printf("sandboxes    unknown: no keeper to ask\n");
}

static int show_file(const char *name, bool as_json, struct err *err)
{
    auto_free struct inspected *it = calloc(1, sizeof *it);

    if (!it)
        return err_set(err, ERR_NO_MEMORY, "no memory");
    if (look_at(name, it, err) < 0)
        return -1;
    (as_json ? inspect_json : inspect_text)(it);
    json_decref(it->records);
    return 0;
}

int template_show_one(const char *name, bool as_json, const char *tenant)
{
    struct err err = { 0 }, theirs;
    int served = built_by_server(tenant, &err), r = -1;

    if (served > 0)
        r = built_show(name, as_json, &err);
    else if (served == 0)
        r = show_file(name, as_json, &err);
    if (served == 0 && r < 0 && (err.kind == ERR_NO_TEMPLATE || err.kind == ERR_DENIED) &&
        records_server(&theirs) == 0)
        r = built_show(name, as_json, err.kind == ERR_DENIED ? &err : &theirs);
    return r < 0 ? report_error(&err) : report_end(0);
}
