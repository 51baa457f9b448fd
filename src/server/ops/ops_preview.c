/* The way in: who may reach the ports of a sandbox, as its tenant asks for it. */
#include "server/guard/audit.h"
#include "server/net/preview_rules.h"
#include "server/ops/ops_own.h"

#include "base/own.h"

#include <stdio.h>
#include <string.h>

int ops_preview_get(struct ops *ops, const char *sandbox, struct preview_rules *ret,
                    struct err *err)
{
    struct preview_rules rules = { .is_public = false };
    struct store_sandbox record;

    if (ops_find(ops, sandbox, &record, err) < 0 ||
        preview_rules_load(ops->app, sandbox, &rules, err) < 0)
        return -1;
    *ret = rules;
    return 0;
}

int ops_preview_set(struct ops *ops, const char *sandbox, const struct preview_rules *rules,
                    struct err *err)
{
    auto_free char *text = preview_rules_text(rules);
    struct audit_facts facts = AUDIT_FACTS;
    struct store_sandbox record;

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (ops_find(ops, sandbox, &record, err) < 0 ||
        store_preview_set(ops->app->store, sandbox, text, err) < 0)
        return -1;
    facts.detail = rules->is_public ? "public" : "private";
    return audit_durable(ops->caller, "preview.set", sandbox, &facts, err);
}

int ops_preview_token(struct ops *ops, const char *sandbox, char *out, size_t size, struct err *err)
{
    char token[STORE_TRAFFIC_MAX];
    struct store_sandbox record;

    if (ops_find(ops, sandbox, &record, err) < 0 ||
        store_traffic_token(ops->app->store, sandbox, token, err) < 0)
        return -1;
    (void) snprintf(out, size, "%s", token);
    return 0;
}

int ops_preview_roll(struct ops *ops, const char *sandbox, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    struct store_sandbox record;

    if (ops_find(ops, sandbox, &record, err) < 0 ||
        store_preview_roll(ops->app->store, sandbox, err) < 0)
        return -1;
    return audit_durable(ops->caller, "preview.roll", sandbox, &facts, err);
}

int ops_preview_link(struct ops *ops, const char *sandbox, uint16_t port, uint64_t seconds,
                     char *out, size_t size, uint64_t *ret_expires, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    char text[STORE_LINK_MAX], detail[32];
    struct store_sandbox record;
    struct store_link link;

    if (ops_find(ops, sandbox, &record, err) < 0 ||
        store_link_init(ops->app->store, sandbox, port, &link, err) < 0)
        return -1;
    /* Up to the end of the second: a link never works for less than it says. */
    link.expires = (store_now_ms() + 999) / 1000 + seconds;
    (void) snprintf(link.key_id, sizeof link.key_id, "%s", ops->caller->key_id);
    if (store_link_make(ops->app->store, &link, text, err) < 0)
        return -1;
    (void) snprintf(out, size, "%s", text);
    (void) snprintf(detail, sizeof detail, "port %u", port);
    *ret_expires = link.expires;
    facts.detail = detail;
    audit_note(ops->caller, "preview.link", sandbox, &facts);
    return 0;
}
