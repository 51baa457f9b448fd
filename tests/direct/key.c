#include "base/own.h"
#include "cli/listing.h"
#include "cli/report.h"
#include "cli/subverbs.h"
#include "direct/substore.h"

#include <string.h>

struct key_values {
    const char *scope, *label, *tenant;
    uint64_t expires_ms; /* from now; 0: never */
    bool json;
};

#define AT(field) offsetof(struct key_values, field)

/* clang-format off */
static const struct option create_options[] = {
    { 0, "scope",   OPTION_TEXT,     AT(scope),      "SCOPE", COMPLETE_NONE, "what it may: read, run or admin (run)" },
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

static const char *key_state(const struct store_key *key)
{
    if (key->revoked_ms)
        return "revoked";
    return key->expires_ms && key->expires_ms <= store_now_ms() ? "expired" : "valid";
}

/* text: NULL except right after it was made. */
static void key_json(struct json_out *json, const struct store_key *key, const char *text)
{
    json_out_object(json, NULL);
    json_out_text(json, "id", key->id);
    if (text)
        json_out_text(json, "key", text);
    json_out_text(json, "tenant", key->tenant);
    json_out_text(json, "scope", store_scope_name(key->scope));
    json_out_text(json, "label", key->label);
    json_out_text(json, "state", key_state(key));
    json_out_number(json, "created_ms", key->created_ms);
    json_out_number(json, "expires_ms", key->expires_ms);
    json_out_number(json, "revoked_ms", key->revoked_ms);
    json_out_number(json, "last_used_ms", key->last_used_ms);
    json_out_end(json);
}

static void show_new(const struct store_key *key, const char *text, bool as_json)
{
    struct json_out json;

    if (!as_json) {
        printf("%s\n", text);
        report_note("key %s of tenant %s, scope %s; it is not shown again", key->id, key->tenant,
                    store_scope_name(key->scope));
        return;
    }
    json_out_init(&json, stdout);
    key_json(&json, key, text);
    (void) json_out_finish(&json);
}

static int key_create(int argc, char **argv)
{
    struct key_values values = { .scope = "run", .label = "" };
    char text[STORE_KEY_TEXT_MAX] = "";
    auto_store struct store *store = NULL;
    struct store_key key;
    struct err err = { 0 };
    char **names;
    int count, code, scope = 0;

    code =
        subverb_parse(&key_verb, "create", argc, argv, &values, "the tenant", 1, 1, &names, &count);
    if (code >= 0)
        return code;
    if (store_scope_parse(values.scope, &scope, &err) < 0 || subverb_store(&store, &err) < 0 ||
        store_key_create(store, names[0], scope, values.label,
                         values.expires_ms ? store_now_ms() + values.expires_ms : 0, &key, text,
                         &err) < 0 ||
        subverb_audit(store, names[0], "key.create", key.id, &err) < 0) {
        code = report_error(&err);
    } else {
        show_new(&key, text, values.json);
        code = report_end(0);
    }
    explicit_bzero(text, sizeof text);
    return code;
}

static int key_revoke(int argc, char **argv)
{
    struct key_values values = { 0 };
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    char **ids;
    int count, code;

    code =
        subverb_parse(&key_verb, "revoke", argc, argv, &values, "the key's id", 1, 1, &ids, &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0 || store_key_revoke(store, ids[0], NULL, &err) < 0 ||
        subverb_audit(store, "", "key.revoke", ids[0], &err) < 0)
        return report_error(&err);
    return report_end(0);
}

static void key_row(struct table *table, const struct store_key *key)
{
    char text[64];

    table_cell(table, "%s", key->id);
    table_cell(table, "%s", key->tenant);
    table_cell(table, "%s", store_scope_name(key->scope));
    table_cell(table, "%s", key_state(key));
    table_cell(table, "%s", subverb_when(text, sizeof text, key->created_ms));
    table_cell(table, "%s", subverb_when(text, sizeof text, key->expires_ms));
    table_cell(table, "%s", subverb_when(text, sizeof text, key->last_used_ms));
    table_cell(table, "%s", report_text(text, sizeof text, key->label));
}

static int list_one(void *arg, const struct store_key *key, struct err *err)
{
    struct listing *l = arg;

    (void) err;
    if (l->form == LISTING_JSON)
        key_json(&l->json, key, NULL);
    else
        key_row(&l->table, key);
    return 0;
}

static int key_ls(int argc, char **argv)
{
    static const char *const headings[] = { "KEY",     "TENANT",  "SCOPE",     "STATE",
                                            "CREATED", "EXPIRES", "LAST USED", "LABEL" };
    struct key_values values = { 0 };
    auto_store struct store *store = NULL;
    struct listing l;
    struct err err = { 0 };
    char **names;
    int count, code;

    code = subverb_parse(&key_verb, "ls", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0)
        return report_error(&err);
    listing_init(&l, listing_form_of(values.json), ARRAY_LEN(headings), headings);
    if (listing_end(&l, store_key_list(store, values.tenant, list_one, &l, &err)) < 0)
        return report_error(&err);
    return report_end(0);
}

int verb_key(int argc, char **argv)
{
    subverb_product(argv);
    return subverbs_run(&key_verb, argc, argv);
}
