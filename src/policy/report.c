#include "policy/report.h"

#include "base/own.h"

#include <stdio.h>
#include <string.h>

void policy_report_init(struct policy_report *report)
{
    memset(report, 0, sizeof *report);
    report->allowed = true;
    report->complete = true;
}

void policy_report_done(struct policy_report *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->violation_count; i++) {
        free(report->violations[i].command);
        free(report->violations[i].detail);
    }
    for (size_t i = 0; i < report->program_count; i++)
        free(report->programs[i]);
    for (size_t i = 0; i < report->path_count; i++)
        free(report->paths[i].path);
    report->violation_count = report->program_count = report->path_count = 0;
}

const struct policy_violation *policy_report_worst(const struct policy_report *report)
{
    const struct policy_violation *worst = NULL;

    for (size_t i = 0; i < report->violation_count; i++) {
        const struct policy_violation *it = &report->violations[i];

        if (!worst || (it->denied && !worst->denied) ||
            (it->denied == worst->denied && it->risk > worst->risk))
            worst = it;
    }
    return worst;
}

void report_incomplete(struct policy_report *report, const char *reason)
{
    if (!report->complete)
        return;
    report->complete = false;
    (void) snprintf(report->reason, sizeof report->reason, "%s", reason);
}

/* A finding that cannot be kept still counts for the verdict. */
static char *keep(struct policy_report *report, const char *text)
{
    char *copy = strdup(text);

    if (!copy) {
        report->allowed = false;
        report_incomplete(report, "out of memory");
    }
    return copy;
}

void report_violation(struct policy_report *report, enum rule rule, bool denied, size_t offset,
                      size_t length, const char *command, const char *detail)
{
    const struct policy_rule *info = &policy_rules[rule];
    struct policy_violation *it;
    char *copy, *more;

    if (denied)
        report->allowed = false;
    if (info->risk > report->risk)
        report->risk = info->risk;
    for (size_t i = 0; i < report->violation_count; i++) {
        it = &report->violations[i];
        if (it->rule == info->id && it->offset == offset && it->length == length &&
            strcmp(it->detail, detail) == 0)
            return;
    }
    if (report->violation_count == ARRAY_LEN(report->violations)) {
        report->dropped++;
        return;
    }
    copy = keep(report, command);
    more = keep(report, detail);
    if (!copy || !more) {
        free(copy);
        free(more);
        return;
    }
    report->violations[report->violation_count++] = (struct policy_violation){
        .rule = info->id,
        .description = info->description,
        .risk = info->risk,
        .denied = denied,
        .offset = offset,
        .length = length,
        .command = copy,
        .detail = more,
    };
}

void report_program(struct policy_report *report, const char *name)
{
    char *copy;

    for (size_t i = 0; i < report->program_count; i++)
        if (strcmp(report->programs[i], name) == 0)
            return;
    if (report->program_count == ARRAY_LEN(report->programs)) {
        report->dropped++;
        return;
    }
    copy = keep(report, name);
    if (copy)
        report->programs[report->program_count++] = copy;
}

void report_path(struct policy_report *report, const char *path, enum policy_access access)
{
    char *copy;

    for (size_t i = 0; i < report->path_count; i++)
        if (report->paths[i].access == access && strcmp(report->paths[i].path, path) == 0)
            return;
    if (report->path_count == ARRAY_LEN(report->paths)) {
        report->dropped++;
        return;
    }
    copy = keep(report, path);
    if (copy)
        report->paths[report->path_count++] = (struct policy_path){ copy, access };
}
