/* Around the tools: sandboxes in the shape of tools_config.h, presets, audit logs, statistics. */
#include "base/io.h"
#include "base/own.h"
#include "server/app/app.h"
#include "server/form/form.h"
#include "server/guard/audit.h"
#include "server/guard/policy_gate.h"
#include "server/guard/quota.h"
#include "server/serve/kept.h"
#include "surface/tools/tools.h"

#include <inttypes.h>
#include <string.h>

/* ---- sandboxes ---- */

static json_t *box_json(const struct ops_sandbox *box)
{
    return json_pack("{s:s, s:s, s:s, s:s*, s:b, s:I, s:I, s:{s:f, s:I, s:I, s:I}}", "sandbox_id",
                     box->id, "template", box->template, "status", keeper_life_name(box->life),
                     "isolation", box->isolation, "default", strcmp(box->name, SESSION_NAME) == 0,
                     "created_ms", (json_int_t) box->created_ms, "deadline_ms",
                     (json_int_t) box->deadline_ms, "resource_limits", "cpu_cores",
                     (double) box->limits.cpu_milli / 1000, "memory_mb",
                     (json_int_t) (box->limits.memory_bytes >> 20), "disk_mb",
                     (json_int_t) (box->limits.disk_bytes >> 20), "max_processes",
                     (json_int_t) box->limits.processes);
}

int tools_route_sandbox_make(struct exchange *x, struct err *err)
{
    auto_free struct tools_config *config = calloc(1, sizeof *config);
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox box;
    bool as_default = false;
    json_t *body = NULL, *answer;
    int r;

    if (!config)
        return err_set(err, ERR_NO_MEMORY, "no memory for the sandbox");
    if (exchange_json(x, &body, err) < 0)
        return -1;
    r = tools_config_read(x, body, config, &as_default, err);
    json_decref(body);
    if (r < 0 || session_make(&ops, config, as_default, &box, err) < 0)
        return -1;
    answer = box_json(&box);
    (void) json_object_set_new(answer, "config", tools_config_json(config));
    return exchange_reply_json(x, 201, answer, err);
}

int tools_route_sandbox_get(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox box;

    if (session_default(&ops, &box, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, box_json(&box), err);
}

int tools_route_sandbox_end(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox box;
    struct session session = { 0 };

    if (session_default(&ops, &box, err) < 0 || ops_sandbox_kill(&ops, box.id, err) < 0)
        return -1;
    memcpy(session.sandbox, box.id, sizeof session.sandbox);
    session_forget(&ops, &session);
    return exchange_reply_json(x, 200, json_pack("{s:s, s:b}", "sandbox_id", box.id, "ended", 1),
                               err);
}

static json_t *presets_json(struct app *app)
{
    json_t *presets = json_object();
    struct tools_config config;
    struct err ignored;

    for (size_t i = 0; i < tools_preset_count; i++) {
        if (tools_config_preset(app, &config, tools_presets[i].name, &ignored) < 0)
            continue;
        (void) json_object_set_new(presets, tools_presets[i].name, tools_config_json(&config));
    }
    return json_pack("{s:o}", "presets", presets);
}

int tools_route_presets(struct exchange *x, struct err *err)
{
    static struct kept answer;

    return exchange_reply_kept(x, &answer, presets_json, err);
}

/* ---- audit ---- */

static int query_number(struct exchange *x, const char *name, uint64_t most, uint64_t *ret,
                        struct err *err)
{
    const char *text = exchange_query(x, name);

    if (!text)
        return 0;
    if (parse_u64(text, ret, err) < 0 || *ret > most)
        return form_bad(exchange_caller(x), err, name, "must be a whole number up to %" PRIu64,
                        most);
    return 0;
}

int tools_route_audit(struct exchange *x, struct err *err)
{
    struct audit_filter filter = { .tenant = exchange_caller(x)->tenant,
                                   .sandbox_id = exchange_query(x, "sandbox_id"),
                                   .action = exchange_query(x, "action"),
                                   .outcome = exchange_query(x, "outcome"),
                                   .limit = 100 };
    struct audit_page page = { 0 };
    json_t *answer;

    if (query_number(x, "limit", 1000, &filter.limit, err) < 0 ||
        query_number(x, "after", UINT64_MAX, &filter.after, err) < 0 ||
        query_number(x, "since_ms", UINT64_MAX, &filter.since_ms, err) < 0 ||
        query_number(x, "until_ms", UINT64_MAX, &filter.until_ms, err) < 0)
        return -1;
    if (filter.limit == 0)
        filter.limit = 100;
    /* What this caller has just done is to be seen. */
    if (audit_flush(exchange_app(x), err) < 0 ||
        audit_page(exchange_app(x), &filter, &page, err) < 0)
        return -1;
    answer =
        json_pack("{s:o, s:i}", "logs", page.records, "count", (int) json_array_size(page.records));
    if (page.next > 0)
        (void) json_object_set_new(answer, "next", json_integer((json_int_t) page.next));
    return exchange_reply_json(x, 200, answer, err);
}

/* ---- statistics ---- */

static json_t *policy_stats(struct app *app, const char *tenant)
{
    json_t *by_risk = json_object();
    struct gate_counts counts;

    policy_gate_counts(app->gate, tenant, &counts);
    for (int i = POLICY_RISK_LOW; i < POLICY_RISK_COUNT; i++)
        (void) json_object_set_new(by_risk, policy_risk_name((enum policy_risk) i),
                                   json_integer((json_int_t) counts.by_risk[i]));
    return json_pack("{s:I, s:I, s:o}", "checked", (json_int_t) counts.checked, "denied",
                     (json_int_t) counts.denied, "violations_by_risk", by_risk);
}

int tools_route_stats(struct exchange *x, struct err *err)
{
    struct app *app = exchange_app(x);
    const char *tenant = exchange_caller(x)->tenant;
    struct quota_used usage;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox box;
    struct ops_stats stats;
    json_t *answer;

    if (quota_used(app, tenant, &usage, err) < 0)
        return -1;
    answer = json_pack("{s:s, s:I, s:{s:I, s:I, s:I, s:I}, s:o}", "tenant", tenant, "uptime_ms",
                       (json_int_t) (io_now_ms() - app->started_ms), "sandboxes", "count",
                       (json_int_t) usage.sandboxes, "cpu_milli", (json_int_t) usage.cpu_milli,
                       "memory_bytes", (json_int_t) usage.memory_bytes, "disk_bytes",
                       (json_int_t) usage.disk_bytes, "security", policy_stats(app, tenant));
    if (session_default(&ops, &box, err) == 0 && ops_sandbox_stats(&ops, box.id, &stats, err) == 0)
        (void) json_object_set_new(answer, "default_sandbox",
                                   json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "sandbox_id",
                                             box.id, "uptime_ms", (json_int_t) stats.uptime_ms,
                                             "cpu_ms", (json_int_t) (stats.keeper.cpu_us / 1000),
                                             "memory_bytes", (json_int_t) stats.keeper.memory_bytes,
                                             "disk_bytes", (json_int_t) stats.keeper.disk_bytes,
                                             "processes", (json_int_t) stats.keeper.processes,
                                             "escape_attempts", (json_int_t) stats.refusals));
    return exchange_reply_json(x, 200, answer, err);
}
