/* report.h - what an analysis found.
 *
 * Owns:    its texts, from policy_report_init to policy_report_done.
 * Callers: the analyser fills it; the server reads the arrays and writes its own JSON.
 * Never:   grows without bound: what does not fit is counted in `dropped`. */
#ifndef COVE_POLICY_REPORT_H
#define COVE_POLICY_REPORT_H

#include "policy/rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_VIOLATIONS_MAX 64
#define POLICY_PROGRAMS_MAX   128
#define POLICY_PATHS_MAX      256
#define POLICY_REASON_MAX     160

enum policy_access { POLICY_READ, POLICY_WRITE };

#define POLICY_WHITELIST_RULE "policy.command-whitelist" /* its detail is the program */

struct policy_violation {
    const char *rule;        /* id, such as "destructive.rm-root"; static */
    const char *description; /* static */
    enum policy_risk risk;
    bool denied;           /* this one alone refuses the command */
    size_t offset, length; /* in the command that was given, in bytes */
    char *command;         /* as it would run: variables, quotes and encodings resolved, cut */
    /* the pattern of the policy that it met, or the program that no pattern is for; "" for built-in rules */
    char *detail;
};

struct policy_path {
    char *path; /* absolute and without . and .. where the working directory is known */
    enum policy_access access;
};

struct policy_report {
    bool allowed;
    bool complete;                  /* false: judged by what could be parsed */
    char reason[POLICY_REASON_MAX]; /* why it is not complete; "" when it is */
    enum policy_risk risk;          /* the highest of all violations */
    struct policy_violation violations[POLICY_VIOLATIONS_MAX];
    size_t violation_count;
    char *programs[POLICY_PROGRAMS_MAX]; /* each once, in order of appearance, without directory */
    size_t program_count;
    struct policy_path paths[POLICY_PATHS_MAX];
    size_t path_count;
    uint32_t dropped;           /* findings beyond the arrays */
    uint32_t steps, steps_most; /* work that the analysis took, and how much it might have */
    uint64_t cpu_us;            /* and what that came to on this machine */
};

void policy_report_init(struct policy_report *report);
void policy_report_done(struct policy_report *report);

/* The violation that speaks for the verdict: the first of those that deny, else the first of the
 * highest risk. NULL: none. */
const struct policy_violation *policy_report_worst(const struct policy_report *report);

/* For the analyser. One violation is kept per rule and position. */
void report_violation(struct policy_report *report, enum rule rule, bool denied, size_t offset,
                      size_t length, const char *command, const char *detail);
void report_program(struct policy_report *report, const char *name);
void report_path(struct policy_report *report, const char *path, enum policy_access access);
void report_incomplete(struct policy_report *report, const char *reason);

#endif
