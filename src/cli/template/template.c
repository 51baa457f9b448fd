#include "base/json.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/api/build.h"
#include "cli/api/network_rules.h"
#include "cli/api/server.h"
#include "cli/records.h"
#include "cli/report.h"
#include "cli/subverbs.h"
#include "cli/template/template_built.h"
#include "cli/template/template_image.h"
#include "cli/template/template_maker.h"
#include "cli/template/template_show.h"
#include "cli/template/template_warm.h"
#include "template/recipe.h"
#include "template/template_build.h"
#include "template/template_host.h"
#include "template/template_store.h"

#include <limits.h>
#include <string.h>

struct template_values {
    bool json;
    bool available;
    const char *tenant; /* of ls, inspect and rm */
    bool rebuild;
    bool no_cache;
    struct network_rules network;
    struct warm_values warm;
    struct image_values image;
    struct build_values build;
};

#define AT(field) offsetof(struct template_values, field)

#define TENANT_OPTION                                                                              \
    {                                                                                              \
        0, "tenant", OPTION_TEXT, AT(tenant), "NAME", COMPLETE_NONE,                               \
            "templates that this tenant built, as operator"                                        \
    }

static const struct option ls_options[] = {
    { 0, "available", OPTION_FLAG, AT(available), NULL, COMPLETE_NONE,
      "recipes that 'cove template build' knows, and the free space that building each takes" },
    TENANT_OPTION,
    { 0, "json", OPTION_FLAG, AT(json), NULL, COMPLETE_NONE, "as JSON" },
};

static const struct option inspect_options[] = {
    TENANT_OPTION,
    { 0, "json", OPTION_FLAG, AT(json), NULL, COMPLETE_NONE, "as JSON" },
};

static const struct option rm_options[] = {
    TENANT_OPTION,
};

static const struct option set_options[] = {
    NETWORK_RULES(AT(network)),
};

static const struct option warm_options[] = {
    WARM_OPTIONS(AT(warm)),
};

static const struct option build_options[] = {
    /* clang-format off */
    { 0, "rebuild",  OPTION_FLAG, AT(rebuild),  NULL, COMPLETE_NONE, "from packages, though it is there already" },
    { 0, "no-cache", OPTION_FLAG, AT(no_cache), NULL, COMPLETE_NONE, "neither use nor fill the cache" },
    { 0, "json",     OPTION_FLAG, AT(json),     NULL, COMPLETE_NONE, "as JSON" },
    /* clang-format on */
    BUILD_OPTIONS(AT(build)),
};

static const struct option import_options[] = {
    IMAGE_OPTIONS(AT(image)),
    IMAGE_TAG_OPTION(AT(image)),
    { 0, "json", OPTION_FLAG, AT(json), NULL, COMPLETE_NONE, "as JSON" },
};

static const struct option pull_options[] = {
    IMAGE_OPTIONS(AT(image)),
    IMAGE_PULL_OPTIONS(AT(image)),
    { 0, "json", OPTION_FLAG, AT(json), NULL, COMPLETE_NONE, "as JSON" },
};

static int misused(const char *why)
{
    struct err err;

    err_set(&err, ERR_USAGE, "%s", why);
    return report_error(&err);
}

static int template_ls(const struct template_values *values, char **names, int count)
{
    (void) names;
    (void) count;
    return values->available ? template_show_recipes(values->json)
                             : template_show_all(values->json, values->tenant);
}

static int template_inspect(const struct template_values *values, char **names, int count)
{
    return count == 1 ? template_show_one(names[0], values->json, values->tenant)
                      : misused("template inspect: name one template (see 'cove template ls')");
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
    struct json_out json;

    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_out_text(&json, "name", name);
    json_out_bool(&json, "was_there", result->was_there);
    json_out_bool(&json, "from_cache", result->from_cache);
    json_out_number(&json, "bytes", result->bytes);
    json_out_number(&json, "files", result->files);
    json_out_number(&json, "wall_ms", result->wall_ms);
    json_out_end(&json);
    (void) json_out_finish(&json);
}

static int build_host(bool rebuild)
{
    struct err err = { 0 };
    struct maker maker;
    int r;

    maker_init(&maker, "host");
    r = rebuild ? template_host_rebuild(&maker.way, report_state(), &err)
                : template_host_ensure(&maker.way, report_state(), &err);
    if (r < 0)
        return report_error(&err);
    (void) printf("host is ready\n");
    return maker_recorded(&maker, &err) < 0 ? report_error(&err) : 0;
}

static int build_one(const struct template_values *values, const char *name)
{
    const struct template_build_options options = { .rebuild = values->rebuild,
                                                    .no_cache = values->no_cache };
    const struct recipe *recipe = recipe_find(name);
    struct template_build_result result = { 0 };
    struct err err = { 0 };
    struct maker maker;
    int r;

    if (strcmp(name, "host") == 0)
        return build_host(values->rebuild);
    if (!recipe) {
        err_set(&err, ERR_NO_TEMPLATE, "there is no recipe for a template '%.60s'", name);
        return report_error(&err);
    }
    maker_init(&maker, recipe->name);
    r = template_build(&maker.way, report_state(), recipe, &options, &result, &err);
    maker_done(&maker);
    if (r < 0) {
        int code = report_error(&err);

        return result.signal ? 128 + result.signal : code;
    }
    if (values->json)
        json_built(name, &result);
    else
        say_built(name, &result);
    return maker_recorded(&maker, &err) < 0 ? report_error(&err) : 0;
}

static int pull_image(const char *image)
{
    const struct image_values values = { .name = NULL };

    return template_image_pull(image, &values, false);
}

static bool has_image(const char *template, const char *digest)
{
    auto_close int store_fd = -1;
    struct manifest manifest;
    struct err ignored;
    const char *named;

    if (template_store_look(report_state(), &store_fd, &ignored) < 0 ||
        template_find(store_fd, template, &manifest, NULL, &ignored) < 0)
        return false;
    named = strrchr(manifest.image, '@');
    return strcmp(manifest.digest, digest) == 0 || (named && strcmp(named + 1, digest) == 0);
}

/* By a server. Images that are missing are pulled: by this host's administrator for all, else for the tenant. */
static int make_of_file(const struct template_values *values, char **names, int count)
{
    static const struct build_images images = { pull_image, has_image },
                                     theirs = { pull_image, NULL };
    bool here = !server_is_elsewhere() && geteuid() == 0;

    if (count != 1)
        return misused("template build: name one directory ('cove template build -f FILE DIR')");
    return build_dockerfile(&values->build, names[0], values->no_cache || values->rebuild,
                            values->json, here ? &images : &theirs);
}

static int template_make(const struct template_values *values, char **names, int count)
{
    const struct build_values *b = &values->build;

    if (b->file || build_is_dockerfile(count, names))
        return make_of_file(values, names, count);
    if (b->target || b->network || b->start || b->ready || b->tenant || b->args.count ||
        b->secrets.count || b->tags.count)
        return misused("template build: those options are for a Dockerfile: name its directory, as "
                       "in 'cove template build --tag NAME .'");
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

/* A removal that was killed between the files and the records can be done again. */
static bool has_record(const char *name)
{
    json_t *template = NULL;
    struct err ignored;
    bool found = records_server(&ignored) == 0 &&
                 server_ask("GET", NULL, &template, &ignored, "/v1/host/templates/%s", name) == 0;

    json_decref(template);
    return found;
}

/* What is not installed may be what the server built; if the server has none either, the error stays as it is. */
static int rm_built(const char *name, struct err *err)
{
    struct err theirs;

    if (records_server(&theirs) < 0)
        return -1;
    if (built_remove(name, &theirs) == 0)
        return 0;
    if (theirs.kind != ERR_NO_TEMPLATE)
        *err = theirs;
    return -1;
}

static int rm_one(int store_fd, const char *name, struct err *err)
{
    auto_close int lock_fd = -1;
    struct manifest manifest;
    struct maker maker;
    bool cooled;

    maker_init(&maker, name);
    /* One with a broken manifest can go, too. */
    if (template_find(store_fd, name, &manifest, NULL, err) < 0 && err->kind == ERR_NO_TEMPLATE) {
        if (!name_ok(name) || !has_record(name))
            return rm_built(name, err);
    } else if (template_lock(&maker.way, store_fd, name, &lock_fd, err) < 0 ||
               template_remove(report_state(), store_fd, name, err) < 0) {
        return -1;
    }
    return records_gone(name, &cooled, err) < 0
               ? err_wrap(err, "the files of template '%s' are gone, but not its records", name)
               : 0;
}

/* By the server, which must run. */
static int change_one(const char *name, json_t *take_body, struct err *err)
{
    if (records_server(err) == 0)
        return server_ask("PATCH", take_body, NULL, err, "/v1/host/templates/%s", name);
    json_decref(take_body);
    return -1;
}

static int template_set(const struct template_values *values, char **names, int count)
{
    json_t *body;
    struct err err = { 0 };

    if (count != 1)
        return misused("template set: name one template (see 'cove template ls')");
    body = json_object();
    if (network_rules_put(&values->network, body, &err) < 0 ||
        (json_object_size(body) == 0 &&
         err_set(&err, ERR_USAGE, "template set: say --network (see 'cove template set --help')") <
             0)) {
        json_decref(body);
        return report_error(&err);
    }
    return change_one(names[0], body, &err) < 0 ? report_error(&err) : report_end(0);
}

static int template_import_one(const struct template_values *values, char **names, int count)
{
    return count == 1 ? template_image_import(names[0], &values->image, values->json)
                      : misused("template import: name one file or directory");
}

static int template_pull_one(const struct template_values *values, char **names, int count)
{
    return count == 1 ? template_image_pull(names[0], &values->image, values->json)
                      : misused("template pull: name one image");
}

static int template_make_warm(const struct template_values *values, char **names, int count)
{
    return count == 1 ? template_warm(names[0], &values->warm)
                      : misused("template warm: name one template (see 'cove template ls')");
}

static int template_make_cool(const struct template_values *values, char **names, int count)
{
    struct err err;
    int code = 0;

    (void) values;
    for (int i = 0; i < count; i++) {
        int one = template_cool(names[i]);

        code = code ? code : one;
    }
    if (count > 0)
        return code;
    err_set(&err, ERR_USAGE, "template cool: which template? (see 'cove template ls')");
    return report_error(&err);
}

static int template_rm(const struct template_values *values, char **names, int count)
{
    auto_close int store_fd = -1;
    struct err err = { 0 };
    int code = 0, served;

    if (count == 0) {
        err_set(&err, ERR_USAGE, "template rm: which template? (see 'cove template ls')");
        return report_error(&err);
    }
    served = built_by_server(values->tenant, &err);
    if (served == 0 && template_store_look(report_state(), &store_fd, &err) < 0)
        served = err.kind == ERR_DENIED ? 1 : -1; /* who may not write the files asks the server */
    if (served < 0)
        return report_error(&err);
    for (int i = 0; i < count; i++)
        if ((served ? built_remove(names[i], &err) : rm_one(store_fd, names[i], &err)) < 0)
            code = report_error(&err);
    return code;
}

static const struct {
    const char *name;
    int (*run)(const struct template_values *values, char **names, int count);
} actions[] = {
    { "ls", template_ls },
    { "build", template_make },
    { "import", template_import_one },
    { "pull", template_pull_one },
    { "rm", template_rm },
    { "inspect", template_inspect },
    { "set", template_set },
    { "warm", template_make_warm },
    { "cool", template_make_cool },
};

static int run_action(int argc, char **argv);

static const struct verb subs[] = {
    {
        .name = "ls",
        .run = run_action,
        .synopsis = "[OPTION…]",
        .summary = "list templates, also those that a server built; the default is marked",
        .options = ls_options,
        .option_count = ARRAY_LEN(ls_options),
    },
    {
        .name = "build",
        .run = run_action,
        .synopsis = "[OPTION…] [NAME… | DIR]",
        .summary =
            "make a template, of a recipe or of DIR/Dockerfile; without a name, say which recipes "
            "there are",
        .details =
            "  cove template build base                      a recipe, by this host's "
            "administrator\n"
            "  cove template build --tag app .               ./Dockerfile, by any server\n"
            "  cove template build -f prod.Dockerfile --target web --build-arg V=2 ./app\n\n"
            "DIR has a '/' in it, or is '.'. Ctrl-C cancels the build. The exit code is 1 when a "
            "step failed.\n\n"
            "Of a recipe: packages and finished trees are kept in COVE_CACHE (/var/cache/cove), so "
            "that "
            "a second\n"
            "build, also for another state directory, takes seconds. An interrupted build\n"
            "continues with the packages it has.",
        .options = build_options,
        .option_count = ARRAY_LEN(build_options),
        .operands = COMPLETE_TEMPLATE,
    },
    {
        .name = "import",
        .run = run_action,
        .synopsis = "[OPTION…] FILE|DIR",
        .summary = "make a template of a container image: an archive, or an OCI layout",
        .details = "FILE is what 'docker save', 'podman save' or 'skopeo copy' wrote, DIR an OCI "
                   "layout. The layers\n"
                   "are read by a process without any right and never unpacked on this host. Root "
                   "makes the\n"
                   "template on this host, for all tenants; everybody else, and --server and "
                   "--tenant, for one\n"
                   "tenant, by the server.\n\n"
                   "  docker save python:3.12-slim -o python.tar\n"
                   "  cove template import python.tar\n"
                   "  cove run --template python -- python3 -V",
        .options = import_options,
        .option_count = ARRAY_LEN(import_options),
    },
    {
        .name = "pull",
        .run = run_action,
        .synopsis = "[OPTION…] IMAGE[:TAG][@DIGEST]",
        .summary = "make a template of an image in a registry",
        .details = "The layers are checked against their digests while they arrive. A download "
                   "that broke is gone on\n"
                   "with by the next pull; 'cove gc' removes what was downloaded. Root makes the "
                   "template on\n"
                   "this host, for all tenants; everybody else, and --server and --tenant, for one "
                   "tenant, by\n"
                   "the server: Ctrl-C cancels the pull.\n\n"
                   "  cove template pull python:3.12-slim\n"
                   "  cove run --template python-3.12-slim -- python3 -V",
        .options = pull_options,
        .option_count = ARRAY_LEN(pull_options),
    },
    {
        .name = "rm",
        .run = run_action,
        .synopsis = "[OPTION…] NAME[:TAG]…",
        .summary = "remove templates that no sandbox uses, or a tag of one that a server built",
        .details = "A template that a server built can go while sandboxes of it run.",
        .options = rm_options,
        .option_count = ARRAY_LEN(rm_options),
        .operands = COMPLETE_TEMPLATE,
    },
    {
        .name = "inspect",
        .run = run_action,
        .synopsis = "[OPTION…] NAME",
        .summary = "show what a template is, where it is, and who uses it",
        .options = inspect_options,
        .option_count = ARRAY_LEN(inspect_options),
        .operands = COMPLETE_TEMPLATE,
    },
    {
        .name = "set",
        .run = run_action,
        .synopsis = "--network MODE [OPTION…] NAME",
        .summary = "say what its sandboxes may reach when their create says nothing",
        .options = set_options,
        .option_count = ARRAY_LEN(set_options),
        .operands = COMPLETE_TEMPLATE,
    },
    {
        .name = "warm",
        .run = run_action,
        .synopsis = "[OPTION…] NAME",
        .summary = "give it a memory image: its sandboxes start with a command already running",
        .details = "Sandboxes with the same limits and root start as copies of the image; others "
                   "start without,\n"
                   "and run the command then. 'cove template cool' removes it.",
        .options = warm_options,
        .option_count = ARRAY_LEN(warm_options),
        .operands = COMPLETE_TEMPLATE,
        .takes_limits = true,
        .limits_offset = AT(warm.limits),
    },
    {
        .name = "cool",
        .run = run_action,
        .synopsis = "NAME…",
        .summary = "remove its memory image; its sandboxes start without",
        .operands = COMPLETE_TEMPLATE,
    },
};
_Static_assert(ARRAY_LEN(subs) == ARRAY_LEN(actions), "every command has an action");

const struct verb template_verb = {
    .name = "template",
    .synopsis = "ls|build|import|pull|rm|inspect|set|warm|cool …",
    .summary = "list, build, import, pull, remove, inspect, set and warm templates",
    .command_at = 1,
    .run = verb_template,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};

/* argv[0] is the command's name: subverbs_run has found it. */
static int run_action(int argc, char **argv)
{
    struct template_values values = { 0 };
    const char *name = argv[0];
    char **names;
    int count, code;

    limits_default(&values.warm.limits);
    code = subverb_parse(&template_verb, name, argc, argv, &values, "", 0, INT_MAX, &names, &count);
    for (size_t i = 0; code < 0 && i < ARRAY_LEN(actions); i++)
        if (strcmp(name, actions[i].name) == 0)
            code = actions[i].run(&values, names, count);
    return code;
}

int verb_template(int argc, char **argv)
{
    return subverbs_run(&template_verb, argc, argv);
}
