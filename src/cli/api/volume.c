#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/report.h"
#include "cli/subverbs.h"

#include <inttypes.h>

struct volume_values {
    const char *tenant;
    uint64_t bytes, inodes; /* 0: the server's default */
    bool json, all;
};

#define AT(field) offsetof(struct volume_values, field)

/* clang-format off */
#define TENANT_OPTION { 0, "tenant", OPTION_TEXT, AT(tenant), "NAME", COMPLETE_NONE, "of that tenant: for the operator (your own)" }

static const struct option create_options[] = {
    { 0, "size",   OPTION_SIZE,   AT(bytes),  "SIZE", COMPLETE_NONE, "what it can hold, its file system included (1g)" },
    { 0, "inodes", OPTION_NUMBER, AT(inodes), "N",    COMPLETE_NONE, "files and directories it can hold (one per 16k)" },
    TENANT_OPTION,
};
static const struct option ls_options[] = {
    TENANT_OPTION,
    { 0, "all",    OPTION_FLAG, AT(all),    NULL,   COMPLETE_NONE, "of all tenants: for the operator" },
    { 0, "json",   OPTION_FLAG, AT(json),   NULL,   COMPLETE_NONE, "as JSON" },
};
static const struct option rm_options[] = { TENANT_OPTION };

static int volume_create(int argc, char **argv);
static int volume_ls(int argc, char **argv);
static int volume_rm(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "create", .synopsis = "[OPTION…] NAME", .summary = "make a volume",
      .options = create_options, .option_count = ARRAY_LEN(create_options), .run = volume_create },
    { .name = "ls", .synopsis = "[OPTION…]", .summary = "list volumes, what they hold and how many sandboxes have them",
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

int verb_volume(int argc, char **argv)
{
    return subverbs_run(&volume_verb, argc, argv);
}

static int volume_create(int argc, char **argv)
{
    struct volume_values values = { .tenant = NULL };
    struct err err;
    char **names;
    int count, code;
    json_t *body;

    code = subverb_parse(&volume_verb, "create", argc, argv, &values, "the volume's name", 1, 1,
                         &names, &count);
    if (code >= 0)
        return code;
    body = json_pack("{s:s}", "name", names[0]);
    if (values.bytes)
        (void) json_object_set_new(body, "size", json_integer((json_int_t) values.bytes));
    if (values.inodes)
        (void) json_object_set_new(body, "inodes", json_integer((json_int_t) values.inodes));
    if (server_act_for(values.tenant, &err) < 0) {
        json_decref(body);
        return report_error(&err);
    }
    if (server_ask("POST", body, NULL, &err, "/v1/volumes") < 0)
        return report_error(&err);
    return report_end(0);
}

static int volume_rm(int argc, char **argv)
{
    struct volume_values values = { .tenant = NULL };
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&volume_verb, "rm", argc, argv, &values, "the volume's name", 1, INT32_MAX,
                         &names, &count);
    if (code >= 0)
        return code;
    if (server_act_for(values.tenant, &err) < 0)
        return report_error(&err);
    code = 0;
    for (int i = 0; i < count; i++)
        if (server_ask("DELETE", NULL, NULL, &err, "/v1/volumes/%s", names[i]) < 0)
            code = report_error(&err);
    return report_end(code);
}

/* ---- listing ---- */

static void put_row(struct table *table, json_t *volume)
{
    char text[32];

    table_cell(table, "%s", show_text(volume, "name"));
    table_cell(table, "%s", show_text(volume, "tenant"));
    table_cell(table, "%s", report_size(text, sizeof text, show_number(volume, "size")));
    table_cell(table, "%s", report_size(text, sizeof text, show_number(volume, "stored_bytes")));
    table_cell(table, "%" PRIu64, show_number(volume, "writers"));
    table_cell(table, "%" PRIu64, show_number(volume, "readers"));
    table_cell(table, "%s", subverb_when(text, sizeof text, show_time(volume, "created_at")));
}

/* tenant NULL: the caller's own. */
static int add_volumes(const char *tenant, json_t *list, struct err *err)
{
    json_t *answer = NULL;

    if (server_act_for(tenant, err) < 0 || server_ask("GET", NULL, &answer, err, "/v1/volumes") < 0)
        return -1;
    (void) json_array_extend(list, json_object_get(answer, "volumes"));
    json_decref(answer);
    return 0;
}

static int add_all(json_t *list, struct err *err)
{
    json_t *answer = NULL, *tenant;
    int r = 0;
    size_t i;

    if (server_ask("GET", NULL, &answer, err, "/v1/tenants") < 0)
        return -1;
    json_array_foreach(json_object_get(answer, "tenants"), i, tenant)
    {
        if (r == 0)
            r = add_volumes(show_text(tenant, "name"), list, err);
    }
    json_decref(answer);
    return r;
}

static int volume_ls(int argc, char **argv)
{
    static const char *const headings[] = { "VOLUME",   "TENANT",   ">SIZE",  ">STORED",
                                            ">WRITERS", ">READERS", "CREATED" };
    struct volume_values values = { .tenant = NULL };
    json_t *list = json_array();
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&volume_verb, "ls", argc, argv, &values, "", 0, 0, &names, &count);
    if (code < 0 && (values.all ? add_all(list, &err) : add_volumes(values.tenant, list, &err)) < 0)
        code = report_error(&err);
    if (code >= 0) {
        json_decref(list);
        return code;
    }
    show_list(list, values.json, ARRAY_LEN(headings), headings, put_row);
    return report_end(0);
}
