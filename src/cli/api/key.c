#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/report.h"
#include "cli/subverbs.h"

#include <string.h>

struct key_values {
    const char *scope, *label, *tenant;
    uint64_t expires_ms; /* from now; 0: never */
    bool json;
};

#define AT(field) offsetof(struct key_values, field)

/* clang-format off */
static const struct option create_options[] = {
    { 0, "scope",   OPTION_TEXT,     AT(scope),      "SCOPE", COMPLETE_NONE, "what it may: read, run, admin; of 'local' also operator (run)" },
    { 0, "label",   OPTION_TEXT,     AT(label),      "TEXT",  COMPLETE_NONE, "your own words, to tell keys apart" },
    { 0, "expires", OPTION_DURATION, AT(expires_ms), "TIME",  COMPLETE_NONE, "ends after 90d, 12h …" },
    { 0, "json",    OPTION_FLAG,     AT(json),       NULL,    COMPLETE_NONE, "as JSON" },
};
static const struct option ls_options[] = {
    { 0, "tenant",  OPTION_TEXT,     AT(tenant),     "NAME",  COMPLETE_NONE, "of this tenant only" },
    { 0, "json",    OPTION_FLAG,     AT(json),       NULL,    COMPLETE_NONE, "as JSON" },
};

static int key_create(int argc, char **argv);
static int key_ls(int argc, char **argv);
static int key_revoke(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "create", .synopsis = "[OPTION…] TENANT", .summary = "make a key and show it, this once",
      .options = create_options, .option_count = ARRAY_LEN(create_options), .run = key_create },
    { .name = "ls", .synopsis = "[OPTION…]", .summary = "list keys; their secret part is not stored",
      .options = ls_options, .option_count = ARRAY_LEN(ls_options), .run = key_ls },
    { .name = "revoke", .synopsis = "ID", .summary = "end a key, at once and for good",
      .run = key_revoke },
};

const struct verb key_verb = {
    .name = "key",
    .synopsis = "create|ls|revoke …",
    .summary = "keys of tenants",
    .command_at = 1,
    .run = verb_key,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

int verb_key(int argc, char **argv)
{
    return subverbs_run(&key_verb, argc, argv);
}

static int key_create(int argc, char **argv)
{
    struct key_values values = { .scope = "run" };
    json_t *body, *made = NULL;
    struct err err;
    char text[64];
    char **names;
    int count, code;

    code =
        subverb_parse(&key_verb, "create", argc, argv, &values, "the tenant", 1, 1, &names, &count);
    if (code >= 0)
        return code;
    body = json_pack("{s:s, s:s, s:s*}", "tenant", names[0], "scope", values.scope, "label",
                     values.label && values.label[0] ? values.label : NULL);
    if (values.expires_ms)
        (void) json_object_set_new(body, "expires", json_real((double) values.expires_ms / 1000));
    if (server_ask("POST", body, &made, &err, "/v1/keys") < 0)
        return report_error(&err);
    if (values.json) {
        show_json(made);
        return report_end(0);
    }
    printf("%s\n", report_text(text, sizeof text, show_text(made, "key")));
    report_note("key %s of tenant %s, scope %s; it is not shown again", show_text(made, "id"),
                show_text(made, "tenant"), show_text(made, "scope"));
    json_decref(made);
    return report_end(0);
}

static int key_revoke(int argc, char **argv)
{
    struct key_values values = { 0 };
    struct err err;
    char **ids;
    int count, code;

    code =
        subverb_parse(&key_verb, "revoke", argc, argv, &values, "the key's id", 1, 1, &ids, &count);
    if (code >= 0)
        return code;
    if (server_ask("DELETE", NULL, NULL, &err, "/v1/keys/%s", ids[0]) < 0)
        return report_error(&err);
    return report_end(0);
}

static void put_row(struct table *table, json_t *key)
{
    char text[64];

    table_cell(table, "%s", show_text(key, "id"));
    table_cell(table, "%s", show_text(key, "tenant"));
    table_cell(table, "%s", show_text(key, "scope"));
    table_cell(table, "%s", show_text(key, "state"));
    table_cell(table, "%s", subverb_when(text, sizeof text, show_time(key, "created_at")));
    table_cell(table, "%s", subverb_when(text, sizeof text, show_time(key, "expires_at")));
    table_cell(table, "%s", subverb_when(text, sizeof text, show_time(key, "last_used_at")));
    table_cell(table, "%s", report_text(text, sizeof text, show_text(key, "label")));
}

static int key_ls(int argc, char **argv)
{
    static const char *const headings[] = { "KEY",     "TENANT",  "SCOPE",     "STATE",
                                            "CREATED", "EXPIRES", "LAST USED", "LABEL" };
    struct key_values values = { 0 };
    json_t *answer = NULL;
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&key_verb, "ls", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (server_ask("GET", NULL, &answer, &err, values.tenant ? "/v1/keys?tenant=%s" : "/v1/keys",
                   values.tenant) < 0)
        return report_error(&err);
    show_list(json_incref(json_object_get(answer, "keys")), values.json, ARRAY_LEN(headings),
              headings, put_row);
    json_decref(answer);
    return report_end(0);
}
