#include "base/own.h"
#include "cli/listing.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/verbs.h"
#include "direct/common.h"

#include <inttypes.h>
#include <string.h>

/* An agent that is too busy to say how many calls it refused does not hold up the others. */
#define AGENT_PATIENCE_MS 2000

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
    .option_count = sizeof stats_options / sizeof stats_options[0],
    .operands = COMPLETE_SANDBOX,
    .run = verb_stats,
};
/* clang-format on */

struct usage {
    struct keeper_sandbox sandbox;
    struct keeper_stats stats;
    uint64_t refusals;
    bool refusals_known;
};

static int usage_get(struct link *link, const char *name, struct usage *ret, struct err *err)
{
    struct exec_info info = { 0 };
    struct err ignored;
    int patience = link->patience_ms;

    if (sandbox_get(link, name, &ret->sandbox, err) < 0 ||
        sandbox_stats(link, name, &ret->stats, err) < 0)
        return -1;
    link->patience_ms = AGENT_PATIENCE_MS;
    ret->refusals_known =
        ret->sandbox.life == LIFE_RUNNING && exec_info(link, name, &info, &ignored) == 0;
    link->patience_ms = patience;
    ret->refusals = info.refusals;
    ret->stats.oom_kills += info.oom_kills;
    return 0;
}

static void usage_json(struct json_out *json, const struct usage *u)
{
    json_out_object(json, NULL);
    json_out_text(json, "id", u->sandbox.id);
    json_out_text(json, "name", u->sandbox.name[0] ? u->sandbox.name : NULL);
    json_out_text(json, "state", keeper_life_name(u->sandbox.life));
    json_out_number(json, "cpu_us", u->stats.cpu_us);
    json_out_number(json, "memory_bytes", u->stats.memory_bytes);
    json_out_number(json, "memory_peak_bytes", u->stats.memory_peak_bytes);
    json_out_number(json, "memory_limit_bytes", u->sandbox.limits.memory_bytes);
    json_out_number(json, "oom_kills", u->stats.oom_kills);
    json_out_number(json, "processes", u->stats.processes);
    json_out_number(json, "processes_limit", u->sandbox.limits.processes);
    json_out_number(json, "disk_bytes", u->stats.disk_bytes);
    json_out_number(json, "disk_limit_bytes", u->sandbox.limits.disk_bytes);
    json_out_number(json, "disk_inodes", u->stats.disk_inodes);
    json_out_number(json, "disk_limit_inodes", u->sandbox.limits.disk_inodes);
    json_out_number(json, "layer_bytes", u->stats.layer_bytes);
    if (u->refusals_known)
        json_out_number(json, "refused_calls", u->refusals);
    else
        json_out_text(json, "refused_calls", NULL);
    json_out_end(json);
}

static void usage_row(struct table *table, const struct usage *u)
{
    char a[32], b[32];

    table_cell(table, "%s", u->sandbox.name[0] ? u->sandbox.name : u->sandbox.id);
    table_cell(table, "%s", keeper_life_name(u->sandbox.life));
    table_cell(table, "%s", report_span(a, sizeof a, u->stats.cpu_us / 1000));
    table_cell(table, "%s / %s", report_size(a, sizeof a, u->stats.memory_bytes),
               report_size(b, sizeof b, u->sandbox.limits.memory_bytes));
    table_cell(table, "%s", report_size(a, sizeof a, u->stats.memory_peak_bytes));
    table_cell(table, "%" PRIu64 " / %" PRIu64, u->stats.processes, u->sandbox.limits.processes);
    table_cell(table, "%s / %s", report_size(a, sizeof a, u->stats.disk_bytes),
               report_size(b, sizeof b, u->sandbox.limits.disk_bytes));
    table_cell(table, "%" PRIu64, u->stats.disk_inodes);
    table_cell(table, "%" PRIu64, u->stats.oom_kills);
    if (u->refusals_known)
        table_cell(table, "%" PRIu64, u->refusals);
    else
        table_cell(table, "-");
}

static int one_refusal(void *context, const struct agent_reply *item, struct err *err)
{
    struct listing *l = context;
    char text[256];

    (void) err;
    if (l->form == LISTING_JSON) {
        json_out_object(&l->json, NULL);
        json_out_text(&l->json, "call", item->name);
        json_out_text(&l->json, "program", item->program);
        json_out_number(&l->json, "pid", item->pid);
        json_out_number(&l->json, "count", item->count);
        json_out_end(&l->json);
        return 0;
    }
    table_cell(&l->table, "%" PRIu64, item->count);
    table_cell(&l->table, "%s", report_text(text, sizeof text, item->name ? item->name : "-"));
    table_cell(&l->table, "%u", item->pid);
    table_cell(&l->table, "%s",
               report_text(text, sizeof text, item->program ? item->program : "-"));
    return 0;
}

static int show_refusals(struct link *link, char **names, int count, bool as_json, struct err *err)
{
    static const char *const headings[] = { ">COUNT", "CALL", ">PID", "PROGRAM" };
    struct listing l;
    int r = 0;

    listing_init(&l, listing_form_of(as_json), ARRAY_LEN(headings), headings);
    for (int i = 0; r == 0 && i < count; i++)
        r = saved_resolve(link, &names[i], err) < 0
                ? -1
                : exec_items(link, names[i], AGENT_REFUSALS, one_refusal, &l, err);
    (void) listing_end(&l,
                       0); /* whole or not: those before the one that failed are worth showing */
    return r;
}

static int show_one(struct link *link, const char *name, struct listing *l, struct err *err)
{
    struct usage usage;

    if (usage_get(link, name, &usage, err) < 0)
        return -1;
    if (l->form == LISTING_JSON)
        usage_json(&l->json, &usage);
    else
        usage_row(&l->table, &usage);
    return 0;
}

static int show_usage(struct link *link, char **names, int count, bool as_json, struct err *err)
{
    static const char *const headings[] = { "SANDBOX", "STATE", ">CPU",    ">MEMORY", ">PEAK",
                                            ">PIDS",   ">DISK", ">INODES", ">OOM",    ">REFUSED" };
    auto_free struct keeper_sandbox *list = NULL;
    size_t listed = 0;
    struct listing l;
    int r = 0;

    if (count == 0 && sandbox_list(link, &list, &listed, err) < 0)
        return -1;
    listing_init(&l, listing_form_of(as_json), ARRAY_LEN(headings), headings);
    for (int i = 0; r == 0 && i < count; i++)
        r = saved_resolve(link, &names[i], err) < 0 ? -1 : show_one(link, names[i], &l, err);
    for (size_t i = 0; r == 0 && i < listed; i++) {
        r = show_one(link, list[i].id, &l, err);
        if (r < 0 && err->kind == ERR_NO_SANDBOX)
            r = 0; /* ended since it was listed */
    }
    (void) listing_end(&l,
                       0); /* whole or not: those before the one that failed are worth showing */
    return r;
}

int verb_stats(int argc, char **argv)
{
    struct stats_options options = { .json = false };
    struct link link;
    struct err err;
    char **names;
    int count, code, r;

    code = common_parse(&stats_verb, argc, argv, &options, &names, &count);
    if (code >= 0)
        return code;
    if (options.refusals && count == 0)
        return common_missing(&stats_verb, "a sandbox");
    if (common_open(&link, &err) < 0)
        return report_error(&err);
    r = options.refusals ? show_refusals(&link, names, count, options.json, &err)
                         : show_usage(&link, names, count, options.json, &err);
    link_close(&link);
    return r < 0 ? report_error(&err) : report_end(0);
}
