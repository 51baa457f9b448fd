#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/common.h"
#include "cli/report.h"

#include <inttypes.h>
#include <string.h>

struct stats_options {
    bool json, refusals;
};

/* clang-format off */
static const struct option stats_options[] = {
    { 0, "json", OPTION_FLAG, offsetof(struct stats_options, json), NULL, COMPLETE_NONE,
      "as JSON" },
    { 0, "refusals", OPTION_FLAG, offsetof(struct stats_options, refusals), NULL, COMPLETE_NONE,
      "which system calls were refused, of which program, how often" },
};

const struct verb stats_verb = {
    .name = "stats",
    .synopsis = "[OPTION…] [SANDBOX…]",
    .summary = "what sandboxes use: processor, memory, processes, disk, refused system calls",
    .details =
        "Without SANDBOX: all of them. A refused system call is one that no ordinary program\n"
        "needs and that escapes are made of; one is worth a look with --refusals.",
    .options = stats_options,
    .option_count = ARRAY_LEN(stats_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_stats,
};
/* clang-format on */

struct shown {
    bool json;
    json_t *list;
    struct table table;
};

static void usage_json(struct shown *shown, json_t *sandbox, json_t *stats)
{
    json_t *out = json_copy(stats), *limits = json_object_get(sandbox, "limits");

    (void) json_object_set(out, "id", json_object_get(sandbox, "id"));
    (void) json_object_set(out, "name", json_object_get(sandbox, "name"));
    (void) json_object_set(out, "state", json_object_get(sandbox, "state"));
    (void) json_object_set_new(out, "cpu_us",
                               json_integer((json_int_t) show_number(stats, "cpu_ms") * 1000));
    (void) json_object_set_new(out, "processes_limit",
                               json_integer((json_int_t) show_number(limits, "pids")));
    (void) json_object_set_new(out, "disk_limit_inodes",
                               json_integer((json_int_t) show_number(limits, "inodes")));
    (void) json_array_append_new(shown->list, out);
}

static void usage_row(struct table *table, json_t *sandbox, json_t *stats)
{
    const char *name = show_text(sandbox, "name");
    json_t *limits = json_object_get(sandbox, "limits");
    bool running = strcmp(show_text(sandbox, "state"), "running") == 0;
    char a[32], b[32];

    table_cell(table, "%s", name[0] ? name : show_text(sandbox, "id"));
    table_cell(table, "%s", show_text(sandbox, "state"));
    table_cell(table, "%s", report_span(a, sizeof a, show_number(stats, "cpu_ms")));
    table_cell(table, "%s / %s", report_size(a, sizeof a, show_number(stats, "memory_bytes")),
               report_size(b, sizeof b, show_number(limits, "memory")));
    table_cell(table, "%s", report_size(a, sizeof a, show_number(stats, "memory_peak_bytes")));
    table_cell(table, "%" PRIu64 " / %" PRIu64, show_number(stats, "processes"),
               show_number(limits, "pids"));
    table_cell(table, "%s / %s", report_size(a, sizeof a, show_number(stats, "disk_bytes")),
               report_size(b, sizeof b, show_number(limits, "disk")));
    table_cell(table, "%" PRIu64, show_number(stats, "disk_inodes"));
    table_cell(table, "%" PRIu64, show_number(stats, "oom_kills"));
    if (running)
        table_cell(table, "%" PRIu64, show_number(stats, "refused_calls"));
    else
        table_cell(table, "-");
}

/* sandbox: as the API has it; NULL: by its name. */
static int show_usage(struct shown *shown, const char *name, json_t *listed, struct err *err)
{
    json_t *sandbox = json_incref(listed), *stats = NULL;
    int r = 0;

    if (!listed)
        r = server_ask("GET", NULL, &sandbox, err, "/v1/sandboxes/%s", name);
    if (r == 0)
        r = server_ask("GET", NULL, &stats, err, "/v1/sandboxes/%s/stats",
                       show_text(sandbox, "id"));
    if (r == 0 && shown->json)
        usage_json(shown, sandbox, stats);
    else if (r == 0)
        usage_row(&shown->table, sandbox, stats);
    json_decref(sandbox);
    json_decref(stats);
    return r;
}

static int show_all(struct shown *shown, struct err *err)
{
    json_t *list, *sandbox;
    size_t i;
    int r = 0;

    if (server_list("/v1/sandboxes", "sandboxes", &list, err) < 0)
        return -1;
    json_array_foreach(list, i, sandbox)
    {
        if (r < 0 || strcmp(show_text(sandbox, "tier"), "disk") == 0)
            continue;
        r = show_usage(shown, NULL, sandbox, err);
        if (r < 0 && err->kind == ERR_NO_SANDBOX)
            r = 0; /* ended since it was listed */
    }
    json_decref(list);
    return r;
}

static void refusal_row(struct table *table, json_t *refusal)
{
    char text[256];

    table_cell(table, "%" PRIu64, show_number(refusal, "count"));
    table_cell(table, "%s", report_text(text, sizeof text, show_text(refusal, "call")));
    table_cell(table, "%" PRIu64, show_number(refusal, "pid"));
    table_cell(table, "%s", report_text(text, sizeof text, show_text(refusal, "program")));
}

static int show_refusals(struct shown *shown, const char *name, struct err *err)
{
    json_t *answer = NULL, *refusal;
    size_t i;

    if (server_ask("GET", NULL, &answer, err, "/v1/sandboxes/%s/refusals", name) < 0)
        return -1;
    json_array_foreach(json_object_get(answer, "refusals"), i, refusal)
    {
        if (shown->json)
            (void) json_array_append(shown->list, refusal);
        else
            refusal_row(&shown->table, refusal);
    }
    json_decref(answer);
    return 0;
}

int verb_stats(int argc, char **argv)
{
    static const char *const usage[] = { "SANDBOX", "STATE", ">CPU",    ">MEMORY", ">PEAK",
                                         ">PIDS",   ">DISK", ">INODES", ">OOM",    ">REFUSED" };
    static const char *const refusals[] = { ">COUNT", "CALL", ">PID", "PROGRAM" };
    struct stats_options options = { .json = false };
    struct shown shown = { .list = json_array() };
    struct err err;
    char **names;
    int count, code, r = 0;

    code = common_parse(&stats_verb, argc, argv, &options, &names, &count);
    if (code >= 0)
        return code;
    if (options.refusals && count == 0)
        return common_missing(&stats_verb, "a sandbox");
    shown.json = options.json;
    table_init(&shown.table, options.refusals ? ARRAY_LEN(refusals) : ARRAY_LEN(usage),
               options.refusals ? refusals : usage);
    for (int i = 0; r == 0 && i < count; i++)
        r = options.refusals ? show_refusals(&shown, names[i], &err)
                             : show_usage(&shown, names[i], NULL, &err);
    if (r == 0 && count == 0)
        r = show_all(&shown, &err);
    /* Whole or not: those before the one that failed are worth showing. */
    if (options.json)
        show_json(json_incref(shown.list));
    else
        (void) table_print(&shown.table, stdout);
    json_decref(shown.list);
    table_done(&shown.table);
    return r < 0 ? report_error(&err) : report_end(0);
}
