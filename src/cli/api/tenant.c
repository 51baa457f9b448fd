#include "base/own.h"
#include "base/parse.h"
#include "cli/api/network_rules.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/report.h"
#include "cli/subverbs.h"

#include <inttypes.h>
#include <string.h>

#define NOT_GIVEN UINT64_MAX

enum unit { UNIT_COUNT, UNIT_BYTES, UNIT_CPUS };

struct tenant_values {
    uint64_t sandboxes, cpu_milli, memory_bytes, disk_bytes, creates_per_s, requests_per_s, streams,
        stored_bytes, images;
    const char *cpus, *isolation;
    struct network_rules network;
    bool json;
};

#define AT(field) offsetof(struct tenant_values, field)

/* In the order of the columns; names as the API has them. NOT_GIVEN: as it was. */
static const struct {
    const char *name;
    enum unit unit;
    size_t offset;
} quotas[] = {
    { "sandboxes", UNIT_COUNT, AT(sandboxes) },
    { "cpu_milli", UNIT_CPUS, AT(cpu_milli) },
    { "memory_bytes", UNIT_BYTES, AT(memory_bytes) },
    { "disk_bytes", UNIT_BYTES, AT(disk_bytes) },
    { "creates_per_s", UNIT_COUNT, AT(creates_per_s) },
    { "requests_per_s", UNIT_COUNT, AT(requests_per_s) },
    { "streams", UNIT_COUNT, AT(streams) },
    { "stored_bytes", UNIT_BYTES, AT(stored_bytes) },
    { "images", UNIT_COUNT, AT(images) },
};

/* clang-format off */
static const struct option quota_options[] = {
    { 0, "sandboxes",      OPTION_NUMBER, AT(sandboxes),      "N",    COMPLETE_NONE, "sandboxes at once; 0 here and below: no limit" },
    { 0, "cpus",           OPTION_TEXT,   AT(cpus),           "N",    COMPLETE_NONE, "cores of all its sandboxes together" },
    { 0, "memory",         OPTION_SIZE,   AT(memory_bytes),   "SIZE", COMPLETE_NONE, "memory of all its sandboxes together" },
    { 0, "disk",           OPTION_SIZE,   AT(disk_bytes),     "SIZE", COMPLETE_NONE, "disk of all its sandboxes together" },
    { 0, "creates-per-s",  OPTION_NUMBER, AT(creates_per_s),  "N",    COMPLETE_NONE, "new sandboxes per second" },
    { 0, "requests-per-s", OPTION_NUMBER, AT(requests_per_s), "N",    COMPLETE_NONE, "requests per second" },
    { 0, "streams",        OPTION_NUMBER, AT(streams),        "N",    COMPLETE_NONE, "long answers and terminals at once" },
    { 0, "stored-bytes",   OPTION_SIZE,   AT(stored_bytes),   "SIZE", COMPLETE_NONE, "bytes that its sandboxes hold on their disks" },
    { 0, "images",         OPTION_NUMBER, AT(images),         "N",    COMPLETE_NONE, "snapshots, and sandboxes that are paused to disk" },
    { 0, "isolation",      OPTION_TEXT,   AT(isolation),      "NAME", COMPLETE_NONE, "the least isolation that its sandboxes have: jail, gvisor or vm" },
    NETWORK_RULES(AT(network)),
};
static const struct option json_option[] = {
    { 0, "json", OPTION_FLAG, AT(json), NULL, COMPLETE_NONE, "as JSON" },
};

static int tenant_add(int argc, char **argv);
static int tenant_ls(int argc, char **argv);
static int tenant_set(int argc, char **argv);
static int tenant_rm(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "add", .synopsis = "[OPTION…] NAME", .summary = "make a tenant",
      .options = quota_options, .option_count = ARRAY_LEN(quota_options), .run = tenant_add },
    { .name = "ls", .synopsis = "[--json]", .summary = "list tenants, their quotas and what they use",
      .options = json_option, .option_count = ARRAY_LEN(json_option), .run = tenant_ls },
    { .name = "set", .synopsis = "OPTION… NAME", .summary = "change quotas of a tenant, and its default network",
      .options = quota_options, .option_count = ARRAY_LEN(quota_options), .run = tenant_set },
    { .name = "rm", .synopsis = "NAME", .summary = "remove a tenant without sandboxes, and its keys",
      .run = tenant_rm },
};

const struct verb tenant_verb = {
    .name = "tenant",
    .synopsis = "add|ls|set|rm …",
    .summary = "tenants of the server, and their quotas",
    .command_at = 1,
    .run = verb_tenant,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

int verb_tenant(int argc, char **argv)
{
    return subverbs_run(&tenant_verb, argc, argv);
}

static uint64_t *value_of(struct tenant_values *values, size_t i)
{
    return (uint64_t *) (void *) ((char *) values + quotas[i].offset);
}

/* What was given, as the body of a request. */
static int body_of(struct tenant_values *values, json_t **ret, struct err *err)
{
    json_t *body = json_object(), *given = json_object();
    uint32_t milli = 0;

    *ret = body;
    (void) json_object_set_new(body, "quotas", given);
    if (values->cpus && strcmp(values->cpus, "0") != 0 &&
        parse_cpus_milli(values->cpus, &milli, err) < 0)
        return err_wrap(err, "--cpus");
    if (values->cpus)
        values->cpu_milli = milli;
    if (values->isolation)
        (void) json_object_set_new(body, "isolation", json_string(values->isolation));
    for (size_t i = 0; i < ARRAY_LEN(quotas); i++)
        if (*value_of(values, i) != NOT_GIVEN)
            (void) json_object_set_new(given, quotas[i].name,
                                       json_integer((json_int_t) *value_of(values, i)));
    return network_rules_put(&values->network, body, err);
}

static int change(const char *name, bool add, int argc, char **argv)
{
    struct tenant_values values = { .json = false };
    json_t *body = NULL;
    struct err err;
    char **names;
    int count, code;

    for (size_t i = 0; i < ARRAY_LEN(quotas); i++)
        *value_of(&values, i) = NOT_GIVEN;
    code = subverb_parse(&tenant_verb, name, argc, argv, &values, "the tenant's name", 1, 1, &names,
                         &count);
    if (code >= 0)
        return code;
    if (body_of(&values, &body, &err) < 0) {
        json_decref(body);
        return report_error(&err);
    }
    if (add)
        (void) json_object_set_new(body, "name", json_string(names[0]));
    if (add ? server_ask("POST", body, NULL, &err, "/v1/tenants") < 0
            : server_ask("PATCH", body, NULL, &err, "/v1/tenants/%s", names[0]) < 0)
        return report_error(&err);
    return report_end(0);
}

static int tenant_add(int argc, char **argv)
{
    return change("add", true, argc, argv);
}

static int tenant_set(int argc, char **argv)
{
    return change("set", false, argc, argv);
}

static int tenant_rm(int argc, char **argv)
{
    struct tenant_values values = { .json = false };
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&tenant_verb, "rm", argc, argv, &values, "the tenant's name", 1, 1, &names,
                         &count);
    if (code >= 0)
        return code;
    if (server_ask("DELETE", NULL, NULL, &err, "/v1/tenants/%s", names[0]) < 0)
        return report_error(&err);
    return report_end(0);
}

/* ---- listing ---- */

static const char *quota_text(char *out, size_t size, enum unit unit, uint64_t value)
{
    if (value == 0)
        (void) snprintf(out, size, "-");
    else if (unit == UNIT_BYTES)
        (void) report_size(out, size, value);
    else if (unit == UNIT_CPUS)
        (void) snprintf(out, size, "%g", (double) value / 1000);
    else
        (void) snprintf(out, size, "%" PRIu64, value);
    return out;
}

static void put_row(struct table *table, json_t *tenant)
{
    json_t *allowed = json_object_get(tenant, "quotas"),
           *network = json_object_get(tenant, "network");
    char text[32];

    table_cell(table, "%s", show_text(tenant, "name"));
    table_cell(table, "%" PRIu64, show_number(json_object_get(tenant, "used"), "sandboxes"));
    for (size_t i = 0; i < ARRAY_LEN(quotas); i++)
        table_cell(
            table, "%s",
            quota_text(text, sizeof text, quotas[i].unit, show_number(allowed, quotas[i].name)));
    table_cell(table, "%s", show_text(tenant, "isolation"));
    table_cell(table, "%s", json_is_object(network) ? show_text(network, "mode") : "-");
}

static int tenant_ls(int argc, char **argv)
{
    static const char *const headings[] = { "TENANT",   ">IN USE", ">SANDBOXES", ">CPUS",
                                            ">MEMORY",  ">DISK",   ">CREATES/S", ">REQUESTS/S",
                                            ">STREAMS", ">STORED", ">IMAGES",    "ISOLATION",
                                            "NETWORK" };
    struct tenant_values values = { .json = false };
    json_t *answer = NULL;
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&tenant_verb, "ls", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (server_ask("GET", NULL, &answer, &err, "/v1/tenants") < 0)
        return report_error(&err);
    show_list(json_incref(json_object_get(answer, "tenants")), values.json, ARRAY_LEN(headings),
              headings, put_row);
    json_decref(answer);
    return report_end(0);
}
