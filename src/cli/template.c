#include "base/json.h"
#include "base/own.h"
#include "cli/recipe.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/template_build.h"
#include "cli/template_host.h"
#include "cli/template_network.h"
#include "cli/template_store.h"
#include "cli/tree.h"
#include "cli/verbs.h"

#include <string.h>
#include <time.h>

struct template_values {
    bool json;
    bool rebuild;
    bool no_cache;
    struct network_values network;
};

#define AT(field) offsetof(struct template_values, field)

static const struct option json_option[] = {
    { 0, "json", OPTION_FLAG, AT(json), NULL, COMPLETE_NONE, "as JSON" },
};

static const struct option set_options[] = {
    NETWORK_OPTIONS(AT(network)),
};

static const struct option build_options[] = {
    /* clang-format off */
    { 0, "rebuild",  OPTION_FLAG, AT(rebuild),  NULL, COMPLETE_NONE, "from packages, though it is there already" },
    { 0, "no-cache", OPTION_FLAG, AT(no_cache), NULL, COMPLETE_NONE, "neither use nor fill the cache" },
    { 0, "json",     OPTION_FLAG, AT(json),     NULL, COMPLETE_NONE, "as JSON" },
    /* clang-format on */
};

static const char *when(char *out, size_t size, uint64_t seconds)
{
    time_t t = (time_t) seconds;
    struct tm tm;

    if (seconds == 0 || !localtime_r(&t, &tm) || strftime(out, size, "%Y-%m-%d %H:%M", &tm) == 0)
        (void) snprintf(out, size, "-");
    return out;
}

static void json_manifest(struct json *json, const char *name, const struct manifest *manifest,
                          bool is_default)
{
    json_text(json, "name", name);
    json_bool(json, "default", is_default);
    json_text(json, "kind", manifest_kind_name(manifest->kind));
    json_text(json, "description", manifest->description);
    json_text(json, "user", manifest->user);
    json_text(json, "workdir", manifest->workdir);
    json_array(json, "env");
    for (size_t i = 0; i < manifest->env_count; i++)
        json_text(json, NULL, manifest->env[i]);
    json_end(json);
    json_text(json, "recipe", manifest->recipe);
    json_number(json, "created", manifest->created);
    json_number(json, "bytes", manifest->bytes);
    json_number(json, "files", manifest->files);
}

static int ls_json(const struct template_entry *list, size_t count, const char *preset)
{
    struct json json;

    json_init(&json, stdout);
    json_array(&json, NULL);
    for (size_t i = 0; i < count; i++) {
        bool is_default = preset && strcmp(list[i].name, preset) == 0;

        json_object(&json, NULL);
        if (list[i].problem.kind == ERR_NONE) {
            json_manifest(&json, list[i].name, &list[i].manifest, is_default);
        } else {
            json_text(&json, "name", list[i].name);
            json_text(&json, "problem", list[i].problem.msg);
        }
        json_end(&json);
    }
    json_end(&json);
    (void) json_finish(&json);
    return report_end(0);
}

static int ls_table(const struct template_entry *list, size_t count, const char *preset)
{
    static const char *const headings[] = { "TEMPLATE", "",        "KIND",       ">SIZE",
                                            ">FILES",   "CREATED", "DESCRIPTION" };
    struct table table;
    char size[32], date[32];

    table_init(&table, ARRAY_LEN(headings), headings);
    for (size_t i = 0; i < count; i++) {
        const struct manifest *manifest = &list[i].manifest;
        bool bad = list[i].problem.kind != ERR_NONE;

        table_cell(&table, "%s", list[i].name);
        table_cell(&table, "%s", preset && strcmp(list[i].name, preset) == 0 ? "default" : "");
        table_cell(&table, "%s", bad ? "broken" : manifest_kind_name(manifest->kind));
        table_cell(&table, "%s", report_size(size, sizeof size, manifest->bytes));
        table_cell(&table, "%llu", (unsigned long long) manifest->files);
        table_cell(&table, "%s", when(date, sizeof date, manifest->created));
        table_cell(&table, "%s", bad ? list[i].problem.msg : manifest->description);
    }
    (void) table_print(&table, stdout);
    table_done(&table);
    return report_end(0);
}

static int template_ls(const struct template_values *values, char **names, int count)
{
    auto_free struct template_entry *list = NULL;
    auto_close int store_fd = -1;
    struct err err = { 0 };
    size_t found = 0;
    const char *preset;

    (void) names;
    (void) count;
    /* No state, no templates: an empty list is the answer, not an error. */
    if (template_store_look(report_state(), &store_fd, &err) < 0 && err.kind != ERR_NO_TEMPLATE)
        return report_error(&err);
    if (store_fd >= 0 && template_list(store_fd, &list, &found, &err) < 0)
        return report_error(&err);
    preset = store_fd >= 0 ? template_default(store_fd) : NULL;
    return values->json ? ls_json(list, found, preset) : ls_table(list, found, preset);
}

static void say_built(const char *name, const struct template_build_result *result)
{
    char size[32], span[32];

    if (result->was_there)
        (void) printf("%s is there already (--rebuild makes it from today's packages)\n", name);
    else
        (void) printf("%s is ready: %s in %llu files, %s in %s\n", name,
                      report_size(size, sizeof size, result->bytes),
                      (unsigned long long) result->files,
                      result->from_cache ? "from the cache" : "from packages",
                      report_span(span, sizeof span, result->wall_ms));
}

static void json_built(const char *name, const struct template_build_result *result)
{
    struct json json;

    json_init(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "name", name);
    json_bool(&json, "was_there", result->was_there);
    json_bool(&json, "from_cache", result->from_cache);
    json_number(&json, "bytes", result->bytes);
    json_number(&json, "files", result->files);
    json_number(&json, "wall_ms", result->wall_ms);
    json_end(&json);
    (void) json_finish(&json);
}

static int build_host(bool rebuild)
{
    struct err err = { 0 };
    int r = rebuild ? template_host_rebuild(report_state(), &err)
                    : template_host_ensure(report_state(), &err);

    if (r < 0)
        return report_error(&err);
    (void) printf("host is ready\n");
    return 0;
}

static int build_one(const struct template_values *values, const char *name)
{
    const struct template_build_options options = { .rebuild = values->rebuild,
                                                    .no_cache = values->no_cache };
    const struct recipe *recipe = recipe_find(name);
    struct template_build_result result = { 0 };
    struct err err = { 0 };

    if (strcmp(name, "host") == 0)
        return build_host(values->rebuild);
    if (!recipe) {
        err_set(&err, ERR_NO_TEMPLATE, "there is no recipe for a template '%.60s'", name);
        return report_error(&err);
    }
    if (template_build(report_state(), recipe, &options, &result, &err) < 0) {
        int code = report_error(&err);

        return result.signal ? 128 + result.signal : code;
    }
    if (values->json)
        json_built(name, &result);
    else
        say_built(name, &result);
    return 0;
}

static int template_make(const struct template_values *values, char **names, int count)
{
    if (count == 0) {
        (void) printf("Templates that can be built:\n");
        (void) printf("  %-20s the host's own programs, read-only (made by itself)\n", "host");
        for (size_t i = 0; i < recipe_count; i++)
            (void) printf("  %-20s %s\n", recipes[i].name, recipes[i].description);
        return report_end(0);
    }
    for (int i = 0; i < count; i++) {
        int code = build_one(values, names[i]);

        if (code != 0)
            return code;
    }
    return report_end(0);
}

static int rm_one(int store_fd, const char *name, struct err *err)
{
    auto_close int lock_fd = -1;
    struct manifest manifest;

    /* One with a broken manifest can go, too. */
    if (template_find(store_fd, name, &manifest, NULL, err) < 0 && err->kind == ERR_NO_TEMPLATE)
        return -1;
    if (template_lock(store_fd, name, &lock_fd, err) < 0)
        return -1;
    return template_remove(report_state(), store_fd, name, err) < 0
               ? -1
               : template_network_forget(name, err);
}

static int template_set(const struct template_values *values, char **names, int count)
{
    auto_close int store_fd = -1;
    struct manifest manifest;
    struct err err = { 0 };

    if (count != 1) {
        err_set(&err, ERR_USAGE, "template set: name one template (see 'cove template ls')");
        return report_error(&err);
    }
    if (template_store_look(report_state(), &store_fd, &err) < 0 ||
        template_find(store_fd, names[0], &manifest, NULL, &err) < 0 ||
        template_network_set(names[0], &values->network, &err) < 0)
        return report_error(&err);
    return report_end(0);
}

static int template_rm(const struct template_values *values, char **names, int count)
{
    auto_close int store_fd = -1;
    struct err err = { 0 };
    int code = 0;

    (void) values;
    if (count == 0) {
        err_set(&err, ERR_USAGE, "template rm: which template? (see 'cove template ls')");
        return report_error(&err);
    }
    if (template_store_look(report_state(), &store_fd, &err) < 0)
        return report_error(&err);
    for (int i = 0; i < count; i++)
        if (rm_one(store_fd, names[i], &err) < 0)
            code = report_error(&err);
    return code;
}

struct inspected {
    const char *name;
    struct manifest manifest;
    bool is_default;
    char path[4096];
    struct tree_size size;
    size_t users;
    bool users_known, up_to_date, has_recipe;
};

static int look_at(const char *name, struct inspected *ret, struct err *err)
{
    auto_close int store_fd = -1, template_fd = -1;
    const struct recipe *recipe = recipe_find(name);
    const char *preset;
    char hash[RECIPE_HASH_MAX] = "";
    struct err ignored;

    if (template_store_look(report_state(), &store_fd, err) < 0 ||
        template_find(store_fd, name, &ret->manifest, &template_fd, err) < 0 ||
        tree_measure(template_fd, ret->manifest.root, &ret->size, err) < 0)
        return -1;
    preset = template_default(store_fd);
    ret->name = name;
    ret->is_default = preset && strcmp(preset, name) == 0;
    (void) snprintf(ret->path, sizeof ret->path, "%.3800s/templates/%s/%s", report_state(), name,
                    ret->manifest.root);
    ret->users_known = template_users(report_state(), name, &ret->users, &ignored) == 0;
    if (recipe)
        recipe_hash(recipe, hash);
    ret->has_recipe = recipe != NULL;
    ret->up_to_date = recipe && strcmp(hash, ret->manifest.recipe) == 0;
    return 0;
}

static int inspect_json(const struct inspected *it)
{
    auto_free char *network = template_network_get(it->name);
    struct json json;

    json_init(&json, stdout);
    json_object(&json, NULL);
    json_manifest(&json, it->name, &it->manifest, it->is_default);
    json_text(&json, "path", it->path);
    json_number(&json, "bytes_now", it->size.bytes);
    json_number(&json, "files_now", it->size.files);
    if (it->users_known)
        json_number(&json, "sandboxes", it->users);
    else
        json_text(&json, "sandboxes", NULL);
    if (it->has_recipe)
        json_bool(&json, "up_to_date", it->up_to_date);
    json_raw(&json, "network", network ? network : "null");
    json_end(&json);
    (void) json_finish(&json);
    return report_end(0);
}

static int inspect_text(const struct inspected *it)
{
    const struct manifest *manifest = &it->manifest;
    auto_free char *network = template_network_get(it->name);
    char size[32], date[32];

    (void) printf("template     %s%s\n", it->name, it->is_default ? " (default)" : "");
    (void) printf("description  %s\n", manifest->description);
    (void) printf("kind         %s\n", manifest_kind_name(manifest->kind));
    (void) printf("path         %s\n", it->path);
    (void) printf("size         %s in %llu files\n", report_size(size, sizeof size, it->size.bytes),
                  (unsigned long long) it->size.files);
    (void) printf("created      %s\n", when(date, sizeof date, manifest->created));
    (void) printf("recipe       %s%s\n", manifest->recipe,
                  !it->has_recipe  ? ""
                  : it->up_to_date ? " (current)"
                                   : " (an older one: 'cove template build' makes it anew)");
    (void) printf("user         %s\n", manifest->user);
    (void) printf("workdir      %s\n", manifest->workdir);
    for (size_t i = 0; i < manifest->env_count; i++)
        (void) printf("env          %s\n", manifest->env[i]);
    if (network)
        (void) printf("network      %s\n", network);
    if (it->users_known)
        (void) printf("sandboxes    %zu\n", it->users);
    else
        (void) printf("sandboxes    unknown: no keeper to ask\n");
    return report_end(0);
}

static int template_inspect(const struct template_values *values, char **names, int count)
{
    auto_free struct inspected *it = calloc(1, sizeof *it);
    struct err err = { 0 };

    if (count != 1)
        err_set(&err, ERR_USAGE, "template inspect: name one template (see 'cove template ls')");
    else if (!it)
        err_set(&err, ERR_NO_MEMORY, "no memory");
    else if (look_at(names[0], it, &err) == 0)
        return values->json ? inspect_json(it) : inspect_text(it);
    return report_error(&err);
}

static const struct {
    const char *full_name; /* in help and messages */
    int (*run)(const struct template_values *values, char **names, int count);
} actions[] = {
    { "template ls", template_ls },
    { "template build", template_make },
    { "template rm", template_rm },
    { "template inspect", template_inspect },
    { "template set", template_set },
};

/* Row by row as in actions. */
static const struct verb subs[] = {
    {
        .name = "ls",
        .synopsis = "[--json]",
        .summary = "list templates; the default is marked",
        .options = json_option,
        .option_count = ARRAY_LEN(json_option),
    },
    {
        .name = "build",
        .synopsis = "[--rebuild] [--no-cache] [NAME…]",
        .summary = "make a template; without a name, say which can be made",
        .details = "Packages and finished trees are kept in COVE_CACHE (/var/cache/cove), so that "
                   "a second\n"
                   "build, also for another state directory, takes seconds. An interrupted build\n"
                   "goes on with the packages it has.",
        .options = build_options,
        .option_count = ARRAY_LEN(build_options),
        .operands = COMPLETE_TEMPLATE,
    },
    {
        .name = "rm",
        .synopsis = "NAME…",
        .summary = "remove templates that no sandbox uses",
        .operands = COMPLETE_TEMPLATE,
    },
    {
        .name = "inspect",
        .synopsis = "[--json] NAME",
        .summary = "show what a template is, where it is, and who uses it",
        .options = json_option,
        .option_count = ARRAY_LEN(json_option),
        .operands = COMPLETE_TEMPLATE,
    },
    {
        .name = "set",
        .synopsis = "--network MODE [OPTION…] NAME",
        .summary = "say what its sandboxes may reach when their create says nothing",
        .options = set_options,
        .option_count = ARRAY_LEN(set_options),
        .operands = COMPLETE_TEMPLATE,
    },
};
_Static_assert(ARRAY_LEN(subs) == ARRAY_LEN(actions), "every command has an action");

const struct verb template_verb = {
    .name = "template",
    .synopsis = "ls|build|rm|inspect|set …",
    .summary = "list, build, remove, inspect and set templates",
    .command_at = 1,
    .run = verb_template,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};

static int run_sub(size_t i, int argc, char **argv)
{
    struct template_values values = { 0 };
    struct verb verb = subs[i];
    struct err err = { 0 };
    char **names;
    int count;

    verb.name = actions[i].full_name;
    switch (options_parse(&verb, argc, argv, &values, &names, &count, &err)) {
    case OPTIONS_BAD:
        return report_error(&err);
    case OPTIONS_HELP:
        return report_end(0);
    case OPTIONS_RUN:
        break;
    }
    return actions[i].run(&values, names, count);
}

int verb_template(int argc, char **argv)
{
    struct err err = { 0 };
    char **operands;
    int count;

    switch (options_parse(&template_verb, argc, argv, NULL, &operands, &count, &err)) {
    case OPTIONS_BAD:
        return report_error(&err);
    case OPTIONS_HELP:
        return report_end(0);
    case OPTIONS_RUN:
        break;
    }
    if (count == 0) {
        options_help(&template_verb, stderr);
        return err_kind_info(ERR_USAGE)->exit_code;
    }
    for (size_t i = 0; i < ARRAY_LEN(subs); i++)
        if (strcmp(operands[0], subs[i].name) == 0)
            return run_sub(i, count, operands);
    err_set(&err, ERR_USAGE, "template: there is no command '%.60s' (see 'cove help template')",
            operands[0]);
    return report_error(&err);
}
