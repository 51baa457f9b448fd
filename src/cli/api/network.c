#include "base/own.h"
#include "cli/api/network_rules.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/report.h"
#include "cli/subverbs.h"

#include <inttypes.h>
#include <string.h>

struct network_values {
    const char *tenant, *alias;
    struct option_list ports;
    bool json;
};

#define AT(field) offsetof(struct network_values, field)

/* clang-format off */
#define TENANT_OPTION { 0, "tenant", OPTION_TEXT, AT(tenant), "NAME", COMPLETE_NONE, "of that tenant: for the operator (your own)" }

static const struct option tenant_option[] = { TENANT_OPTION };
static const struct option ls_options[] = {
    TENANT_OPTION,
    { 0, "json",   OPTION_FLAG, AT(json),   NULL,   COMPLETE_NONE, "as JSON" },
};
static const struct option join_options[] = {
    TENANT_OPTION,
    { 0, "alias",  OPTION_TEXT, AT(alias),  "NAME", COMPLETE_NONE, "what the others call it (its name, or else its id)" },
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
    .summary = "private networks between sandboxes",
    .details =
        "Members reach each other as ALIAS or ALIAS.NETWORK.internal, on the ports that were chosen.",
    .command_at = 1,
    .run = verb_network,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

int verb_network(int argc, char **argv)
{
    return subverbs_run(&network_verb, argc, argv);
}

static int network_create(int argc, char **argv)
{
    struct network_values values = { .tenant = NULL };
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&network_verb, "create", argc, argv, &values, "the network's name", 1, 1,
                         &names, &count);
    if (code >= 0)
        return code;
    if (server_act_for(values.tenant, &err) < 0 ||
        server_ask("POST", json_pack("{s:s}", "name", names[0]), NULL, &err, "/v1/networks") < 0)
        return report_error(&err);
    return report_end(0);
}

static int network_rm(int argc, char **argv)
{
    struct network_values values = { .tenant = NULL };
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&network_verb, "rm", argc, argv, &values, "the network", 1, 1, &names,
                         &count);
    if (code >= 0)
        return code;
    if (server_act_for(values.tenant, &err) < 0 ||
        server_ask("DELETE", NULL, NULL, &err, "/v1/networks/%s", names[0]) < 0)
        return report_error(&err);
    return report_end(0);
}

/* ---- members ---- */

static int join(const struct network_values *values, const char *network, const char *sandbox,
                struct err *err)
{
    char text[512];
    json_t *ports = json_array(),
           *body = json_pack("{s:o, s:s*}", "ports", ports, "alias", values->alias), *member = NULL;

    for (size_t i = 0; i < values->ports.count; i++)
        if (network_ports_put("port", values->ports.items[i], ports, err) < 0) {
            json_decref(body);
            return -1;
        }
    if (server_ask("PUT", body, &member, err, "/v1/networks/%s/members/%s", network, sandbox) < 0)
        return -1;
    printf("%s\n", report_text(text, sizeof text, show_text(member, "host")));
    json_decref(member);
    return 0;
}

static int network_join(int argc, char **argv)
{
    struct network_values values = { .tenant = NULL };
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&network_verb, "join", argc, argv, &values, "the network or the sandbox",
                         2, 2, &names, &count);
    if (code >= 0)
        return code;
    if (server_act_for(values.tenant, &err) < 0 || join(&values, names[0], names[1], &err) < 0)
        return report_error(&err);
    return report_end(0);
}

static int network_leave(int argc, char **argv)
{
    struct network_values values = { .tenant = NULL };
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&network_verb, "leave", argc, argv, &values, "the network or the sandbox",
                         2, 2, &names, &count);
    if (code >= 0)
        return code;
    if (server_act_for(values.tenant, &err) < 0 ||
        server_ask("DELETE", NULL, NULL, &err, "/v1/networks/%s/members/%s", names[0], names[1]) <
            0)
        return report_error(&err);
    return report_end(0);
}

/* ---- lists ---- */

static void put_network(struct table *table, json_t *network)
{
    char text[64];

    table_cell(table, "%s", show_text(network, "name"));
    table_cell(table, "%" PRIu64, show_number(network, "member_count"));
    table_cell(table, "%s", subverb_when(text, sizeof text, show_time(network, "created_at")));
}

static void put_member(struct table *table, json_t *member)
{
    char ports[512] = "", text[64];
    size_t i, len = 0;
    json_t *port;

    json_array_foreach(json_object_get(member, "ports"), i, port)
    {
        if (len < sizeof ports)
            len += (size_t) snprintf(ports + len, sizeof ports - len, "%s%" JSON_INTEGER_FORMAT,
                                     i ? "," : "", json_integer_value(port));
    }
    table_cell(table, "%s", show_text(member, "host"));
    table_cell(table, "%s", show_text(member, "sandbox"));
    table_cell(table, "%s", ports[0] ? ports : "-");
    table_cell(table, "%s", subverb_when(text, sizeof text, show_time(member, "joined_at")));
}

static int network_ls(int argc, char **argv)
{
    static const char *const headings[] = { "NETWORK", "MEMBERS", "CREATED" };
    static const char *const of_one[] = { "NAME", "SANDBOX", "PORTS", "JOINED" };
    struct network_values values = { .tenant = NULL };
    json_t *answer = NULL;
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&network_verb, "ls", argc, argv, &values, "", 0, 1, &names, &count);
    if (code >= 0)
        return code;
    if (server_act_for(values.tenant, &err) < 0 ||
        (count > 0 ? server_ask("GET", NULL, &answer, &err, "/v1/networks/%s", names[0])
                   : server_ask("GET", NULL, &answer, &err, "/v1/networks")) < 0)
        return report_error(&err);
    if (count > 0)
        show_list(json_incref(json_object_get(answer, "members")), values.json, ARRAY_LEN(of_one),
                  of_one, put_member);
    else
        show_list(json_incref(json_object_get(answer, "networks")), values.json,
                  ARRAY_LEN(headings), headings, put_network);
    json_decref(answer);
    return report_end(0);
}
