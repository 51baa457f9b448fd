#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/common.h"
#include "cli/report.h"
#include "cli/subverbs.h"

#include <inttypes.h>

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
    { 0, "min",  OPTION_NUMBER, AT(least), "N",  COMPLETE_NONE, "how many wait at any time (0)" },
    { 0, "max",  OPTION_NUMBER, AT(most),  "N",  COMPLETE_NONE, "how many wait at most; 0: none" },
};

static int pool_ls(int argc, char **argv);
static int pool_set(int argc, char **argv);
static int pool_unset(int argc, char **argv);
static int pool_drain(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "ls", .synopsis = "[--json]", .summary = "list pools: how many wait, are wanted, were taken",
      .options = ls_options, .option_count = ARRAY_LEN(ls_options), .run = pool_ls },
    { .name = "set", .synopsis = "[--min N] --max N TEMPLATE", .summary = "how many may wait of a template; '*': of every other",
      .options = set_options, .option_count = ARRAY_LEN(set_options), .run = pool_set },
    { .name = "unset", .synopsis = "TEMPLATE", .summary = "back to what the configuration says",
      .run = pool_unset },
    { .name = "drain", .synopsis = "", .summary = "end all that wait; the server makes new ones",
      .run = pool_drain },
};

const struct verb pool_verb = {
    .name = "pool",
    .synopsis = "[ls|set|unset|drain …]",
    .summary = "sandboxes that the server makes ahead",
    .details = "Without a command it is 'ls'. Rules that are set here win over the server's setting 'pool'.",
    .command_at = 1,
    .run = verb_pool,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

int verb_pool(int argc, char **argv)
{
    return argc == 1 ? pool_ls(argc, argv) : subverbs_run(&pool_verb, argc, argv);
}

static void put_row(struct table *table, json_t *pool)
{
    static const char *const numbers[] = { "ready", "target", "min", "max", "hits", "misses" };
    json_t *limits = json_object_get(pool, "limits");
    char text[32];

    table_cell(table, "%s", show_text(pool, "template"));
    table_cell(table, "%s", show_text(pool, "profile"));
    table_cell(table, "%s", show_text(pool, "isolation"));
    table_cell(table, "%s", json_is_true(json_object_get(pool, "warm")) ? "yes" : "no");
    table_cell(table, "%s", json_is_true(json_object_get(pool, "once")) ? "yes" : "no");
    table_cell(table, "%s", report_size(text, sizeof text, show_number(limits, "memory")));
    table_cell(table, "%s", report_size(text, sizeof text, show_number(limits, "disk")));
    table_cell(table, "%g", json_number_value(json_object_get(limits, "cpus")));
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        table_cell(table, "%" PRIu64, show_number(pool, numbers[i]));
}

static int pool_ls(int argc, char **argv)
{
    static const char *const headings[] = { "TEMPLATE", "PROFILE", "ISOLATION", "WARM",   "ONCE",
                                            ">MEMORY",  ">DISK",   ">CPUS",     ">READY", ">TARGET",
                                            ">MIN",     ">MAX",    ">HITS",     ">MISSES" };
    struct pool_values values = { .json = false };
    json_t *answer = NULL;
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&pool_verb, "ls", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (server_ask("GET", NULL, &answer, &err, "/v1/pools") < 0)
        return report_error(&err);
    show_list(json_incref(json_object_get(answer, "pools")), values.json, ARRAY_LEN(headings),
              headings, put_row);
    json_decref(answer);
    return report_end(0);
}

static int pool_set(int argc, char **argv)
{
    struct pool_values values = { .least = 0, .most = NOT_GIVEN };
    json_t *body;
    struct err err;
    char **names;
    int count, code;

    code =
        subverb_parse(&pool_verb, "set", argc, argv, &values, "a template", 1, 1, &names, &count);
    if (code >= 0)
        return code;
    if (values.most == NOT_GIVEN)
        return common_missing(&pool_verb, "--max");
    body =
        json_pack("{s:I, s:I}", "min", (json_int_t) values.least, "max", (json_int_t) values.most);
    if (server_ask("PUT", body, NULL, &err, "/v1/pools/%s", names[0]) < 0)
        return report_error(&err);
    return report_end(0);
}

static int pool_unset(int argc, char **argv)
{
    struct pool_values values = { .json = false };
    struct err err;
    char **names;
    int count, code;

    code =
        subverb_parse(&pool_verb, "unset", argc, argv, &values, "a template", 1, 1, &names, &count);
    if (code >= 0)
        return code;
    if (server_ask("DELETE", NULL, NULL, &err, "/v1/pools/%s", names[0]) < 0)
        return report_error(&err);
    return report_end(0);
}

static int pool_drain(int argc, char **argv)
{
    struct pool_values values = { .json = false };
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&pool_verb, "drain", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (server_ask("DELETE", NULL, NULL, &err, "/v1/pools") < 0)
        return report_error(&err);
    return report_end(0);
}
