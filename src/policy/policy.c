#include "policy/policy.h"

#include "base/own.h"
#include "policy/analysis.h"
#include "policy/code.h"
#include "policy/eval.h"
#include "policy/judge.h"
#include "policy/match.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    bool regex;
} lists[] = {
    [POLICY_ALLOWED_TOOLS] = { "allowed_tools", false },
    [POLICY_BLOCKED_TOOLS] = { "blocked_tools", false },
    [POLICY_COMMAND_BLACKLIST] = { "command_blacklist", true },
    [POLICY_COMMAND_WHITELIST] = { "command_whitelist", true },
    [POLICY_BLOCKED_PATHS] = { "blocked_paths", false },
    [POLICY_WAIVED_RULES] = { "waived_rules", false },
};
_Static_assert(ARRAY_LEN(lists) == POLICY_LIST_COUNT, "every list has a row");

void policy_init(struct policy *policy)
{
    memset(policy, 0, sizeof *policy);
    policy->max_risk = POLICY_RISK_MEDIUM;
    (void) strcpy(policy->workdir, "/home/user");
    (void) strcpy(policy->home, "/home/user");
}

void policy_done(struct policy *policy)
{
    if (!policy)
        return;
    for (int list = 0; list < POLICY_LIST_COUNT; list++) {
        for (size_t i = 0; i < policy->counts[list]; i++) {
            free(policy->lists[list][i].text);
            match_free(policy->lists[list][i].regex);
        }
        policy->counts[list] = 0;
    }
    policy->compiled = false;
}

const char *policy_list_name(enum policy_list list)
{
    return (unsigned) list < POLICY_LIST_COUNT ? lists[list].name : "";
}

int policy_add(struct policy *policy, enum policy_list list, const char *text, struct err *err)
{
    const char *name = lists[list].name;
    size_t count = policy->counts[list];
    enum rule rule;

    if (policy->compiled)
        return err_set(err, ERR_STATE, "%s: the policy is in use", name);
    if (!*text)
        return err_set(err, ERR_INVALID, "%s: an entry is empty", name);
    if (strlen(text) > POLICY_PATTERN_MAX)
        return err_set(err, ERR_TOO_BIG, "%s: an entry is longer than %d bytes", name,
                       POLICY_PATTERN_MAX);
    if (count == POLICY_LIST_MAX)
        return err_set(err, ERR_TOO_BIG, "%s: more than %d entries", name, POLICY_LIST_MAX);
    if (list == POLICY_BLOCKED_PATHS && *text != '/' && strncmp(text, "~/", 2) != 0 &&
        strncmp(text, "**/", 3) != 0)
        return err_set(err, ERR_INVALID, "%s: '%.80s' must start with /, ~/ or **/", name, text);
    if (list == POLICY_WAIVED_RULES) {
        rule = policy_rule_find(text);
        if (rule == RULE_NONE || policy_rules[rule].always_denies)
            return err_set(err, ERR_INVALID, "%s: '%.80s' is not a built-in rule", name, text);
        policy->waived[rule] = true;
    }
    policy->lists[list][count].text = strdup(text);
    if (!policy->lists[list][count].text)
        return err_set(err, ERR_NO_MEMORY, "%s: out of memory", name);
    policy->counts[list]++;
    return 0;
}

int policy_compile(struct policy *policy, struct err *err)
{
    for (int list = 0; list < POLICY_LIST_COUNT; list++) {
        if (!lists[list].regex)
            continue;
        for (size_t i = 0; i < policy->counts[list]; i++) {
            struct policy_entry *entry = &policy->lists[list][i];

            if (!entry->regex)
                entry->regex = match_compile(entry->text, err);
            if (!entry->regex)
                return err_wrap(err, "%s", lists[list].name);
        }
    }
    policy->compiled = true;
    return 0;
}

/* What is to be analysed, for the functions that run inside the guard. */
struct job {
    const char *text;
    size_t len;
    const char *language;
    enum policy_access access;
};

static void run_command(struct analysis *an, void *arg)
{
    const struct job *job = arg;
    struct source src = { job->text, job->len, an->whole, true };

    judge_blacklist(an, job->text, job->len, an->whole, text_shown(an, job->text, job->len));
    eval_source(an, &src, NULL, NULL);
}

static void run_path(struct analysis *an, void *arg)
{
    const struct job *job = arg;
    struct field field = { .text = job->text, .len = job->len, .at = an->whole };

    if (job->text[0] == '~' && (!job->text[1] || job->text[1] == '/')) {
        struct sink full = { 0 };

        sink_add(an, &full, an->policy->home, strlen(an->policy->home));
        sink_add(an, &full, job->text + 1, job->len - 1);
        field.text = sink_flow(an, &full).text;
        field.len = full.len;
    }
    judge_path(an, &field, job->access, an->whole, job->text);
}

static void run_code(struct analysis *an, void *arg)
{
    const struct job *job = arg;
    struct flow code = { job->text, job->len, 0 };
    struct command c = { .name = job->language, .shown = job->language, .at = an->whole };

    judge_blacklist(an, job->text, job->len, an->whole, text_shown(an, job->text, job->len));
    if (shell_is(job->language) || strcmp(job->language, "shell") == 0)
        eval_text(an, code.text, code.len, an->whole, NULL, NULL);
    else
        code_run(an, job->language, code, &c);
}

static void analyze(const struct policy *policy, struct job *job,
                    void (*run)(struct analysis *an, void *arg), struct policy_report *report)
{
    struct analysis an;

    assert(policy->compiled);
    policy_report_init(report);
    analysis_init(&an, policy, report, job->len);
    if (job->len > POLICY_COMMAND_MAX) {
        report_incomplete(report, "longer than can be analysed");
        violate(&an, RULE_TOO_COMPLEX, an.whole, "");
    } else {
        (void) analysis_guard(&an, run, job);
    }
    report->steps = an.steps;
    report->steps_most = an.steps_most;
    report->cpu_us = analysis_cpu_us(&an);
    analysis_done(&an);
}

void policy_analyze(const struct policy *policy, const char *command, struct policy_report *report)
{
    struct job job = { .text = command, .len = strlen(command) };

    analyze(policy, &job, run_command, report);
}

void policy_analyze_path(const struct policy *policy, const char *path, enum policy_access access,
                         struct policy_report *report)
{
    struct job job = { .text = path, .len = strlen(path), .access = access };

    analyze(policy, &job, run_path, report);
}

void policy_analyze_code(const struct policy *policy, const char *language, const char *code,
                         struct policy_report *report)
{
    struct job job = { .text = code, .len = strlen(code), .language = language };

    analyze(policy, &job, run_code, report);
}

static bool in_list(const struct policy *policy, enum policy_list list, const char *text)
{
    for (size_t i = 0; i < policy->counts[list]; i++)
        if (strcmp(policy->lists[list][i].text, text) == 0)
            return true;
    return false;
}

void policy_analyze_tool(const struct policy *policy, const char *tool,
                         struct policy_report *report)
{
    bool blocked =
        in_list(policy, POLICY_BLOCKED_TOOLS, tool) ||
        (policy->counts[POLICY_ALLOWED_TOOLS] && !in_list(policy, POLICY_ALLOWED_TOOLS, tool));

    policy_report_init(report);
    if (blocked)
        report_violation(report, RULE_BLOCKED_TOOL, true, 0, 0, tool, "");
}

/* ---- comparing ---- */

/* Every entry of `some` is in `all`. */
static bool is_subset(const struct policy *some, const struct policy *all, enum policy_list list)
{
    for (size_t i = 0; i < some->counts[list]; i++)
        if (!in_list(all, list, some->lists[list][i].text))
            return false;
    return true;
}

/* A list of what is forbidden may grow; of what alone is allowed, or is not looked at, only shrink. */
static bool list_within(const struct policy *policy, const struct policy *base,
                        enum policy_list list)
{
    switch (list) {
    case POLICY_BLOCKED_TOOLS:
    case POLICY_COMMAND_BLACKLIST:
    case POLICY_BLOCKED_PATHS:
        return is_subset(base, policy, list);
    case POLICY_ALLOWED_TOOLS:
    case POLICY_COMMAND_WHITELIST:
        return base->counts[list] == 0 ||
               (policy->counts[list] > 0 && is_subset(policy, base, list));
    case POLICY_WAIVED_RULES:
        return is_subset(policy, base, list);
    case POLICY_LIST_COUNT:
        break;
    }
    return false;
}

int policy_within(const struct policy *policy, const struct policy *base, const char **ret_member,
                  struct err *err)
{
    const char *member = NULL;

    for (int list = 0; list < POLICY_LIST_COUNT && !member; list++)
        if (!list_within(policy, base, (enum policy_list) list))
            member = policy_list_name((enum policy_list) list);
    if (policy->allow_root && !base->allow_root)
        member = "allow_root";
    if (policy->network && !base->network)
        member = "network";
    if (policy->max_risk > base->max_risk)
        member = "max_risk";
    if (!member)
        return 0;
    if (ret_member)
        *ret_member = member;
    return err_set(err, ERR_DENIED, "%s would be looser than the tenant's policy", member);
}
