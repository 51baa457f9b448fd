/* The audit log of all tenants, as the operator asks for it. */
#include "server/ops/ops_operator.h"

#include "server/form/form.h"
#include "server/guard/audit.h"
#include "server/ops/ops_own.h"

#include <inttypes.h>
#include <string.h>

/* Everything that the hash is made of, as the store has it: usage and events are JSON in a text. */
static json_t *record_json(const struct audit_record *r)
{
    return json_pack(
        "{s:I, s:I, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:o, s:s}",
        "seq", (json_int_t) r->seq, "time_ms", (json_int_t) r->time_ms, "timestamp",
        form_time(r->time_ms), "tenant", r->tenant, "user_id", r->user_id, "sandbox_id",
        r->sandbox_id, "action", r->action, "outcome", r->outcome, "request_id", r->request_id,
        "peer", r->peer, "code_hash", r->code_hash, "resource_usage", r->resource_usage,
        "security_events", r->security_events, "detail", r->detail, "duration_ms",
        (json_int_t) r->duration_ms, "exit_code",
        r->exit_code == AUDIT_NO_EXIT ? json_null() : json_integer(r->exit_code), "hash",
        r->hash ? r->hash : "");
}

int ops_audit_page(struct ops *ops, const struct audit_filter *filter, struct audit_page *ret,
                   struct err *err)
{
    const char *tenant = filter->tenant ? filter->tenant : ops->caller->tenant;
    struct audit_filter of = *filter;
    struct store_sandbox named;

    if (ops_operator_only(ops, "audit.list", err) < 0)
        return -1;
    if (of.sandbox_id && !id_ok(of.sandbox_id)) { /* records have ids */
        if (store_sandbox_find_name(ops->app->store, tenant, of.sandbox_id, &named, err) < 0)
            return -1;
        of.sandbox_id = named.id;
    }
    return audit_page_as(ops->app, &of, record_json, ret, err);
}

struct search {
    const char *head;
    bool found;
};

static int seek(void *arg, const struct audit_record *record, struct err *err)
{
    struct search *search = arg;

    (void) err;
    search->found |= record->hash && strcmp(record->hash, search->head) == 0;
    return 0;
}

int ops_audit_verify(struct ops *ops, const char *head, json_t **ret, struct err *err)
{
    const struct audit_filter all = { 0 };
    struct search search = { head, false };
    struct audit_chain chain;

    if (ops_operator_only(ops, "audit.verify", err) < 0 ||
        store_audit_verify(ops->app->store, &chain, err) < 0 ||
        (head && !chain.broken_at &&
         store_audit_list(ops->app->store, &all, seek, &search, err) < 0))
        return -1;
    *ret = json_pack("{s:b, s:I, s:I, s:I, s:s}", "whole", chain.broken_at == 0, "records",
                     (json_int_t) chain.count, "first", (json_int_t) chain.first, "last",
                     (json_int_t) chain.last, "head", chain.count ? chain.head : "");
    if (chain.broken_at) {
        (void) json_object_set_new(*ret, "broken_at", json_integer((json_int_t) chain.broken_at));
        (void) json_object_set_new(*ret, "reason", json_string(chain.why));
    } else if (head) {
        (void) json_object_set_new(*ret, "head_found", json_boolean(search.found));
    }
    return 0;
}

int ops_audit_prune(struct ops *ops, uint64_t older_ms, uint64_t *ret_count, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    uint64_t now = store_now_ms();

    if (ops_operator_only(ops, "audit.prune", err) < 0)
        return -1;
    if (audit_prune(ops->app, ops->caller, older_ms < now ? now - older_ms : 0, ret_count, err) <
        0) {
        ops_audit(ops, "audit.prune", NULL, err);
        return -1;
    }
    facts.detail = "0 records";
    return *ret_count > 0 ? 0 : audit_durable(ops->caller, "audit.prune", NULL, &facts, err);
}
