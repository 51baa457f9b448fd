/* Which policy counts: that of the sandbox, if it was made with rules of its own, else its tenant's or E2B's. Finding it out
 * costs a look into the store, so the answer is kept in a small table that ids are hashed into; ids are
 * never used twice and rules never change, so an entry is right for ever, and a collision only costs another look.
 *
 * A policy is shared by those who analyse with it and by the table, and counted under the lock: it goes with the
 * last of them. The analysis itself runs without the lock. */
#include "server/guard/policy_gate.h"

#include "base/hash.h"
#include "base/own.h"
#include "server/guard/policy_config.h"
#include "server/guard/policy_gate_own.h"

#include <stdio.h>
#include <string.h>

static struct gate_rules *rules_of_preset(const char *preset, bool root, struct err *err)
{
    struct gate_rules *rules = calloc(1, sizeof *rules);

    if (!rules) {
        err_set(err, ERR_NO_MEMORY, "no memory for the policy");
        return NULL;
    }
    rules->refs = 1;
    if (policy_from_json(&rules->policy, NULL, preset, NULL, err) == 0) {
        rules->policy.allow_root |= root;
        return rules;
    }
    free(rules);
    return NULL;
}

static void rules_unref(struct gate_rules *rules)
{
    if (!rules || --rules->refs > 0)
        return;
    policy_done(&rules->policy);
    free(rules);
}

struct policy_gate *policy_gate_new(const char *preset, const char *e2b, struct err *err)
{
    struct policy_gate *gate = calloc(1, sizeof *gate);

    if (!gate) {
        err_set(err, ERR_NO_MEMORY, "no memory for the policy");
        return NULL;
    }
    (void) pthread_mutex_init(&gate->lock, NULL);
    if (!(gate->tenant_policy = rules_of_preset(preset, false, err)) ||
        !(gate->tenant_root = rules_of_preset(preset, true, err)) ||
        !(gate->e2b_policy = rules_of_preset(e2b ? e2b : preset, false, err))) {
        policy_gate_free(gate);
        return NULL;
    }
    return gate;
}

void policy_gate_free(struct policy_gate *gate)
{
    if (!gate)
        return;
    for (size_t i = 0; i < GATE_BOXES; i++)
        rules_unref(gate->boxes[i].rules);
    rules_unref(gate->e2b_policy);
    rules_unref(gate->tenant_root);
    rules_unref(gate->tenant_policy);
    while (gate->tenants) {
        struct gate_tenant *tenant = gate->tenants;

        gate->tenants = tenant->next;
        free(tenant->seen);
        free(tenant);
    }
    (void) pthread_mutex_destroy(&gate->lock);
    free(gate);
}

int policy_gate_within(struct app *app, const struct policy *policy, const char **ret_member,
                       struct err *err)
{
    return policy_within(policy, &app->gate->tenant_policy->policy, ret_member, err);
}

/* ---- which policy ---- */

/* The rules in a sandbox's metadata; *ret NULL: none, and *ret_preset says what counts instead. */
static int rules_read(struct app *app, const char *sandbox, struct gate_rules **ret,
                      struct gate_rules **ret_preset, struct err *err)
{
    auto_free struct store_sandbox *box = malloc(sizeof *box);
    struct gate_rules *rules = NULL;
    json_t *metadata, *security = NULL;
    const char *text;
    bool e2b, root;
    int r = 0;

    *ret = NULL;
    if (!box)
        return err_set(err, ERR_NO_MEMORY, "no memory for the policy");
    if (store_sandbox_get(app->store, NULL, sandbox, box, err) < 0)
        return -1;
    metadata = json_loads(box->metadata[0] ? box->metadata : "{}", 0, NULL);
    e2b = json_is_true(json_object_get(metadata, GATE_E2B));
    root = json_is_true(json_object_get(metadata, GATE_ROOT));
    *ret_preset = e2b    ? app->gate->e2b_policy
                  : root ? app->gate->tenant_root
                         : app->gate->tenant_policy;
    text = gate_metadata(metadata, GATE_METADATA);
    if (text) {
        security = json_loads(text, 0, NULL);
        rules = calloc(1, sizeof *rules);
        r = !security || !rules
                ? err_set(err, ERR_INTERNAL, "the rules of the sandbox cannot be read")
                : policy_from_json(&rules->policy, security, NULL, NULL, err);
    }
    json_decref(security);
    json_decref(metadata);
    if (r < 0 || !rules) {
        free(rules);
        return r;
    }
    rules->refs = 1;
    *ret = rules;
    return 0;
}

/* A counted reference; -1: it cannot be known, so nothing may pass. */
static int rules_of(struct app *app, const char *sandbox, struct gate_rules **ret, struct err *err)
{
    struct policy_gate *gate = app->gate;
    struct gate_rules *rules = NULL, *preset = NULL;
    struct gate_box *slot;
    bool known = !sandbox || !app->store || !id_ok(sandbox);

    (void) pthread_mutex_lock(&gate->lock);
    slot = &gate->boxes[hash_text(HASH_START, sandbox) % GATE_BOXES];
    if (!known && strcmp(slot->sandbox, sandbox) == 0) {
        known = true;
        rules = slot->rules;
    }
    if (known) {
        *ret = rules ? rules : gate->tenant_policy;
        (*ret)->refs++;
    }
    (void) pthread_mutex_unlock(&gate->lock);
    if (known)
        return 0;
    if (rules_read(app, sandbox, &rules, &preset, err) < 0) {
        if (err->kind != ERR_NO_SANDBOX)
            return -1;
        return rules_of(app, NULL, ret, err); /* the caller will hear that it is not there */
    }
    (void) pthread_mutex_lock(&gate->lock);
    rules_unref(slot->rules);
    if (!rules) {
        rules = preset;
        rules->refs++;
    }
    slot->rules = rules;
    (void) snprintf(slot->sandbox, sizeof slot->sandbox, "%s", sandbox);
    *ret = rules;
    (*ret)->refs++;
    (void) pthread_mutex_unlock(&gate->lock);
    return 0;
}

/* ---- what was found ---- */

struct gate_tenant *gate_tenant_find(struct policy_gate *gate, const char *name)
{
    struct gate_tenant *tenant = gate->tenants;

    while (tenant && strcmp(tenant->name, name) != 0)
        tenant = tenant->next;
    return tenant;
}

static struct gate_tenant *tenant_of(struct policy_gate *gate, const char *name)
{
    struct gate_tenant *tenant = gate_tenant_find(gate, name);

    if (!tenant && (tenant = calloc(1, sizeof *tenant))) {
        (void) snprintf(tenant->name, sizeof tenant->name, "%s", name);
        tenant->next = gate->tenants;
        gate->tenants = tenant;
    }
    return tenant;
}

/* Without memory the counts still have it, and the audit log. */
static void remember(struct gate_tenant *tenant, const char *sandbox,
                     const struct policy_violation *violation, bool refused)
{
    struct gate_seen *seen;

    if (!tenant->seen && !(tenant->seen = calloc(GATE_SEEN, sizeof *tenant->seen)))
        return;
    seen = &tenant->seen[tenant->seen_count++ % GATE_SEEN];
    *seen = (struct gate_seen){ .time_ms = store_now_ms(),
                                .rule = violation->rule,
                                .description = violation->description,
                                .risk = violation->risk,
                                .refused = refused };
    (void) snprintf(seen->sandbox, sizeof seen->sandbox, "%s", sandbox ? sandbox : "");
    (void) snprintf(seen->command, sizeof seen->command, "%s",
                    violation->command ? violation->command : "");
}

/* "'nmap' ", or "" where that would not be plain text: the name is the client's. */
static const char *plain_name(const struct policy_violation *violation, char *out, size_t size)
{
    const char *name = violation->detail ? violation->detail : "";
    size_t len = 0;

    while (name[len] > ' ' && name[len] < 0x7f)
        len++;
    if (len == 0 || name[len] || len + sizeof "'' " > size)
        return "";
    (void) snprintf(out, size, "'%s' ", name);
    return out;
}

/* Verdict, counts, ring; the report and the reference to the rules end here. */
static int conclude(struct app *app, const struct caller *caller, const char *sandbox,
                    struct gate_rules *rules, struct policy_report *report,
                    struct policy_verdict *ret, struct err *err)
{
    const struct policy_violation *worst = policy_report_worst(report);
    struct policy_gate *gate = app->gate;
    struct gate_tenant *tenant;
    char name[48];
    int r = 0;

    *ret = (struct policy_verdict){ .risk = report->risk,
                                    .allowed = report->allowed,
                                    .complete = report->complete,
                                    .violations = report->violation_count,
                                    .cpu_us = report->cpu_us };
    if (worst)
        (void) snprintf(ret->rule, sizeof ret->rule, "%s", worst->rule);
    if (!report->allowed && worst)
        r = err_set(err, ERR_DENIED, "refused by policy: %s%s (rule %s, risk %s)",
                    strcmp(worst->rule, POLICY_WHITELIST_RULE) == 0
                        ? plain_name(worst, name, sizeof name)
                        : "",
                    worst->description, worst->rule, policy_risk_name(worst->risk));
    else if (!report->allowed)
        r = err_set(err, ERR_DENIED, "refused by policy");
    (void) pthread_mutex_lock(&gate->lock);
    tenant = tenant_of(gate, caller->tenant);
    if (tenant) {
        tenant->counts.checked++;
        tenant->counts.denied += !report->allowed;
        for (size_t i = 0; i < report->violation_count; i++) {
            tenant->counts.by_risk[report->violations[i].risk]++;
            remember(tenant, sandbox, &report->violations[i], report->violations[i].denied);
        }
    }
    rules_unref(rules);
    (void) pthread_mutex_unlock(&gate->lock);
    policy_report_done(report);
    return r;
}

/* ---- the checks ---- */

int policy_gate_command(struct app *app, const struct caller *caller, const char *sandbox,
                        const char *command, struct policy_verdict *ret, struct err *err)
{
    struct policy_report report;
    struct gate_rules *rules;

    memset(ret, 0, sizeof *ret);
    if (rules_of(app, sandbox, &rules, err) < 0)
        return -1;
    policy_analyze(&rules->policy, command, &report);
    return conclude(app, caller, sandbox, rules, &report, ret, err);
}

/* 'it'\''s' */
static size_t quote(char *out, const char *text)
{
    char *at = out;

    *at++ = '\'';
    for (; *text; text++) {
        if (*text == '\'') {
            memcpy(at, "'\\''", 4);
            at += 4;
        } else {
            *at++ = *text;
        }
    }
    *at++ = '\'';
    return (size_t) (at - out);
}

int policy_gate_args(struct app *app, const struct caller *caller, const char *sandbox,
                     const char *const *args, size_t count, struct policy_verdict *ret,
                     struct err *err)
{
    auto_free char *command = NULL;
    size_t size = 1, at = 0;

    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < count; i++)
        size += 4 * strlen(args[i]) + 3;
    if (!(command = malloc(size)))
        return err_set(err, ERR_NO_MEMORY, "no memory for the policy");
    for (size_t i = 0; i < count; i++) {
        at += quote(command + at, args[i]);
        command[at++] = ' ';
    }
    command[at] = '\0';
    return policy_gate_command(app, caller, sandbox, command, ret, err);
}

int policy_gate_path(struct app *app, const struct caller *caller, const char *sandbox,
                     const char *path, enum policy_access access, struct policy_verdict *ret,
                     struct err *err)
{
    struct policy_report report;
    struct gate_rules *rules;

    memset(ret, 0, sizeof *ret);
    if (rules_of(app, sandbox, &rules, err) < 0)
        return -1;
    policy_analyze_path(&rules->policy, path, access, &report);
    return conclude(app, caller, sandbox, rules, &report, ret, err);
}

int policy_gate_tool(struct app *app, const struct caller *caller, const char *sandbox,
                     const char *tool, struct policy_verdict *ret, struct err *err)
{
    struct policy_report report;
    struct gate_rules *rules;

    memset(ret, 0, sizeof *ret);
    if (rules_of(app, sandbox, &rules, err) < 0)
        return -1;
    policy_analyze_tool(&rules->policy, tool, &report);
    return conclude(app, caller, sandbox, rules, &report, ret, err);
}

/* ---- what a list finds ---- */

int policy_gate_sieve_open(struct app *app, const char *sandbox, struct gate_sieve *ret,
                           struct err *err)
{
    struct gate_rules *rules;

    if (rules_of(app, sandbox, &rules, err) < 0)
        return -1;
    *ret = (struct gate_sieve){ .gate = app->gate, .rules = rules };
    return 0;
}

bool policy_gate_sieve_passes(struct gate_sieve *sieve, const char *path)
{
    struct policy_report report;

    if (sieve->last && strcmp(sieve->last, path) == 0)
        return sieve->last_passes;
    policy_analyze_path(&sieve->rules->policy, path, POLICY_READ, &report);
    free(sieve->last);
    sieve->last = strdup(path); /* NULL: the next is looked at for itself */
    sieve->last_passes = report.allowed;
    policy_report_done(&report);
    return sieve->last_passes;
}

void policy_gate_sieve_close(struct gate_sieve *sieve)
{
    (void) pthread_mutex_lock(&sieve->gate->lock);
    rules_unref(sieve->rules);
    (void) pthread_mutex_unlock(&sieve->gate->lock);
    free(sieve->last);
}

void policy_gate_counts(struct policy_gate *gate, const char *tenant, struct gate_counts *ret)
{
    memset(ret, 0, sizeof *ret);
    (void) pthread_mutex_lock(&gate->lock);
    for (const struct gate_tenant *t = gate->tenants; t; t = t->next) {
        if (tenant && strcmp(t->name, tenant) != 0)
            continue;
        ret->checked += t->counts.checked;
        ret->denied += t->counts.denied;
        for (size_t i = 0; i < POLICY_RISK_COUNT; i++)
            ret->by_risk[i] += t->counts.by_risk[i];
    }
    (void) pthread_mutex_unlock(&gate->lock);
}
