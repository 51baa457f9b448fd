#include "base/own.h"
#include "server/form/form.h"
#include "server/guard/policy_config.h"
#include "server/guard/policy_gate_own.h"
#include "server/guard/quota.h"
#include "server/serve/exchange.h"
#include "surface/tools/tools_routes.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define VIOLATIONS_PAGE 100

const char *gate_metadata(json_t *stored, const char *key)
{
    return json_string_value(json_object_get(stored, key));
}

/* ---- POST /v1/policy/analyze ---- */

struct question {
    const char *command, *code, *language, *path, *access, *tool, *preset;
    json_t *security;
};

static json_t *violation_json(const struct policy_violation *v)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:s%}", "rule", v->rule, "description",
                     v->description, "risk", policy_risk_name(v->risk), "denied", v->denied,
                     "offset", (json_int_t) v->offset, "length", (json_int_t) v->length, "command",
                     v->command ? v->command : "", v->command ? strlen(v->command) : (size_t) 0);
}

/* A command that is no UTF-8 has no place in JSON: the rest of the violation has. */
static json_t *violation_safe(const struct policy_violation *v)
{
    struct policy_violation plain = *v;
    json_t *json = violation_json(v);

    plain.command = NULL;
    return json ? json : violation_json(&plain);
}

static json_t *report_json(const struct policy_report *report)
{
    json_t *violations = json_array(), *programs = json_array(), *paths = json_array();

    for (size_t i = 0; i < report->violation_count; i++)
        (void) json_array_append_new(violations, violation_safe(&report->violations[i]));
    for (size_t i = 0; i < report->program_count; i++)
        (void) json_array_append_new(programs, json_string(report->programs[i]));
    for (size_t i = 0; i < report->path_count; i++)
        (void) json_array_append_new(
            paths, json_pack("{s:s, s:s}", "path", report->paths[i].path, "access",
                             report->paths[i].access == POLICY_WRITE ? "write" : "read"));
    return json_pack("{s:b, s:s, s:b, s:s*, s:I, s:o, s:o, s:o}", "allowed", report->allowed,
                     "risk", policy_risk_name(report->risk), "complete", report->complete, "reason",
                     report->reason[0] ? report->reason : NULL, "dropped",
                     (json_int_t) report->dropped, "violations", violations, "programs", programs,
                     "paths", paths);
}

struct rules {
    const char *preset, *max_risk;
    json_t *lists[POLICY_LIST_COUNT];
    bool root, network, audit;
};

#define AT(field)        offsetof(struct rules, field)
#define LIST(kind, text) .at = AT(lists[POLICY_##kind]), .help = (text)
#define REGEXES          "{\"items\": {\"type\": \"string\", \"format\": \"regex\"}}"
static const char *const risks[] = { "none", "low", "medium", "high", "critical", NULL };
static const char *const presets[] = { "minimal", "standard", "development", "open", NULL };
static const char *const accesses[] = { "read", "write", NULL };

/* clang-format off */
static const struct form_field rules_rows[] = {
    { "preset", FORM_TEXT, .at = AT(preset), .help = "rules to begin with", .choices = presets },
    { "allowed_tools", FORM_ARRAY, LIST(ALLOWED_TOOLS, "tools that may be used; default: all") },
    { "blocked_tools", FORM_ARRAY, LIST(BLOCKED_TOOLS, "tools that may not be used") },
    { "command_blacklist", FORM_ARRAY, LIST(COMMAND_BLACKLIST, "commands that may not run"), .schema = REGEXES },
    { "command_whitelist", FORM_ARRAY, LIST(COMMAND_WHITELIST, "commands that may run, and no others"), .schema = REGEXES },
    { "blocked_paths", FORM_ARRAY, LIST(BLOCKED_PATHS, "files that may not be read or written") },
    { "waived_rules", FORM_ARRAY, LIST(WAIVED_RULES, "rules of the preset that do not count") },
    { "allow_root", FORM_BOOL, .at = AT(root), .help = "root inside may be used" },
    { "network", FORM_BOOL, .at = AT(network), .help = "whether network tools are no violation" },
    { "max_risk", FORM_TEXT, .at = AT(max_risk), .help = "the highest risk that may run", .choices = risks },
    { "enable_audit_log", FORM_BOOL, .at = AT(audit), .help = "the audit log is always on", .schema = "{\"const\": true}" },
};
#undef AT
const struct form policy_rules_form = FORM_OF(rules_rows);

#define AT(field) offsetof(struct question, field)
static const struct form_field question_rows[] = {
    { "command", FORM_CONTENT, .at = AT(command), .most = POLICY_COMMAND_MAX, .help = "a command for a shell" },
    { "code", FORM_CONTENT, .at = AT(code), .most = POLICY_COMMAND_MAX, .help = "a program" },
    { "language", FORM_CONTENT, .at = AT(language), .most = 32, .help = "of code" },
    { "path", FORM_CONTENT, .at = AT(path), .most = 4096, .help = "a file" },
    { "access", FORM_TEXT, .at = AT(access), .help = "of path", .choices = accesses, .fallback = "read" },
    { "tool", FORM_CONTENT, .at = AT(tool), .most = 64, .help = "the name of a tool" },
    { "preset", FORM_TEXT, .at = AT(preset), .help = "rules to ask", .choices = presets, .fallback = "standard" },
    { "security", FORM_OBJECT, .at = AT(security), .help = "rules on top of the preset's; docs/policy.md", .items = &policy_rules_form },
};
/* clang-format on */
#undef AT
const struct form policy_question_form =
    FORM_OF(question_rows, .help = "exactly one of command, code, path and tool");

int policy_rules_read(struct caller *caller, json_t *security, struct err *err)
{
    struct rules ignored;

    return security
               ? form_read_within(caller, "security.", security, &policy_rules_form, &ignored, err)
               : 0;
}

static int read_question(struct exchange *x, json_t *body, struct question *q, struct err *err)
{
    if (form_read(exchange_caller(x), body, &policy_question_form, q, err) < 0 ||
        policy_rules_read(exchange_caller(x), q->security, err) < 0)
        return -1;
    if (!!q->command + !!q->code + !!q->path + !!q->tool != 1)
        return form_bad(exchange_caller(x), err, "command",
                        "exactly one of command, code, path and tool is required");
    return 0;
}

static int analyze(struct exchange *x, json_t *body, json_t **ret, struct err *err)
{
    auto_free struct policy *policy = calloc(1, sizeof *policy);
    struct question q = { 0 };
    struct policy_report report;
    const char *field = NULL;

    if (!policy)
        return err_set(err, ERR_NO_MEMORY, "no memory for the policy");
    if (read_question(x, body, &q, err) < 0)
        return -1;
    if (policy_from_json(policy, q.security, q.preset, &field, err) < 0)
        return exchange_blame(x, field ? field : "security", NULL, NULL);
    if (q.command)
        policy_analyze(policy, q.command, &report);
    else if (q.code)
        policy_analyze_code(policy, q.language ? q.language : "", q.code, &report);
    else if (q.path)
        policy_analyze_path(policy, q.path,
                            strcmp(q.access, "write") == 0 ? POLICY_WRITE : POLICY_READ, &report);
    else
        policy_analyze_tool(policy, q.tool, &report);
    quota_policy_used(exchange_caller(x), report.cpu_us);
    *ret = report_json(&report);
    policy_report_done(&report);
    policy_done(policy);
    return 0;
}

int policy_route_analyze(struct exchange *x, struct err *err)
{
    json_t *body = NULL, *answer = NULL;
    int r;

    if (quota_policy(exchange_caller(x), err) < 0 || exchange_json(x, &body, err) < 0)
        return -1;
    r = analyze(x, body, &answer, err);
    json_decref(body);
    return r < 0 ? -1 : exchange_reply_json(x, 200, answer, err);
}

/* ---- GET /v1/policy/violations ---- */

static json_t *seen_json(const struct gate_seen *seen)
{
    time_t seconds = (time_t) (seen->time_ms / 1000);
    char when[40] = "";
    struct tm tm;
    json_t *json;

    if (gmtime_r(&seconds, &tm))
        (void) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json = json_pack("{s:s, s:s*, s:s, s:s, s:s, s:b}", "timestamp", when, "sandbox_id",
                     seen->sandbox[0] ? seen->sandbox : NULL, "rule", seen->rule, "description",
                     seen->description, "risk", policy_risk_name(seen->risk), "refused",
                     seen->refused);
    /* Not set when the cut left no UTF-8. */
    (void) json_object_set_new(json, "command", json_string(seen->command));
    return json;
}

/* Newest first, the caller's own. */
static json_t *seen_list(struct policy_gate *gate, const char *tenant, enum policy_risk risk,
                         size_t limit)
{
    json_t *list = json_array();
    const struct gate_tenant *own;
    uint64_t newest, oldest;

    (void) pthread_mutex_lock(&gate->lock);
    own = gate_tenant_find(gate, tenant);
    newest = own ? own->seen_count : 0;
    oldest = newest > GATE_SEEN ? newest - GATE_SEEN : 0;
    for (uint64_t i = newest; i > oldest && json_array_size(list) < limit; i--) {
        const struct gate_seen *seen = &own->seen[(i - 1) % GATE_SEEN];

        if (risk == POLICY_RISK_COUNT || seen->risk == risk)
            (void) json_array_append_new(list, seen_json(seen));
    }
    (void) pthread_mutex_unlock(&gate->lock);
    return list;
}

int policy_route_violations(struct exchange *x, struct err *err)
{
    const char *wanted = exchange_query(x, "risk"), *many = exchange_query(x, "limit");
    enum policy_risk risk = wanted ? policy_risk_find(wanted) : POLICY_RISK_COUNT;
    struct policy_gate *gate = exchange_app(x)->gate;
    const char *tenant = exchange_caller(x)->tenant;
    uint64_t limit = VIOLATIONS_PAGE;
    struct gate_counts counts;
    json_t *by_risk = json_object();

    if (wanted && risk == POLICY_RISK_COUNT) {
        json_decref(by_risk);
        return form_bad(exchange_caller(x), err, "risk", "must be low, medium, high or critical");
    }
    if (many && (parse_u64(many, &limit, err) < 0 || limit < 1 || limit > GATE_SEEN)) {
        json_decref(by_risk);
        return form_bad(exchange_caller(x), err, "limit", "must be between 1 and %d", GATE_SEEN);
    }
    policy_gate_counts(gate, tenant, &counts);
    for (int i = POLICY_RISK_LOW; i < POLICY_RISK_COUNT; i++)
        (void) json_object_set_new(by_risk, policy_risk_name((enum policy_risk) i),
                                   json_integer((json_int_t) counts.by_risk[i]));
    return exchange_reply_json(x, 200,
                               json_pack("{s:o, s:{s:I, s:I, s:o}}", "violations",
                                         seen_list(gate, tenant, risk, limit), "stats", "checked",
                                         (json_int_t) counts.checked, "denied",
                                         (json_int_t) counts.denied, "by_risk", by_risk),
                               err);
}
