/* /v1/tenants, /v1/keys and /v1/audit: what the operator of the server asks for. */
#include "base/own.h"
#include "server/guard/audit.h"
#include "server/net/network_rules.h"
#include "server/ops/ops_operator.h"
#include "surface/v1/v1.h"

#include <stdlib.h>
#include <string.h>

#define EXPIRES_MOST_MS 1000000000000 /* of a FORM_SECONDS */

/* ---- tenants ---- */

struct tenant_body {
    const char *name, *isolation;
    json_t *quotas, *network;
};

#define AT(field) offsetof(struct tenant_body, field)
/* clang-format off */
static const struct form_field tenant_fields[] = {
    { "name", FORM_TEXT, .at = AT(name), .help = "unique on the server", .needed = true }, /* of an add alone */
    { "isolation", FORM_TEXT, .at = AT(isolation), .help = "the least isolation that its sandboxes have",
      .schema = "{\"enum\": [\"jail\", \"gvisor\", \"vm\"]}" },
    { "quotas", FORM_OBJECT, .at = AT(quotas), .help = "0 is no limit; docs/tenants.md", .items = &ops_quotas_form },
    { "network", FORM_OBJECT, .at = AT(network), .help = "the default network of its sandboxes; null: none any more",
      .items = &network_form, .nullable = true },
};
/* clang-format on */
#undef AT
const struct form v1_tenant_form = FORM_OF(tenant_fields);
const struct form v1_tenant_change_form = { .rows = tenant_fields + 1,
                                            .count = ARRAY_LEN(tenant_fields) - 1 };

/* add: the name is in the body, else in the path. */
static int change_tenant(struct exchange *x, json_t *json, bool add, json_t **ret, struct err *err)
{
    auto_free struct reach *network = malloc(sizeof *network);
    struct ops ops = ops_of(exchange_caller(x));
    struct tenant_body body = { .name = NULL };
    struct ops_tenant_change change = { .network_given = json_object_get(json, "network") != NULL };

    if (!network)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (form_read(exchange_caller(x), json, add ? &v1_tenant_form : &v1_tenant_change_form, &body,
                  err) < 0)
        return -1;
    if (body.network &&
        network_read_trusted(exchange_caller(x), "network", body.network, network, err) < 0)
        return -1;
    change.isolation = body.isolation;
    change.quotas = body.quotas;
    change.network = body.network ? network : NULL;
    return add ? ops_tenant_add(&ops, body.name, &change, ret, err)
               : ops_tenant_change(&ops, exchange_param(x, "tenant"), &change, ret, err);
}

static int write_tenant(struct exchange *x, bool add, struct err *err)
{
    json_t *json, *tenant = NULL;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = change_tenant(x, json, add, &tenant, err);
    json_decref(json);
    return r < 0 ? -1 : exchange_reply_json(x, add ? 201 : 200, tenant, err);
}

int v1_tenant_add(struct exchange *x, struct err *err)
{
    return write_tenant(x, true, err);
}

int v1_tenant_change(struct exchange *x, struct err *err)
{
    return write_tenant(x, false, err);
}

int v1_tenant_list(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *list;

    if (ops_tenant_list(&ops, &list, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, json_pack("{s:o}", "tenants", list), err);
}

int v1_tenant_get(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *tenant;

    if (ops_tenant_get(&ops, exchange_param(x, "tenant"), &tenant, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, tenant, err);
}

int v1_tenant_remove(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_tenant_remove(&ops, exchange_param(x, "tenant"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

/* ---- keys ---- */

#define AT(field) offsetof(struct ops_key, field)
/* clang-format off */
static const struct form_field key_fields[] = {
    { "tenant", FORM_TEXT, .at = AT(tenant), .help = "whose sandboxes the key is for", .needed = true },
    { "scope", FORM_TEXT, .at = AT(scope), .help = "operator: only of the tenant local",
      .schema = "{\"enum\": [\"read\", \"run\", \"admin\", \"operator\"], \"default\": \"run\"}" },
    { "label", FORM_TEXT, .at = AT(label), .help = "what it is for", .schema = "{\"maxLength\": 63}" },
    { "expires", FORM_SECONDS, .at = AT(expires_ms), 1, EXPIRES_MOST_MS, "seconds from now; default: never" },
};
/* clang-format on */
#undef AT
const struct form v1_key_form = FORM_OF(key_fields);

int v1_key_create(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_key key = { .tenant = NULL };
    json_t *json, *made = NULL;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &v1_key_form, &key, err);
    if (r == 0)
        r = ops_key_create(&ops, &key, &made, err);
    json_decref(json);
    return r < 0 ? -1 : exchange_reply_json(x, 201, made, err);
}

int v1_key_list(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *list;

    if (ops_key_list(&ops, exchange_query(x, "tenant"), &list, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, json_pack("{s:o}", "keys", list), err);
}

int v1_key_revoke(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_key_revoke(&ops, exchange_param(x, "key"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}

/* ---- the audit log ---- */

int v1_audit_list(struct exchange *x, struct err *err)
{
    struct audit_filter filter = { .tenant = exchange_query(x, "tenant"),
                                   .sandbox_id = exchange_query(x, "sandbox"),
                                   .action = exchange_query(x, "action"),
                                   .outcome = exchange_query(x, "outcome"),
                                   .limit = 100 };
    struct ops ops = ops_of(exchange_caller(x));
    struct audit_page page = { 0 };

    if (query_count(x, "limit", 1, 1000, &filter.limit, err) < 0 ||
        query_count(x, "cursor", 0, INT64_MAX, &filter.after, err) < 0 ||
        query_count(x, "since_ms", 0, INT64_MAX, &filter.since_ms, err) < 0 ||
        query_count(x, "until_ms", 0, INT64_MAX, &filter.until_ms, err) < 0 ||
        query_bool(x, "oldest_first", &filter.oldest_first, err) < 0 ||
        ops_audit_page(&ops, &filter, &page, err) < 0)
        return -1;
    return exchange_reply_json(
        x, 200,
        json_pack("{s:o, s:o}", "records", page.records, "next",
                  page.next ? json_integer((json_int_t) page.next) : json_null()),
        err);
}

static const struct form_field verify_fields[] = {
    { "head", FORM_TEXT, .help = "a hash that was noted earlier and must still be there" },
};
const struct form v1_verify_form = FORM_OF(verify_fields);

int v1_audit_verify(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *json, *chain = NULL;
    const char *head = NULL;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &v1_verify_form, &head, err);
    if (r == 0)
        r = ops_audit_verify(&ops, head, &chain, err);
    json_decref(json);
    return r < 0 ? -1 : exchange_reply_json(x, 200, chain, err);
}

static const struct form_field prune_fields[] = {
    { "older_than", FORM_SECONDS, 0, 1, EXPIRES_MOST_MS, "age in seconds", .needed = true },
};
const struct form v1_prune_form = FORM_OF(prune_fields);

int v1_audit_prune(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    uint64_t older_ms = 0, count = 0;

    if (v1_numbers(x, &v1_prune_form, &older_ms, err) < 0 ||
        ops_audit_prune(&ops, older_ms, &count, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, json_pack("{s:I}", "removed", (json_int_t) count), err);
}
