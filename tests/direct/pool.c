#include "base/own.h"
#include "cli/common.h"
#include "cli/listing.h"
#include "cli/report.h"
#include "cli/substore.h"
#include "cli/subverbs.h"
#include "client/sandbox.h"
#include "wire/isolation.h"

#include <inttypes.h>
#include <string.h>

#define NOT_GIVEN UINT64_MAX

struct pool_values {
    uint64_t least, most;
    bool json;
};

#define AT(field) offsetof(struct pool_values, field)

/* clang-format off */
static const struct option ls_options[] = {
    { 0, "json", OPTION_FLAG,   AT(json),  NULL, COMPLETE_NONE, "as JSON" },
};
static const struct option set_options[] = {
    { 0, "min",  OPTION_NUMBER, AT(least), "N",  COMPLETE_NONE, "wait at any time; 0 without it" },
    { 0, "max",  OPTION_NUMBER, AT(most),  "N",  COMPLETE_NONE, "wait at most; 0: none" },
};

static int pool_ls(int argc, char **argv);
static int pool_set(int argc, char **argv);
static int pool_unset(int argc, char **argv);
static int pool_drain(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "ls", .synopsis = "[--json]", .summary = "list pools: what waits, what is wanted, who found one",
      .options = ls_options, .option_count = ARRAY_LEN(ls_options), .run = pool_ls },
    { .name = "set", .synopsis = "[--min N] --max N TEMPLATE", .summary = "how many may wait of a template; '*': of every other",
      .options = set_options, .option_count = ARRAY_LEN(set_options), .run = pool_set },
    { .name = "unset", .synopsis = "TEMPLATE", .summary = "back to what the configuration says",
      .run = pool_unset },
    { .name = "drain", .synopsis = "", .summary = "end all that wait; a server that runs makes new ones",
      .run = pool_drain },
};

const struct verb pool_verb = {
    .name = "pool",
    .synopsis = "[ls|set|unset|drain …]",
    .summary = "sandboxes that the server makes ahead",
    .details = "What 'ls' shows is what the server last wrote down: at most a few seconds old. Without a command it\n"
               "is 'ls'. Rules that are set here win over the server's setting 'pool'.",
    .command_at = 1,
    .run = verb_pool,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

static void pool_json(struct json_out *json, const struct store_pool *p)
{
    json_out_object(json, NULL);
    json_out_text(json, "template", p->template);
    json_out_text(json, "profile", p->root ? "root" : "strict");
    json_out_bool(json, "warm", p->warm);
    json_out_text(json, "isolation", isolation_name((uint32_t) p->isolation));
    json_out_number(json, "memory_bytes", p->memory_bytes);
    json_out_number(json, "disk_bytes", p->disk_bytes);
    json_out_number(json, "cpu_milli", p->cpu_milli);
    json_out_number(json, "ready", p->ready);
    json_out_number(json, "target", p->target);
    json_out_number(json, "min", p->least);
    json_out_number(json, "max", p->most);
    json_out_number(json, "hits", p->hits);
    json_out_number(json, "misses", p->misses);
    json_out_number(json, "updated_ms", p->updated_ms);
    json_out_end(json);
}

static int list_one(void *arg, const struct store_pool *p, struct err *err)
{
    const uint64_t numbers[] = { p->ready, p->target, p->least, p->most, p->hits, p->misses };
    struct listing *l = arg;
    char text[32];

    (void) err;
    if (l->form == LISTING_JSON) {
        pool_json(&l->json, p);
        return 0;
    }
    table_cell(&l->table, "%s", p->template);
    table_cell(&l->table, "%s", p->root ? "root" : "strict");
    table_cell(&l->table, "%s", p->warm ? "yes" : "no");
    table_cell(&l->table, "%s", isolation_name((uint32_t) p->isolation));
    table_cell(&l->table, "%s", report_size(text, sizeof text, p->memory_bytes));
    table_cell(&l->table, "%s", report_size(text, sizeof text, p->disk_bytes));
    table_cell(&l->table, "%g", (double) p->cpu_milli / 1000);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        table_cell(&l->table, "%" PRIu64, numbers[i]);
    return 0;
}

static int pool_ls(int argc, char **argv)
{
    static const char *const headings[] = { "TEMPLATE", "PROFILE", "WARM",   "ISOLATION", ">MEMORY",
                                            ">DISK",    ">CPUS",   ">READY", ">TARGET",   ">MIN",
                                            ">MAX",     ">HITS",   ">MISSES" };
    struct pool_values values = { .json = false };
    auto_store struct store *store = NULL;
    struct listing l;
    struct err err = { 0 };
    char **names;
    int count, code;

    code = subverb_parse(&pool_verb, "ls", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0)
        return report_error(&err);
    listing_init(&l, listing_form_of(values.json), ARRAY_LEN(headings), headings);
    if (listing_end(&l, store_pools_list(store, list_one, &l, &err)) < 0)
        return report_error(&err);
    return report_end(0);
}

static int pool_set(int argc, char **argv)
{
    struct pool_values values = { .least = 0, .most = NOT_GIVEN };
    struct store_pool_rule rule = { .least = 0 };
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    char **names;
    int count, code;

    code =
        subverb_parse(&pool_verb, "set", argc, argv, &values, "a template", 1, 1, &names, &count);
    if (code >= 0)
        return code;
    if (values.most == NOT_GIVEN)
        return common_missing(&pool_verb, "--max");
    rule.least = values.least;
    rule.most = values.most;
    (void) snprintf(rule.template, sizeof rule.template, "%s", names[0]);
    if (subverb_store(&store, &err) < 0 || store_pool_rule_set(store, &rule, &err) < 0 ||
        subverb_audit(store, STORE_LOCAL_TENANT, "pool.set", rule.template, &err) < 0)
        return report_error(&err);
    return report_end(0);
}

static int pool_unset(int argc, char **argv)
{
    struct pool_values values = { .json = false };
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    char **names;
    int count, code;

    code =
        subverb_parse(&pool_verb, "unset", argc, argv, &values, "a template", 1, 1, &names, &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0 || store_pool_rule_remove(store, names[0], &err) < 0 ||
        subverb_audit(store, STORE_LOCAL_TENANT, "pool.unset", names[0], &err) < 0)
        return report_error(&err);
    return report_end(0);
}

static int pool_drain(int argc, char **argv)
{
    auto_free struct keeper_sandbox *list = NULL;
    struct pool_values values = { .json = false };
    struct link link;
    struct err err = { 0 };
    size_t waiting = 0;
    char **names;
    int count, code;

    code = subverb_parse(&pool_verb, "drain", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (common_open(&link, &err) < 0)
        return report_error(&err);
    code = sandbox_list_pool(&link, &list, &waiting, &err) < 0 ? report_error(&err) : 0;
    for (size_t i = 0; i < waiting && code == 0; i++)
        /* One that was taken meanwhile is somebody's, and is not found. */
        if (sandbox_destroy(&link, list[i].id, &err) < 0 && err.kind != ERR_NO_SANDBOX)
            code = report_error(&err);
    link_close(&link);
    return report_end(code);
}

int verb_pool(int argc, char **argv)
{
    return argc == 1 ? pool_ls(argc, argv) : subverbs_run(&pool_verb, argc, argv);
}
