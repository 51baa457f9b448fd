#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/common.h"
#include "cli/report.h"
#include "cli/subverbs.h"

struct snapshot_values {
    const char *name;
    bool no_memory, json;
};

#define AT(field) offsetof(struct snapshot_values, field)

/* clang-format off */
static const struct option create_options[] = {
    { 0, "name",      OPTION_TEXT, AT(name),      "NAME", COMPLETE_NONE, "a name for it, unique in its tenant" },
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

static int snapshot_create(int argc, char **argv)
{
    struct snapshot_values values = { .name = NULL };
    json_t *body, *made = NULL;
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&snapshot_verb, "create", argc, argv, &values, "a sandbox", 1, 1, &names,
                         &count);
    if (code >= 0)
        return code;
    body = json_pack("{s:b, s:s*}", "memory", !values.no_memory, "name", values.name);
    if (server_ask("POST", body, &made, &err, "/v1/sandboxes/%s/snapshots", names[0]) < 0)
        return report_error(&err);
    code = show_id(made, "id", &err) < 0 ? report_error(&err) : report_end(0);
    json_decref(made);
    return code;
}

static void put_row(struct table *table, json_t *s)
{
    const char *name = show_text(s, "name");
    char text[64];

    table_cell(table, "%s", show_text(s, "id"));
    table_cell(table, "%s", name[0] ? name : "-");
    table_cell(table, "%s", show_text(s, "sandbox"));
    table_cell(table, "%s", show_text(s, "template"));
    table_cell(table, "%s", json_is_true(json_object_get(s, "memory")) ? "yes" : "no");
    table_cell(table, "%s", report_size(text, sizeof text, show_number(s, "bytes")));
    table_cell(table, "%s", subverb_when(text, sizeof text, show_time(s, "created_at")));
}

static int snapshot_ls(int argc, char **argv)
{
    static const char *const headings[] = { "ID",     "NAME",   "SANDBOX", "TEMPLATE",
                                            "MEMORY", ">BYTES", "MADE" };
    struct snapshot_values values = { .name = NULL };
    json_t *list, *snapshot;
    struct table table;
    struct err err;
    char **names;
    int count, code;
    size_t i;

    code = subverb_parse(&snapshot_verb, "ls", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (server_list("/v1/snapshots", "snapshots", &list, &err) < 0)
        return report_error(&err);
    table_init(&table, ARRAY_LEN(headings), headings);
    json_array_foreach(list, i, snapshot)
    {
        (void) json_object_set_new(snapshot, "created_ms",
                                   json_integer((json_int_t) show_time(snapshot, "created_at")));
        put_row(&table, snapshot);
    }
    if (values.json)
        show_json(json_incref(list));
    else
        (void) table_print(&table, stdout);
    table_done(&table);
    json_decref(list);
    return report_end(0);
}

static int snapshot_rm(int argc, char **argv)
{
    struct snapshot_values values = { .name = NULL };
    struct err err;
    char **names;
    int count, code, own;

    code = subverb_parse(&snapshot_verb, "rm", argc, argv, &values, "a snapshot", 1, 1000, &names,
                         &count);
    if (code >= 0)
        return code;
    code = 0;
    for (int i = 0; i < count; i++)
        if (server_ask("DELETE", NULL, NULL, &err, "/v1/snapshots/%s", names[i]) < 0) {
            own = report_error(&err);
            code = code ? code : own;
        }
    return code;
}
