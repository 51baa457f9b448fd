/* GET /metrics: what the server counts, as Prometheus reads it. */
#include "server/app/metrics.h"

#include "base/io.h"
#include "base/own.h"
#include "server/app/app.h"
#include "server/gateway/gateway.h"
#include "server/guard/audit.h"
#include "server/guard/policy_gate.h"
#include "server/guard/quota.h"
#include "server/life/pool.h"
#include "server/net/network.h"
#include "server/ops/ops.h"
#include "server/serve/exchange.h"
#include "surface/tools/tools_routes.h"
#include "surface/tools/tools_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int head(struct text *out, const char *name, const char *type, const char *help)
{
    return text_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static int single(struct text *out, const char *name, const char *type, const char *help,
                  uint64_t value)
{
    return head(out, name, type, help) < 0 ? -1 : text_addf(out, "%s %" PRIu64 "\n", name, value);
}

static int add_histogram(struct text *out, const char *name, const char *help,
                         struct histogram *histogram)
{
    uint64_t count = 0;

    if (head(out, name, "histogram", help) < 0)
        return -1;
    for (size_t i = 0; i < METRICS_BUCKETS; i++) {
        count += atomic_load(&histogram->buckets[i]);
        if (text_addf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, metrics_bounds[i], count) <
            0)
            return -1;
    }
    count += atomic_load(&histogram->buckets[METRICS_BUCKETS]);
    return text_addf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.6f\n%s_count %" PRIu64 "\n",
                     name, count, name, (double) atomic_load(&histogram->sum_us) / 1e6, name,
                     count);
}

static int add_policy(struct text *out, struct app *app)
{
    struct gate_counts counts;

    policy_gate_counts(app->gate, NULL, &counts);
    if (single(out, "cove_policy_checks_total", "counter", "Commands, paths and tools judged.",
               counts.checked) < 0 ||
        single(out, "cove_policy_denials_total", "counter", "Of these, refused.", counts.denied) <
            0 ||
        head(out, "cove_policy_violations_total", "counter", "Violations seen, by risk.") < 0)
        return -1;
    for (int i = POLICY_RISK_LOW; i < POLICY_RISK_COUNT; i++)
        if (text_addf(out, "cove_policy_violations_total{risk=\"%s\"} %" PRIu64 "\n",
                      policy_risk_name((enum policy_risk) i), counts.by_risk[i]) < 0)
            return -1;
    return 0;
}

static int add_shares(struct text *out, const struct egress_counts *counts)
{
    const struct {
        const char *name, *help;
        const uint64_t *values;
    } rows[] = {
        { "cove_network_share_used", "Used by all sandboxes.", counts->used },
        { "cove_network_share_tenant", "Used by the tenant that uses most.", counts->tenant_used },
        { "cove_network_share_most", "How many there are to share.", counts->most },
    };
    static const char limited[] = "cove_network_limited_total";

    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        if (head(out, rows[r].name, "gauge", rows[r].help) < 0)
            return -1;
        for (int s = 0; s < EGRESS_SHARES; s++)
            if (text_addf(out, "%s{share=\"%s\"} %" PRIu64 "\n", rows[r].name,
                          egress_share_name((enum egress_share) s), rows[r].values[s]) < 0)
                return -1;
    }
    if (head(out, limited, "counter", "Refused because a share was used up, by limit.") < 0)
        return -1;
    for (int i = 0; i < EGRESS_SHARES * EGRESS_WHOSE; i++) {
        int s = i / EGRESS_WHOSE, of = i % EGRESS_WHOSE;

        if (text_addf(out, "%s{share=\"%s\",of=\"%s\"} %" PRIu64 "\n", limited,
                      egress_share_name((enum egress_share) s),
                      egress_whose_name((enum egress_whose) of), counts->limited[s][of]) < 0)
            return -1;
    }
    return 0;
}

static int add_gateway(struct text *out, struct app *app)
{
    struct gateway_state state = { .up = false };

    if (!app->network)
        return 0;
    gateway_state(network_gateway(app), &state);
    return single(out, "cove_gateway_up", "gauge", "Whether the gateway is connected.", state.up) <
                       0 ||
                   single(out, "cove_gateway_connects_total", "counter",
                          "Gateways that were connected; each but the first is a restart.",
                          state.connects) < 0 ||
                   single(out, "cove_gateway_ignored_total", "counter",
                          "Messages of the gateway that were not taken: too many, or of a sandbox "
                          "without a network.",
                          state.ignored) < 0
               ? -1
               : 0;
}

static int add_network(struct text *out, struct app *app)
{
    struct egress_counts counts;

    if (add_gateway(out, app) < 0)
        return -1;
    network_counts(app, &counts);
    return add_shares(out, &counts) < 0 ||
                   single(out, "cove_network_sandboxes", "gauge", "Sandboxes that have a network.",
                          counts.sandboxes) < 0 ||
                   single(out, "cove_network_connections", "gauge",
                          "Connections out of sandboxes, now.", counts.connections) < 0 ||
                   single(out, "cove_network_connects_total", "counter",
                          "Connections that were let out.", counts.connects) < 0 ||
                   single(out, "cove_network_refused_total", "counter",
                          "Connections and names that were refused.", counts.refused) < 0 ||
                   single(out, "cove_network_questions_total", "counter",
                          "Questions for names out of sandboxes.", counts.questions) < 0 ||
                   single(out, "cove_network_bytes_total", "counter",
                          "Bytes through the gateway, both ways.", counts.bytes) < 0
               ? -1
               : 0;
}

/* All sizes of a template and profile together, where the first of them is. Names of templates are checked names:
 * nothing in a label needs quoting. */
static int add_pool(struct text *out, const struct pool_report *report, size_t at, const char *name,
                    size_t offset)
{
    const struct store_pool *first = &report->list[at];
    uint64_t sum = 0;

    for (size_t i = 0; i < report->count; i++) {
        const struct store_pool *p = &report->list[i];

        if (p->root != first->root || strcmp(p->template, first->template) != 0)
            continue;
        if (i < at)
            return 0; /* summed already */
        sum += *(const uint64_t *) (const void *) ((const char *) p + offset);
    }
    return text_addf(out, "%s{template=\"%s\",profile=\"%s\"} %" PRIu64 "\n", name, first->template,
                     first->root ? "root" : "strict", sum);
}

static int add_pools(struct text *out)
{
    static const struct {
        const char *name, *type, *help;
        size_t offset;
    } rows[] = {
        { "cove_pool_ready", "gauge", "Sandboxes made ahead that wait.",
          offsetof(struct store_pool, ready) },
        { "cove_pool_target", "gauge", "How many are to wait.",
          offsetof(struct store_pool, target) },
        { "cove_pool_hits_total", "counter", "Creates that took one.",
          offsetof(struct store_pool, hits) },
        { "cove_pool_misses_total", "counter", "Creates for which none was there.",
          offsetof(struct store_pool, misses) },
    };
    auto_free struct pool_report *report = malloc(sizeof *report);

    if (!report)
        return -1;
    pool_look(report);
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        if (head(out, rows[r].name, rows[r].type, rows[r].help) < 0)
            return -1;
        for (size_t i = 0; i < report->count; i++)
            if (add_pool(out, report, i, rows[r].name, rows[r].offset) < 0)
                return -1;
    }
    return single(out, "cove_pool_memory_bytes", "gauge", "Memory of those that wait.",
                  report->used_bytes) < 0 ||
                   single(out, "cove_pool_made_total", "counter", "Sandboxes made ahead.",
                          report->made) < 0 ||
                   single(out, "cove_pool_failures_total", "counter",
                          "Sandboxes that could not be made ahead.", report->failures) < 0
               ? -1
               : 0;
}

/* Of the disk with the state directory. Nothing, while the keeper does not answer. */
static int add_disk(struct text *out, struct app *app)
{
    struct keeper_hello hello;

    if (!app_keeper_up(app, &hello))
        return 0;
    return single(out, "cove_disk_free_bytes", "gauge", "Free on the host's disk.",
                  hello.disk_free) < 0 ||
                   single(out, "cove_disk_reserve_bytes", "gauge", "Of them to be kept free.",
                          hello.disk_reserve) < 0 ||
                   single(out, "cove_disk_full", "gauge",
                          "1 while writes in sandboxes are refused for want of room.",
                          hello.disk_full) < 0
               ? -1
               : 0;
}

static int add_server(struct text *out, struct app *app)
{
    struct metrics *m = &app->metrics;
    struct quota_counts quota = { 0 };

    quota_counts(app, &quota);
    if (head(out, "cove_executions_total", "counter", "Commands that ended, by reason.") < 0)
        return -1;
    for (uint32_t i = EXIT_CODE; i < EXIT_COUNT; i++)
        if (text_addf(out, "cove_executions_total{ended=\"%s\"} %" PRIu64 "\n", agent_exit_name(i),
                      (uint64_t) atomic_load(&m->executions[i])) < 0)
            return -1;
    return single(out, "cove_sandboxes_created_total", "counter", "Sandboxes made.",
                  atomic_load(&m->created)) < 0 ||
                   single(out, "cove_sandbox_create_failures_total", "counter",
                          "Creates that failed.", atomic_load(&m->create_failures)) < 0 ||
                   single(out, "cove_sandboxes_killed_total", "counter",
                          "Sandboxes ended by request.", atomic_load(&m->killed)) < 0 ||
                   single(out, "cove_http_requests_total", "counter", "Requests answered.",
                          atomic_load(&app->requests)) < 0 ||
                   single(out, "cove_http_refused_total", "counter",
                          "Requests answered with an error.", atomic_load(&app->refused)) < 0 ||
                   single(out, "cove_quota_refusals_total", "counter",
                          "Requests refused by a quota or because the host is full.",
                          quota.requests + quota.creates + quota.streams + quota.stored +
                              quota.policy + quota.host) < 0 ||
                   single(out, "cove_audit_lost_total", "counter",
                          "Audit records that could not be kept.", audit_lost()) < 0 ||
                   head(out, "cove_uptime_seconds", "gauge", "Since the server started.") < 0 ||
                   text_addf(out, "cove_uptime_seconds %.3f\n",
                             (double) (io_now_ms() - app->started_ms) / 1000) < 0 ||
                   add_disk(out, app) < 0 || add_network(out, app) < 0 || add_pools(out) < 0
               ? -1
               : add_policy(out, app);
}

/* ---- sandboxes of the caller's tenant, now ---- */

struct sample {
    char id[ID_LEN + 1];
    struct ops_stats stats;
};

static uint64_t memory_used(const struct ops_stats *s)
{
    return s->keeper.memory_bytes;
}

static uint64_t memory_limit(const struct ops_stats *s)
{
    return s->limits.memory_bytes;
}

static uint64_t cpu_used(const struct ops_stats *s)
{
    return s->keeper.cpu_us;
}

static uint64_t cpu_limit(const struct ops_stats *s)
{
    return s->limits.cpu_milli;
}

static uint64_t escape_attempts(const struct ops_stats *s)
{
    return s->refusals;
}

static uint64_t processes(const struct ops_stats *s)
{
    return s->keeper.processes;
}

static uint64_t disk_used(const struct ops_stats *s)
{
    return s->keeper.disk_bytes;
}

static uint64_t oom_kills(const struct ops_stats *s)
{
    return s->keeper.oom_kills;
}

/* clang-format off */
static const struct gauge {
    const char *name, *type, *help;
    uint64_t (*value)(const struct ops_stats *stats);
    double scale;
} gauges[] = {
    { "sandbox_memory_usage_bytes", "gauge", "Memory in use, page cache included.", memory_used, 1 },
    { "sandbox_memory_limit_bytes", "gauge", "Memory it may use.", memory_limit, 1 },
    { "sandbox_cpu_usage_seconds_total", "counter", "CPU time used.", cpu_used, 1e-6 },
    { "sandbox_cpu_limit_cores", "gauge", "Cores it may use.", cpu_limit, 1e-3 },
    { "sandbox_escape_attempts_total", "counter", "Dangerous system calls that the jail refused.", escape_attempts, 1 },
    { "sandbox_processes", "gauge", "Processes and threads.", processes, 1 },
    { "sandbox_disk_usage_bytes", "gauge", "Bytes written on top of the template.", disk_used, 1 },
    { "sandbox_oom_kills_total", "counter", "Processes killed because memory ran out.", oom_kills, 1 },
};
/* clang-format on */

static int add_isolations(struct text *out, const struct ops_page *page)
{
    static const char name[] = "cove_sandboxes_by_isolation";
    int r = head(out, name, "gauge", "Sandboxes of this tenant, 200 at most, by their isolation.");

    for (uint32_t i = 0; r == 0 && i < ISOLATION_COUNT; i++) {
        uint64_t count = 0;

        for (size_t n = 0; n < page->count; n++)
            count +=
                page->list[n].isolation && strcmp(page->list[n].isolation, isolation_name(i)) == 0;
        if (count > 0 || i == ISOLATION_JAIL)
            r = text_addf(out, "%s{isolation=\"%s\"} %" PRIu64 "\n", name, isolation_name(i),
                          count);
    }
    return r;
}

static int add_sandboxes(struct text *out, struct ops *ops, struct err *err)
{
    struct ops_filter filter = { .limit = OPS_PAGE_MAX };
    auto_free struct sample *samples = calloc(OPS_PAGE_MAX, sizeof *samples);
    struct ops_page page = { .list = NULL };
    size_t n = 0;
    bool up;
    int r;

    if (!samples)
        return err_set(err, ERR_NO_MEMORY, "no memory for the page");
    /* A page without sandboxes says more about a keeper that is down than no page. */
    up = ops_sandbox_list(ops, &filter, &page, err) == 0;
    for (size_t i = 0; i < page.count; i++) { /* one that ends meanwhile is left out */
        memcpy(samples[n].id, page.list[i].id, sizeof samples[n].id);
        n += ops_sandbox_stats(ops, page.list[i].id, &samples[n].stats, err) == 0;
    }
    r = add_isolations(out, &page);
    free(page.list);
    if (r == 0)
        r = single(out, "cove_keeper_up", "gauge", "1 while the keeper answers.", up);
    if (r == 0)
        r = single(out, "cove_sandboxes", "gauge", "Sandboxes of this tenant, 200 at most.",
                   page.count);
    for (size_t g = 0; r == 0 && g < ARRAY_LEN(gauges); g++) {
        r = head(out, gauges[g].name, gauges[g].type, gauges[g].help);
        for (size_t i = 0; r == 0 && i < n; i++)
            r = text_addf(out, "%s{sandbox_id=\"%s\"} %.10g\n", gauges[g].name, samples[i].id,
                          (double) gauges[g].value(&samples[i].stats) * gauges[g].scale);
    }
    return r < 0 ? err_set(err, ERR_NO_MEMORY, "no memory for the page") : 0;
}

int metrics_route(struct exchange *x, struct err *err)
{
    struct app *app = exchange_app(x);
    struct ops ops = ops_of(exchange_caller(x));
    struct text out = { 0 };
    int r;

    if (add_histogram(&out, "sandbox_startup_time_seconds",
                      "From a create's request to a sandbox that takes commands.",
                      &app->metrics.startup) < 0 ||
        add_histogram(&out, "sandbox_execution_time_seconds",
                      "From the start of a command to its end.", &app->metrics.execution) < 0 ||
        add_server(&out, app) < 0) {
        free(out.data);
        return err_set(err, ERR_NO_MEMORY, "no memory for the page");
    }
    r = add_sandboxes(&out, &ops, err);
    if (r == 0)
        r = exchange_reply_text(x, 200, "text/plain; version=0.0.4; charset=utf-8", out.data, err);
    free(out.data);
    return r;
}
