#include "policy/judge.h"

#include "base/own.h"
#include "policy/match.h"
#include "policy/paths.h"

#include <string.h>

#define REGEX_RUNS_MAX 8192
#define SLOW_REGEX_US  500
#define SLOW_US_MAX    100000 /* of all slow patterns in one analysis */

bool judge_is_secret(enum rule rule)
{
    return rule == RULE_CRED_SYSTEM || rule == RULE_CRED_USER || rule == RULE_CRED_PROCESS;
}

/* The policy's lists. */

/* What a pattern costs is known only afterwards. One that backtracks for long is paid by the clock; no ordinary one
 * comes near, also not on a machine whose clock jumps by some milliseconds. */
static enum match search(struct analysis *an, const struct policy_entry *entry, const char *text,
                         size_t len, bool whole)
{
    uint64_t before, took;
    enum match found;

    spend(an, 64 + len / 8);
    if (++an->regex_runs > REGEX_RUNS_MAX)
        longjmp(an->out, 1);
    before = analysis_cpu_us(an);
    found = whole ? match_whole(entry->regex, text, len) : match_search(entry->regex, text, len);
    took = analysis_cpu_us(an) - before;
    if (took > SLOW_REGEX_US)
        an->slow_us += took;
    if (an->slow_us > SLOW_US_MAX)
        longjmp(an->out, 1);
    return found;
}

void judge_blacklist(struct analysis *an, const char *text, size_t len, struct span at,
                     const char *shown)
{
    const struct policy *policy = an->policy;

    for (size_t i = 0; i < policy->counts[POLICY_COMMAND_BLACKLIST]; i++) {
        const struct policy_entry *entry = &policy->lists[POLICY_COMMAND_BLACKLIST][i];

        switch (search(an, entry, text, len, false)) {
        case MATCH_NO:
            break;
        case MATCH_YES:
            violate_list(an, RULE_BLACKLIST, at, shown, entry->text);
            break;
        case MATCH_FAILED:
            violate_list(an, RULE_REGEX_FAILED, at, shown, entry->text);
            break;
        }
    }
}

/* What a shell needs to be a shell; none of these starts a program. */
static const char *const always_white[] = {
    ":",    "true",  "false", "test",  "[",   "exit", "return", "break", "continue", "shift",
    "wait", "local", "read",  "unset", "set", "trap", "umask",  "let",   "getopts",
};

void judge_whitelist(struct analysis *an, const char *name, struct span at, const char *shown)
{
    const struct policy *policy = an->policy;
    bool failed = false;

    if (!policy->counts[POLICY_COMMAND_WHITELIST])
        return;
    for (size_t i = 0; i < ARRAY_LEN(always_white); i++)
        if (strcmp(name, always_white[i]) == 0)
            return;
    for (size_t i = 0; i < policy->counts[POLICY_COMMAND_WHITELIST]; i++) {
        enum match match =
            search(an, &policy->lists[POLICY_COMMAND_WHITELIST][i], name, strlen(name), true);

        if (match == MATCH_YES && !is_unknown(name))
            return;
        failed |= match == MATCH_FAILED;
    }
    if (failed)
        violate(an, RULE_REGEX_FAILED, at, shown);
    else
        violate_list(an, RULE_WHITELIST, at, shown, name);
}

/* Paths. */

/* The entry that blocks it; NULL: none. */
static const char *blocked_by(struct analysis *an, const char *path, bool is_glob)
{
    const struct policy *policy = an->policy;

    for (size_t i = 0; i < policy->counts[POLICY_BLOCKED_PATHS]; i++) {
        const char *pattern = policy->lists[POLICY_BLOCKED_PATHS][i].text;

        if (strncmp(pattern, "~/", 2) == 0) {
            struct sink full = { 0 };

            sink_add(an, &full, policy->home, strlen(policy->home));
            sink_add(an, &full, pattern + 1, strlen(pattern + 1));
            pattern = sink_flow(an, &full).text;
        }
        spend(an, 4 + (is_glob ? strlen(path) / 4 : strlen(path) / 64));
        if (path_meets(pattern, path, is_glob))
            return policy->lists[POLICY_BLOCKED_PATHS][i].text;
    }
    return NULL;
}

static void judge_resolved(struct analysis *an, const char *path, bool is_glob,
                           enum policy_access access, bool rules, struct span at, const char *shown)
{
    const char *entry = blocked_by(an, path, is_glob);

    if (entry)
        violate_list(an, RULE_BLOCKED_PATH, at, shown, entry);
    if (rules)
        violate(an, path_rule(an, path, is_glob, access), at, shown);
}

void judge_path(struct analysis *an, const struct field *path, enum policy_access access,
                struct span at, const char *shown)
{
    const char *resolved = path_resolve(an, path->text);

    if (*resolved)
        report_path(an->report, resolved, access);
    judge_resolved(an, resolved, path->glob, access, true, at, shown);
}

/* What programs do with their operands, where it is not just reading. */
enum use { USE_TEXT, USE_NAMES, USE_PATTERN, USE_WRITE, USE_WRITE_LAST };

static const struct {
    const char *name;
    enum use use;
} uses[] = {
    /* clang-format off */
    { "echo", USE_TEXT },     { "printf", USE_TEXT },   { "export", USE_TEXT },  { "alias", USE_TEXT },
    { "trap", USE_TEXT },     { "eval", USE_TEXT },     { "true", USE_TEXT },    { ":", USE_TEXT },
    { "declare", USE_TEXT },  { "local", USE_TEXT },    { "expr", USE_TEXT },    { "set", USE_TEXT },
    { "ls", USE_NAMES },      { "stat", USE_NAMES },    { "test", USE_NAMES },   { "[", USE_NAMES },
    { "cd", USE_NAMES },      { "pushd", USE_NAMES },   { "mkdir", USE_NAMES },  { "basename", USE_NAMES },
    { "dirname", USE_NAMES }, { "realpath", USE_NAMES },{ "readlink", USE_NAMES },{ "find", USE_NAMES },
    { "file", USE_NAMES },    { "which", USE_NAMES },   { "ps", USE_NAMES },     { "df", USE_NAMES },
    { "du", USE_NAMES },      { "lsblk", USE_NAMES },
    { "grep", USE_PATTERN },  { "egrep", USE_PATTERN }, { "fgrep", USE_PATTERN },{ "rg", USE_PATTERN },
    { "ag", USE_PATTERN },    { "sed", USE_PATTERN },   { "jq", USE_PATTERN },   { "awk", USE_PATTERN },
    { "gawk", USE_PATTERN },  { "zgrep", USE_PATTERN },
    { "rm", USE_WRITE },      { "unlink", USE_WRITE },  { "rmdir", USE_WRITE },  { "tee", USE_WRITE },
    { "truncate", USE_WRITE },{ "shred", USE_WRITE },   { "touch", USE_WRITE },  { "chmod", USE_WRITE },
    { "chown", USE_WRITE },   { "chgrp", USE_WRITE },   { "chattr", USE_WRITE }, { "setfacl", USE_WRITE },
    { "mv", USE_WRITE },      { "ed", USE_WRITE },      { "patch", USE_WRITE },  { "srm", USE_WRITE },
    { "cp", USE_WRITE_LAST }, { "install", USE_WRITE_LAST }, { "ln", USE_WRITE_LAST },
    { "rsync", USE_WRITE_LAST }, { "scp", USE_WRITE_LAST },
    /* clang-format on */
};

static int use_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(uses); i++)
        if (strcmp(name, uses[i].name) == 0)
            return (int) uses[i].use;
    return -1;
}

/* "-o FILE" and its kin, of the programs where it means a file that is written. */
static bool is_output_option(const char *program, const char *option)
{
    static const struct {
        const char *program, *option;
    } rows[] = {
        { "curl", "-o" },  { "curl", "--output" },
        { "wget", "-O" },  { "wget", "--output-document" },
        { "gcc", "-o" },   { "cc", "-o" },
        { "clang", "-o" }, { "sort", "-o" },
        { "cp", "-t" },    { "mv", "-t" },
        { "tar", "-C" },   { "tar", "--directory" },
        { "wget", "-P" },  { "unzip", "-d" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].program, program) == 0 && strcmp(rows[i].option, option) == 0)
            return true;
    return false;
}

/* The path inside "of=/dev/sda", "--file=/x", "@/x", "name=@/x"; the text itself otherwise. */
static const char *inner_path(const char *text)
{
    const char *equals = strchr(text, '=');

    if (equals && (strchr(equals, '/') || equals[1] == '@'))
        text = equals + 1;
    return *text == '@' ? text + 1 : text;
}

static enum policy_access access_of(const struct command *c, int use, size_t i, size_t operand)
{
    const char *arg = c->argv[i].text;

    if (strncmp(arg, "of=", 3) == 0 || is_output_option(c->name, c->argv[i - 1].text))
        return POLICY_WRITE;
    if (use == USE_WRITE)
        return POLICY_WRITE;
    if (use == USE_WRITE_LAST && i + 1 == c->argc)
        return POLICY_WRITE;
    if (strcmp(c->name, "sed") == 0 && operand > 0 && command_flag(c, 'i', "in-place"))
        return POLICY_WRITE;
    return POLICY_READ;
}

static void judge_argument(struct analysis *an, const struct command *c, int use, size_t i,
                           size_t operand)
{
    struct field field = c->argv[i];
    enum policy_access access = access_of(c, use, i, operand);
    bool listed;

    field.text = inner_path(field.text);
    if (!*field.text || strlen(field.text) > 4096 || (*field.text == '-' && field.text[1]))
        return;
    listed = path_like(field.text);
    if (!listed && (strchr(field.text, '/') || strpbrk(field.text, " \t\n;|<>(){}\"'`:@=,")))
        return;
    if (listed)
        report_path(an->report, path_resolve(an, field.text), access);
    judge_resolved(an, path_resolve(an, field.text), field.glob, access, use != USE_NAMES, c->at,
                   c->shown);
}

static void judge_arguments(struct analysis *an, const struct command *c)
{
    int use = use_of(c->name);
    size_t operand = 0;
    bool pattern =
        use == USE_PATTERN && !command_flag(c, 'e', "regexp") && !command_flag(c, 'f', "file");

    if (use == USE_TEXT)
        return;
    for (size_t i = 1; i < c->argc; i++) {
        if (c->argv[i].text[0] == '-' && !strchr(c->argv[i].text, '='))
            continue;
        if (!(pattern && operand == 0))
            judge_argument(an, c, use, i, operand);
        operand++;
    }
}

/* Variables. */

static bool bad_path_part(const char *part, size_t len)
{
    static const char *const open_to_all[] = { "/tmp", "/var/tmp", "/dev/shm" };

    if (len == 0 || *part == '.')
        return true;
    for (size_t i = 0; i < ARRAY_LEN(open_to_all); i++)
        if (strncmp(part, open_to_all[i], strlen(open_to_all[i])) == 0)
            return true;
    return *part != '/' && *part != UNKNOWN;
}

/* Programs are searched from left to right: what stands behind the usual places replaces nothing. */
static bool path_hijacked(const char *value)
{
    for (const char *at = value; *at;) {
        size_t len = strcspn(at, ":");

        if ((len == 8 && memcmp(at, "/usr/bin", 8) == 0) || (len == 4 && !memcmp(at, "/bin", 4)))
            return false;
        if (bad_path_part(at, len))
            return true;
        at += len;
        at += *at == ':';
    }
    return !is_unknown(value);
}

void judge_assign(struct analysis *an, const char *name, const struct field *value)
{
    static const char *const loaders[] = { "LD_PRELOAD",     "LD_AUDIT",  "BASH_ENV",
                                           "PROMPT_COMMAND", "PERL5OPT",  "PYTHONSTARTUP",
                                           "RUBYOPT",        "GCONV_PATH" };
    struct sink line = { 0 };
    const char *shown;

    sink_add(an, &line, name, strlen(name));
    sink_char(an, &line, '=');
    sink_add(an, &line, value->text, value->len);
    shown = text_shown(an, line.text, line.len);
    for (size_t i = 0; i < ARRAY_LEN(loaders); i++)
        if (strcmp(name, loaders[i]) == 0 && value->len)
            violate(an, RULE_PRELOAD, value->at, shown);
    if (strcmp(name, "PATH") == 0 && path_hijacked(value->text))
        violate(an, RULE_PATH_HIJACK, value->at, shown);
    if (strcmp(name, "LD_LIBRARY_PATH") == 0 && value->len &&
        bad_path_part(value->text, strcspn(value->text, ":")))
        violate(an, RULE_PATH_HIJACK, value->at, shown);
    if ((strcmp(name, "HISTFILE") == 0 && (!value->len || !strcmp(value->text, "/dev/null"))) ||
        ((strcmp(name, "HISTSIZE") == 0 || strcmp(name, "HISTFILESIZE") == 0) &&
         (strcmp(value->text, "0") == 0 || !value->len)))
        violate(an, RULE_TAMPER, value->at, shown);
}

void judge_command(struct analysis *an, const struct command *c)
{
    if (an->policy->counts[POLICY_COMMAND_BLACKLIST]) {
        struct flow text = command_join(an, c, 0);

        judge_blacklist(an, text.text, text.len, c->at, c->shown);
    }
    judge_arguments(an, c);
    judge_files(an, c);
    judge_system(an, c);
    judge_network(an, c);
}
