#include "base/own.h"
#include "cli/listing.h"
#include "cli/report.h"
#include "cli/substore.h"
#include "cli/subverbs.h"
#include "store/private.h"

#include <inttypes.h>
#include <string.h>

struct network_values {
    const char *tenant, *alias;
    struct option_list ports;
    bool json;
};

#define AT(field) offsetof(struct network_values, field)

/* clang-format off */
#define TENANT_OPTION { 0, "tenant", OPTION_TEXT, AT(tenant), "NAME", COMPLETE_NONE, "whose network it is (local)" }

static const struct option tenant_option[] = { TENANT_OPTION };
static const struct option ls_options[] = {
    TENANT_OPTION,
    { 0, "json",   OPTION_FLAG, AT(json),   NULL,   COMPLETE_NONE, "as JSON" },
};
static const struct option join_options[] = {
    TENANT_OPTION,
    { 0, "alias",  OPTION_TEXT, AT(alias),  "NAME", COMPLETE_NONE, "what the others call it; its name, or else its id, if not said" },
    { 'p', "port", OPTION_LIST, AT(ports),  "PORT", COMPLETE_NONE, "a port that the others may reach; 80,443 are two (repeatable)" },
};

static int network_create(int argc, char **argv);
static int network_ls(int argc, char **argv);
static int network_rm(int argc, char **argv);
static int network_join(int argc, char **argv);
static int network_leave(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "create", .synopsis = "[OPTION…] NETWORK", .summary = "make a private network; it may be there already",
      .options = tenant_option, .option_count = ARRAY_LEN(tenant_option), .run = network_create },
    { .name = "ls", .synopsis = "[OPTION…] [NETWORK]", .summary = "list networks, or the members of one",
      .options = ls_options, .option_count = ARRAY_LEN(ls_options), .run = network_ls },
    { .name = "rm", .synopsis = "[OPTION…] NETWORK", .summary = "remove a network, and cut what goes through it",
      .options = tenant_option, .option_count = ARRAY_LEN(tenant_option), .run = network_rm },
    { .name = "join", .synopsis = "[OPTION…] NETWORK SANDBOX", .summary = "put a sandbox into a network, or change its alias and ports",
      .options = join_options, .option_count = ARRAY_LEN(join_options), .run = network_join },
    { .name = "leave", .synopsis = "[OPTION…] NETWORK SANDBOX", .summary = "take a sandbox out of a network",
      .options = tenant_option, .option_count = ARRAY_LEN(tenant_option), .run = network_leave },
};

const struct verb network_verb = {
    .name = "network",
    .synopsis = "create|ls|rm|join|leave …",
    .summary = "private networks between sandboxes of the server",
    .details =
        "Members reach each other as ALIAS or ALIAS.NETWORK.internal, on the ports that were chosen.\n"
        "A server that runs takes changes up within a second.",
    .command_at = 1,
    .run = verb_network,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

static int network_create(int argc, char **argv)
{
    struct network_values values = { .tenant = STORE_LOCAL_TENANT };
    auto_store struct store *store = NULL;
    struct store_tenant tenant;
    struct err err = { 0 };
    bool made = false;
    char **names;
    int count, code;

    code = subverb_parse(&network_verb, "create", argc, argv, &values, "the network's name", 1, 1,
                         &names, &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0 ||
        store_tenant_get(store, values.tenant, &tenant, &err) < 0 ||
        store_private_make(store, values.tenant, names[0], &made, &err) < 0 ||
        (made && subverb_audit(store, values.tenant, "network.make", names[0], &err) < 0))
        return report_error(&err);
    return report_end(0);
}

static int network_rm(int argc, char **argv)
{
    struct network_values values = { .tenant = STORE_LOCAL_TENANT };
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    char **names;
    int count, code;

    code = subverb_parse(&network_verb, "rm", argc, argv, &values, "the network", 1, 1, &names,
                         &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0 ||
        store_private_remove(store, values.tenant, names[0], &err) < 0 ||
        subverb_audit(store, values.tenant, "network.remove", names[0], &err) < 0)
        return report_error(&err);
    return report_end(0);
}

/* ---- members ---- */

/* By its id, or by its name. */
static int find_sandbox(struct store *store, const char *tenant, const char *text,
                        char out[ID_LEN + 1], struct err *err)
{
    struct store_sandbox record;

    if (store_sandbox_get(store, tenant, text, &record, err) < 0 &&
        (err->kind != ERR_NO_SANDBOX ||
         store_sandbox_find_name(store, tenant, text, &record, err) < 0))
        return -1;
    memcpy(out, record.id, ID_LEN + 1);
    return 0;
}

static int read_join(struct store *store, const struct network_values *values, const char *network,
                     const char *sandbox, struct private_member *ret, struct err *err)
{
    *ret = (struct private_member){ .port_count = 0 };
    if (strlen(network) >= sizeof ret->network)
        return err_set(err, ERR_NO_PATH, "there is no network '%.63s'", network);
    if (values->alias && !private_label_ok(values->alias))
        return err_set(err, ERR_INVALID,
                       "--alias: 1 to 63 of a-z, 0-9 and '-', '-' neither first nor last");
    (void) strcpy(ret->network, network);
    (void) strcpy(ret->alias, values->alias ? values->alias : "");
    for (size_t i = 0; i < values->ports.count; i++) {
        struct private_member some;

        if (private_ports_parse(values->ports.items[i], &some, err) < 0)
            return err_wrap(err, "--port");
        for (size_t p = 0; p < some.port_count; p++)
            if (private_port_add(ret, some.ports[p], err) < 0)
                return err_wrap(err, "--port");
    }
    return find_sandbox(store, values->tenant, sandbox, ret->sandbox, err);
}

static int note(struct store *store, const char *tenant, const char *action, const char *network,
                const char *sandbox, struct err *err)
{
    char detail[160];

    (void) snprintf(detail, sizeof detail, "%.63s: %s", network, sandbox);
    return subverb_audit(store, tenant, action, detail, err);
}

static int network_join(int argc, char **argv)
{
    struct network_values values = { .tenant = STORE_LOCAL_TENANT };
    struct private_member join, member;
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    char **names;
    int count, code;

    code = subverb_parse(&network_verb, "join", argc, argv, &values, "the network or the sandbox",
                         2, 2, &names, &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0 ||
        read_join(store, &values, names[0], names[1], &join, &err) < 0 ||
        store_private_join(store, values.tenant, &join, &member, &err) < 0 ||
        note(store, values.tenant, "network.join", names[0], member.sandbox, &err) < 0)
        return report_error(&err);
    printf("%s.%s." PRIVATE_SUFFIX "\n", member.alias, member.network);
    return report_end(0);
}

static int network_leave(int argc, char **argv)
{
    struct network_values values = { .tenant = STORE_LOCAL_TENANT };
    char sandbox[ID_LEN + 1];
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    char **names;
    int count, code;

    code = subverb_parse(&network_verb, "leave", argc, argv, &values, "the network or the sandbox",
                         2, 2, &names, &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0 ||
        find_sandbox(store, values.tenant, names[1], sandbox, &err) < 0 ||
        store_private_leave(store, values.tenant, names[0], sandbox, &err) < 0 ||
        note(store, values.tenant, "network.leave", names[0], sandbox, &err) < 0)
        return report_error(&err);
    return report_end(0);
}

/* ---- lists ---- */

static int list_network(void *arg, const struct private_network *network, struct err *err)
{
    struct listing *l = arg;
    char text[64];

    (void) err;
    if (l->form == LISTING_JSON) {
        json_out_object(&l->json, NULL);
        json_out_text(&l->json, "name", network->name);
        json_out_number(&l->json, "created_ms", network->created_ms);
        json_out_number(&l->json, "members", network->members);
        json_out_end(&l->json);
        return 0;
    }
    table_cell(&l->table, "%s", network->name);
    table_cell(&l->table, "%" PRIu64, network->members);
    table_cell(&l->table, "%s", subverb_when(text, sizeof text, network->created_ms));
    return 0;
}

static int list_member(void *arg, const struct private_member *member, struct err *err)
{
    struct listing *l = arg;
    char ports[PRIVATE_PORTS_TEXT], text[64];

    (void) err;
    private_ports_print(member, ports);
    if (l->form == LISTING_JSON) {
        json_out_object(&l->json, NULL);
        json_out_text(&l->json, "sandbox", member->sandbox);
        json_out_text(&l->json, "alias", member->alias);
        json_out_array(&l->json, "ports");
        for (size_t i = 0; i < member->port_count; i++)
            json_out_number(&l->json, NULL, member->ports[i]);
        json_out_end(&l->json);
        json_out_number(&l->json, "joined_ms", member->joined_ms);
        json_out_end(&l->json);
        return 0;
    }
    table_cell(&l->table, "%s.%s." PRIVATE_SUFFIX, member->alias, member->network);
    table_cell(&l->table, "%s", member->sandbox);
    table_cell(&l->table, "%s", ports[0] ? ports : "-");
    table_cell(&l->table, "%s", subverb_when(text, sizeof text, member->joined_ms));
    return 0;
}

static int list(struct store *store, const struct network_values *values, const char *network,
                struct listing *l, struct err *err)
{
    struct private_network found;

    if (!network)
        return store_private_list(store, values->tenant, list_network, l, err);
    return store_private_get(store, values->tenant, network, &found, err) < 0
               ? -1
               : store_private_members(store, values->tenant, network, list_member, l, err);
}

static int network_ls(int argc, char **argv)
{
    static const char *const headings[] = { "NETWORK", "MEMBERS", "CREATED" };
    static const char *const of_one[] = { "NAME", "SANDBOX", "PORTS", "JOINED" };
    struct network_values values = { .tenant = STORE_LOCAL_TENANT };
    auto_store struct store *store = NULL;
    struct listing l;
    struct err err = { 0 };
    char **names;
    int count, code;

    code = subverb_parse(&network_verb, "ls", argc, argv, &values, "", 0, 1, &names, &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0)
        return report_error(&err);
    listing_init(&l, listing_form_of(values.json),
                 count > 0 ? ARRAY_LEN(of_one) : ARRAY_LEN(headings),
                 count > 0 ? of_one : headings);
    if (listing_end(&l, list(store, &values, count > 0 ? names[0] : NULL, &l, &err)) < 0)
        return report_error(&err);
    return report_end(0);
}

int verb_network(int argc, char **argv)
{
    return subverbs_run(&network_verb, argc, argv);
}
