#include "surface/v1/v1.h"

#include "base/own.h"
#include "server/life/pool.h"

#include <string.h>

static json_t *pool_json(const struct store_pool *p)
{
    const struct limits limits = pool_limits(p);

    return json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "template",
                     p->template, "profile", p->root ? "root" : "strict", "isolation",
                     isolation_name((uint32_t) p->isolation), "warm", p->warm, "once", p->once,
                     "limits", v1_limits_json(&limits), "ready", (json_int_t) p->ready, "target",
                     (json_int_t) p->target, "min", (json_int_t) p->least, "max",
                     (json_int_t) p->most, "hits", (json_int_t) p->hits, "misses",
                     (json_int_t) p->misses);
}

static int add_rule(void *arg, const struct store_pool_rule *rule, struct err *err)
{
    return json_array_append_new(arg, json_pack("{s:s, s:I, s:I}", "template", rule->template,
                                                "min", (json_int_t) rule->least, "max",
                                                (json_int_t) rule->most)) < 0
               ? err_set(err, ERR_NO_MEMORY, "no memory for the list")
               : 0;
}

int v1_pools_get(struct exchange *x, struct err *err)
{
    auto_free struct pool_report *report = calloc(1, sizeof *report);
    json_t *pools = json_array(), *rules = json_array();
    struct ops ops = ops_of(exchange_caller(x));

    if (!report || !pools || !rules) {
        err_set(err, ERR_NO_MEMORY, "no memory for the list");
        goto fail;
    }
    if (ops_pool_look(&ops, report, err) < 0 || ops_pool_rules(&ops, add_rule, rules, err) < 0)
        goto fail;
    for (size_t i = 0; i < report->count; i++)
        (void) json_array_append_new(pools, pool_json(&report->list[i]));
    return exchange_reply_json(x, 200,
                               json_pack("{s:o, s:o, s:I, s:I}", "pools", pools, "rules", rules,
                                         "memory_bytes", (json_int_t) report->used_bytes,
                                         "memory_limit_bytes", (json_int_t) report->budget_bytes),
                               err);

fail:
    json_decref(pools);
    json_decref(rules);
    return -1;
}

struct rule_body {
    uint64_t least, most;
};

/* clang-format off */
static const struct form_field rule_fields[] = {
    { "min", FORM_COUNT, .at = offsetof(struct rule_body, least), 0, STORE_POOL_MOST, "sandboxes that always wait", .fallback = "0" },
    { "max", FORM_COUNT, .at = offsetof(struct rule_body, most), 0, STORE_POOL_MOST, "sandboxes that wait at most", .needed = true },
};
/* clang-format on */
const struct form v1_pool_form = FORM_OF(rule_fields);

static int read_rule(struct exchange *x, struct store_pool_rule *ret, struct err *err)
{
    struct rule_body body = { 0, 0 };
    const char *template = exchange_param(x, "template");
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &v1_pool_form, &body, err);
    json_decref(json);
    if (r < 0)
        return -1;
    if (body.least > body.most)
        return form_bad(exchange_caller(x), err, "min", "is greater than max");
    if (strlen(template) >= sizeof ret->template)
        return err_set(err, ERR_NO_TEMPLATE, "there is no template '%.40s'", template);
    *ret = (struct store_pool_rule){ .least = body.least, .most = body.most };
    memcpy(ret->template, template, strlen(template) + 1);
    return 0;
}

int v1_pool_set(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct store_pool_rule rule;

    if (read_rule(x, &rule, err) < 0 || ops_pool_set(&ops, &rule, err) < 0)
        return -1;
    return exchange_reply_json(x, 200,
                               json_pack("{s:s, s:I, s:I}", "template", rule.template, "min",
                                         (json_int_t) rule.least, "max", (json_int_t) rule.most),
                               err);
}

int v1_pools_drain(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    uint64_t count;

    if (ops_pool_drain(&ops, &count, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, json_pack("{s:I}", "ended", (json_int_t) count), err);
}

int v1_pool_unset(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));

    if (ops_pool_unset(&ops, exchange_param(x, "template"), err) < 0)
        return -1;
    return exchange_reply_json(x, 204, NULL, err);
}
