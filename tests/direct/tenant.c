#include "base/own.h"
#include "base/parse.h"
#include "cli/listing.h"
#include "cli/report.h"
#include "cli/subverbs.h"
#include "direct/network_option.h"
#include "direct/substore.h"
#include "wire/isolation.h"

#include <inttypes.h>
#include <string.h>

#define NOT_GIVEN UINT64_MAX

struct tenant_values {
    struct store_quotas quotas; /* NOT_GIVEN: as it was */
    const char *cpus, *isolation;
    struct network_values network;
    bool json;
};

#define AT(field) offsetof(struct tenant_values, field)

/* clang-format off */
static const struct option quota_options[] = {
    { 0, "sandboxes",      OPTION_NUMBER, AT(quotas.sandboxes),      "N",    COMPLETE_NONE, "sandboxes at once; 0 here and below: no limit" },
    { 0, "cpus",           OPTION_TEXT,   AT(cpus),                  "N",    COMPLETE_NONE, "cores of all its sandboxes together" },
    { 0, "memory",         OPTION_SIZE,   AT(quotas.memory_bytes),   "SIZE", COMPLETE_NONE, "memory of all its sandboxes together" },
    { 0, "disk",           OPTION_SIZE,   AT(quotas.disk_bytes),     "SIZE", COMPLETE_NONE, "disk of all its sandboxes together" },
    { 0, "creates-per-s",  OPTION_NUMBER, AT(quotas.creates_per_s),  "N",    COMPLETE_NONE, "new sandboxes per second" },
    { 0, "requests-per-s", OPTION_NUMBER, AT(quotas.requests_per_s), "N",    COMPLETE_NONE, "requests per second" },
    { 0, "streams",        OPTION_NUMBER, AT(quotas.streams),        "N",    COMPLETE_NONE, "long answers and terminals at once" },
    { 0, "stored-bytes",   OPTION_SIZE,   AT(quotas.stored_bytes),   "SIZE", COMPLETE_NONE, "bytes that its sandboxes hold on their disks" },
    { 0, "images",         OPTION_NUMBER, AT(quotas.images),         "N",    COMPLETE_NONE, "snapshots, and sandboxes that are paused to disk" },
    { 0, "isolation",      OPTION_TEXT,   AT(isolation),             "NAME", COMPLETE_NONE, "the least isolation that its sandboxes have: jail, gvisor or vm" },
    NETWORK_OPTIONS(AT(network)),
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

static uint64_t *field_of(struct store_quotas *quotas, size_t i)
{
    return (uint64_t *) ((char *) quotas + quota_table[i].offset);
}

static void values_init(struct tenant_values *values)
{
    memset(values, 0, sizeof *values);
    for (size_t i = 0; i < quota_table_count; i++)
        *field_of(&values->quotas, i) = NOT_GIVEN;
}

/* What was given, over what there is. */
static int apply(const struct tenant_values *values, struct store_quotas *quotas, struct err *err)
{
    struct store_quotas given = values->quotas;
    uint32_t milli;

    if (values->cpus) {
        if (strcmp(values->cpus, "0") == 0)
            milli = 0;
        else if (parse_cpus_milli(values->cpus, &milli, err) < 0)
            return err_wrap(err, "--cpus");
        given.cpu_milli = milli;
    }
    if (values->isolation) {
        uint32_t least;

        if (isolation_parse(values->isolation, &least, err) < 0)
            return err_wrap(err, "--isolation");
        if (isolation_level(least) != least)
            return err_set(err, ERR_INVALID,
                           "--isolation: '%s' is no level, use jail, gvisor or vm",
                           values->isolation);
        given.isolation = least;
    }
    for (size_t i = 0; i < quota_table_count; i++)
        if (*field_of(&given, i) != NOT_GIVEN)
            *field_of(quotas, i) = *field_of(&given, i);
    return 0;
}

static int tenant_add(int argc, char **argv)
{
    struct network_default network = { .given = false };
    struct tenant_values values;
    struct store_quotas quotas;
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    char **names;
    int count, code;

    values_init(&values);
    code = subverb_parse(&tenant_verb, "add", argc, argv, &values, "the tenant's name", 1, 1,
                         &names, &count);
    if (code >= 0)
        return code;
    store_quotas_default(&quotas);
    code =
        apply(&values, &quotas, &err) < 0 ||
                network_values_read(&values.network, &network, &err) < 0 ||
                subverb_store(&store, &err) < 0 ||
                store_tenant_add(store, names[0], &quotas, &err) < 0 ||
                network_default_store(store, STORE_NETWORK_TENANT, names[0], &network, &err) < 0 ||
                subverb_audit(store, names[0], "tenant.add", "", &err) < 0
            ? report_error(&err)
            : report_end(0);
    network_default_done(&network);
    return code;
}

static int tenant_set(int argc, char **argv)
{
    struct network_default network = { .given = false };
    struct tenant_values values;
    struct store_tenant tenant;
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    char **names;
    int count, code;

    values_init(&values);
    code = subverb_parse(&tenant_verb, "set", argc, argv, &values, "the tenant's name", 1, 1,
                         &names, &count);
    if (code >= 0)
        return code;
    code =
        network_values_read(&values.network, &network, &err) < 0 ||
                subverb_store(&store, &err) < 0 ||
                store_tenant_get(store, names[0], &tenant, &err) < 0 ||
                apply(&values, &tenant.quotas, &err) < 0 ||
                store_tenant_set(store, names[0], &tenant.quotas, &err) < 0 ||
                network_default_store(store, STORE_NETWORK_TENANT, names[0], &network, &err) < 0 ||
                subverb_audit(store, names[0], "tenant.set",
                              network.given ? "with its network" : "", &err) < 0
            ? report_error(&err)
            : report_end(0);
    network_default_done(&network);
    return code;
}

static int tenant_rm(int argc, char **argv)
{
    struct tenant_values values;
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    char **names;
    int count, code;

    values_init(&values);
    code = subverb_parse(&tenant_verb, "rm", argc, argv, &values, "the tenant's name", 1, 1, &names,
                         &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0 || store_tenant_remove(store, names[0], &err) < 0 ||
        subverb_audit(store, names[0], "tenant.rm", "", &err) < 0)
        return report_error(&err);
    return report_end(0);
}

/* ---- listing ---- */

struct tenants {
    struct store *store; /* borrowed from tenant_ls */
    struct listing listing;
};

static const char *quota_text(char *out, size_t size, const struct quota_info *info, uint64_t value)
{
    if (value == 0)
        (void) snprintf(out, size, "-");
    else if (info->unit == QUOTA_LEVEL_UNIT)
        (void) snprintf(out, size, "%s", isolation_name((uint32_t) value));
    else if (info->unit == QUOTA_BYTES_UNIT)
        (void) report_size(out, size, value);
    else if (info->unit == QUOTA_CPUS_UNIT)
        (void) snprintf(out, size, "%g", (double) value / 1000);
    else
        (void) snprintf(out, size, "%" PRIu64, value);
    return out;
}

static void tenant_json(struct json_out *json, const struct store_tenant *tenant,
                        const struct store_usage *usage, const char *network)
{
    const struct store_quotas *q = &tenant->quotas;

    json_out_object(json, NULL);
    json_out_text(json, "name", tenant->name);
    json_out_number(json, "created_ms", tenant->created_ms);
    json_out_object(json, "quotas");
    json_out_number(json, "sandboxes", q->sandboxes);
    json_out_number(json, "cpu_milli", q->cpu_milli);
    json_out_number(json, "memory_bytes", q->memory_bytes);
    json_out_number(json, "disk_bytes", q->disk_bytes);
    json_out_number(json, "creates_per_s", q->creates_per_s);
    json_out_number(json, "requests_per_s", q->requests_per_s);
    json_out_number(json, "streams", q->streams);
    json_out_number(json, "stored_bytes", q->stored_bytes);
    json_out_number(json, "images", q->images);
    json_out_end(json);
    json_out_text(json, "isolation", isolation_name((uint32_t) q->isolation));
    json_out_object(json, "used");
    json_out_number(json, "sandboxes", usage->sandboxes);
    json_out_number(json, "cpu_milli", usage->cpu_milli);
    json_out_number(json, "memory_bytes", usage->memory_bytes);
    json_out_number(json, "disk_bytes", usage->disk_bytes);
    json_out_end(json);
    json_out_raw(json, "network", network ? network : "null");
    json_out_end(json);
}

static void tenant_row(struct table *table, const struct store_tenant *tenant,
                       const struct store_usage *usage, const char *network_mode)
{
    struct store_quotas quotas = tenant->quotas;
    char text[32];

    table_cell(table, "%s", tenant->name);
    table_cell(table, "%" PRIu64, usage->sandboxes);
    for (size_t i = 0; i < quota_table_count; i++)
        table_cell(table, "%s",
                   quota_text(text, sizeof text, &quota_table[i], *field_of(&quotas, i)));
    table_cell(table, "%s", network_mode);
}

static int list_one(void *arg, const struct store_tenant *tenant, struct err *err)
{
    struct tenants *t = arg;
    auto_free char *network = NULL;
    struct store_usage usage;
    char mode[16];

    if (store_usage(t->store, tenant->name, &usage, err) < 0 ||
        store_network_default_get(t->store, STORE_NETWORK_TENANT, tenant->name, &network, NULL,
                                  err) < 0)
        return -1;
    if (t->listing.form == LISTING_JSON)
        tenant_json(&t->listing.json, tenant, &usage, network);
    else
        tenant_row(&t->listing.table, tenant, &usage,
                   network_default_mode(t->store, STORE_NETWORK_TENANT, tenant->name, mode));
    return 0;
}

static int tenant_ls(int argc, char **argv)
{
    static const char *const headings[] = { "TENANT",   ">IN USE", ">SANDBOXES", ">CPUS",
                                            ">MEMORY",  ">DISK",   ">CREATES/S", ">REQUESTS/S",
                                            ">STREAMS", ">STORED", ">IMAGES",    "ISOLATION",
                                            "NETWORK" };
    auto_store struct store *store = NULL;
    struct tenant_values values;
    struct tenants t;
    struct err err = { 0 };
    char **names;
    int count, code;

    values_init(&values);
    code = subverb_parse(&tenant_verb, "ls", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0)
        return report_error(&err);
    t.store = store;
    listing_init(&t.listing, listing_form_of(values.json), ARRAY_LEN(headings), headings);
    if (listing_end(&t.listing, store_tenant_list(store, list_one, &t, &err)) < 0)
        return report_error(&err);
    return report_end(0);
}

int verb_tenant(int argc, char **argv)
{
    subverb_product(argv);
    return subverbs_run(&tenant_verb, argc, argv);
}
