/* policy.h - what commands and tools a caller may use, and the analyser that says so.
 *
 * Owns:    lists and compiled patterns, from policy_init to policy_done.
 * Callers: the operations layer of the server, once per command, path or tool call.
 * Never:   a boundary. It is advice to well-meaning agents: a program can always do what its
 *          command line does not say. Isolation is what holds against the others.
 *
 * A policy is filled, compiled, and read-only from then on: any number of threads may analyse with
 * it at once. An analysis is bounded in time, memory and depth whatever it is given, and needs at
 * most 160 KiB of stack. */
#ifndef COVE_POLICY_POLICY_H
#define COVE_POLICY_POLICY_H

#include "base/err.h"
#include "policy/report.h"
#include "policy/rules.h"

#include <stdbool.h>
#include <stddef.h>

#define POLICY_COMMAND_MAX (256 * 1024) /* bytes; longer ones are refused */
#define POLICY_PATTERN_MAX 512          /* bytes of one pattern, path or name */
#define POLICY_LIST_MAX    128          /* entries of one list */

enum policy_list {
    POLICY_ALLOWED_TOOLS, /* when not empty: only these */
    POLICY_BLOCKED_TOOLS,
    POLICY_COMMAND_BLACKLIST, /* regexes: the text given, and each command as it would run */
    POLICY_COMMAND_WHITELIST, /* when not empty: regexes, the whole name of every program run */
    POLICY_BLOCKED_PATHS,     /* absolute or ~/...; globs; everything beneath is blocked too */
    POLICY_WAIVED_RULES,      /* ids of built-in rules that are not to be applied */
    POLICY_LIST_COUNT
};

struct policy_entry {
    char *text;
    void *regex; /* pcre2_code of the two command lists, after policy_compile */
};

struct policy {
    struct policy_entry lists[POLICY_LIST_COUNT][POLICY_LIST_MAX];
    size_t counts[POLICY_LIST_COUNT];
    bool waived[RULE_COUNT];
    bool allow_root;           /* sudo, su and the like are no violation */
    bool network;              /* curl, wget and the like are no violation */
    enum policy_risk max_risk; /* the highest that is allowed */
    char workdir[256];         /* where commands start: relative paths are resolved from here */
    char home[256];
    bool compiled;
};

/* An empty policy: built-in rules, max_risk medium, no root, no network. */
void policy_init(struct policy *policy);
void policy_done(struct policy *policy);

/* "minimal", "standard" or "development": fills a policy that policy_init made. */
int policy_preset(struct policy *policy, const char *name, struct err *err);
/* The n-th preset's name; NULL behind the last. */
const char *policy_preset_name(size_t n);

/* The list's name in JSON and messages: "command_blacklist" ... */
const char *policy_list_name(enum policy_list list);

/* Checks size, count and form; a regex is checked by policy_compile. */
int policy_add(struct policy *policy, enum policy_list list, const char *text, struct err *err);

/* Once, after the last policy_add and before the first analysis. Names the pattern that is bad. */
int policy_compile(struct policy *policy, struct err *err);

/* Whether everything that `policy` lets pass, `base` lets pass as well. -1 with ERR_DENIED, and in *ret_member (may be
 * NULL) the name of what would be loosened: "network", "max_risk", a list's. Lists are compared by their texts. */
int policy_within(const struct policy *policy, const struct policy *base, const char **ret_member,
                  struct err *err);

/* These never fail: what cannot be understood is in the report. The report is init'ed here and is
 * the caller's to policy_report_done. The policy must be compiled. */
void policy_analyze(const struct policy *policy, const char *command, struct policy_report *report);

/* A file that a tool wants to read or write. */
void policy_analyze_path(const struct policy *policy, const char *path, enum policy_access access,
                         struct policy_report *report);

/* Code of "python", "javascript", "perl", "ruby", "php", "awk" or a shell; other languages are
 * searched for what all of them have in common. */
void policy_analyze_code(const struct policy *policy, const char *language, const char *code,
                         struct policy_report *report);

/* Whether the tool may be called at all. */
void policy_analyze_tool(const struct policy *policy, const char *tool,
                         struct policy_report *report);

#endif
