#include "cli/options.h"

#include "base/own.h"
#include "base/parse.h"
#include "cli/hints.h"
#include "cli/report.h"
#include "cli/verbs.h"
#include "wire/limits.h"

#include <string.h>

/* Theory: argv is walked once. An option takes its value from "=" or from the next argument;
 * everything else is an operand and moves to the front of argv, in order. Options end at "--"
 * or, for a verb with a command, at the operand where the command begins, so that the command's
 * own options need no "--". */

struct parser {
    const struct verb *verb;
    int argc;
    char **argv;
    int at;       /* next argument to look at */
    int operands; /* argv[1 .. operands] are operands */
    void *values;
};

static const struct option *find_long(const struct verb *verb, const char *name, size_t len)
{
    for (size_t i = 0; i < verb->option_count; i++)
        if (strncmp(verb->options[i].name, name, len) == 0 && !verb->options[i].name[len])
            return &verb->options[i];
    return NULL;
}

static const struct option *find_letter(const struct verb *verb, char letter)
{
    for (size_t i = 0; i < verb->option_count; i++)
        if (verb->options[i].letter == letter)
            return &verb->options[i];
    return NULL;
}

static int bad_usage(const struct parser *p, struct err *err, const char *text, const char *what)
{
    return err_set(err, ERR_USAGE, "%s: %s '%.60s' (see 'cove help %s')", p->verb->name, text, what,
                   p->verb->name);
}

static int no_option(const struct parser *p, struct err *err, const char *arg, const char *name)
{
    char hint[160];

    return err_set(err, ERR_USAGE, "%s: there is no option '%.60s'%s (see 'cove help %s')",
                   p->verb->name, arg, hint_option(p->verb, name, hint, sizeof hint),
                   p->verb->name);
}

static int store_list(struct option_list *list, const struct option *option, const char *value,
                      struct err *err)
{
    if (list->count == OPTION_LIST_MAX)
        return err_set(err, ERR_USAGE, "more than %d --%s", OPTION_LIST_MAX, option->name);
    list->items[list->count++] = value;
    return 0;
}

static int store_value(const struct option *option, const char *value, void *values,
                       struct err *err)
{
    void *at = (char *) values + option->offset;
    int r = 0;

    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *) at = true;
        return 0;
    case OPTION_TEXT:
        *(const char **) at = value;
        return 0;
    case OPTION_LIST:
        return store_list(at, option, value, err);
    case OPTION_NUMBER:
        r = parse_u64(value, at, err);
        break;
    case OPTION_SIZE:
        r = parse_size(value, at, err);
        break;
    case OPTION_DURATION:
        r = parse_duration_ms(value, at, err);
        break;
    }
    if (r == 0 && option->not_zero && *(const uint64_t *) at == 0)
        r = err_set(err, ERR_LIMIT, "invalid value '%.40s': not more than 0", value);
    if (r < 0) {
        err->kind = ERR_LIMIT;
        return err_wrap(err, "--%s", option->name);
    }
    return 0;
}

/* The value behind "=", or the next argument. */
static const char *option_value(struct parser *p, const char *inline_value)
{
    if (inline_value)
        return inline_value;
    return p->at < p->argc ? p->argv[p->at++] : NULL;
}

static const struct limit_info *find_limit(const struct verb *verb, const char *name, size_t len)
{
    for (size_t i = 0; verb->takes_limits && i < limit_count; i++)
        if (strncmp(limit_table[i].name, name, len) == 0 && !limit_table[i].name[len])
            return &limit_table[i];
    return NULL;
}

static int parse_long(struct parser *p, const char *arg, struct err *err)
{
    const char *name = arg + 2, *equals = strchr(name, '='), *value;
    size_t len = equals ? (size_t) (equals - name) : strlen(name);
    const struct option *option = find_long(p->verb, name, len);
    const struct limit_info *limit = find_limit(p->verb, name, len);
    bool is_state = len == 5 && strncmp(name, "state", 5) == 0;

    if (len == 0 || (!option && !limit && !is_state)) {
        char word[64];

        (void) snprintf(word, sizeof word, "%.*s", (int) (len < sizeof word ? len : 0), name);
        return no_option(p, err, arg, word);
    }
    if (option && option->kind == OPTION_FLAG) {
        if (equals)
            return bad_usage(p, err, "takes no value:", arg);
        return store_value(option, NULL, p->values, err);
    }
    value = option_value(p, equals ? equals + 1 : NULL);
    if (!value)
        return bad_usage(p, err, "a value is missing after", arg);
    if (option)
        return store_value(option, value, p->values, err);
    if (limit)
        return limits_parse((void *) ((char *) p->values + p->verb->limits_offset), limit->name,
                            value, err);
    if (!value[0])
        return bad_usage(p, err, "a directory is missing after", arg);
    if (setenv("COVE_STATE", value, 1) < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for the environment");
    return 0;
}

/* "-it", "-f", "-nNAME", "-n NAME". */
static int parse_letters(struct parser *p, const char *arg, struct err *err)
{
    for (const char *c = arg + 1; *c; c++) {
        const struct option *option = find_letter(p->verb, *c);
        const char *value;

        if (!option) {
            const char letter[] = { *c, '\0' };

            return no_option(p, err, arg, letter);
        }
        if (option->kind == OPTION_FLAG) {
            if (store_value(option, NULL, p->values, err) < 0)
                return -1;
            continue;
        }
        value = option_value(p, c[1] ? c + 1 : NULL);
        if (!value)
            return bad_usage(p, err, "a value is missing after", arg);
        return store_value(option, value, p->values, err);
    }
    return 0;
}

static void add_operand(struct parser *p, char *arg)
{
    p->argv[1 + p->operands++] = arg;
}

static void add_rest(struct parser *p)
{
    while (p->at < p->argc)
        add_operand(p, p->argv[p->at++]);
}

enum options_result options_parse(const struct verb *verb, int argc, char **argv, void *values,
                                  char ***ret_operands, int *ret_count, struct err *err)
{
    struct parser p = { .verb = verb, .argc = argc, .argv = argv, .at = 1, .values = values };

    while (p.at < argc) {
        char *arg = argv[p.at++];
        int r = 0;

        if (strcmp(arg, "--") == 0) {
            add_rest(&p);
        } else if (strcmp(arg, "--help") == 0 ||
                   (strcmp(arg, "-h") == 0 && !find_letter(verb, 'h'))) {
            options_help(verb, stdout);
            return OPTIONS_HELP;
        } else if (arg[0] == '-' && arg[1] == '-') {
            r = parse_long(&p, arg, err);
        } else if (arg[0] == '-' && arg[1]) {
            r = parse_letters(&p, arg, err);
        } else {
            add_operand(&p, arg);
            if (verb->command_at && (unsigned) p.operands == verb->command_at)
                add_rest(&p);
        }
        if (r < 0)
            return OPTIONS_BAD;
    }
    argv[1 + p.operands] = NULL;
    *ret_operands = argv + 1;
    *ret_count = p.operands;
    return OPTIONS_RUN;
}

static void help_row(FILE *out, char letter, const char *name, const char *value, const char *help)
{
    char left[64];

    if (letter)
        (void) snprintf(left, sizeof left, "-%c, --%s%s%s", letter, name, value ? " " : "",
                        value ? value : "");
    else
        (void) snprintf(left, sizeof left, "    --%s%s%s", name, value ? " " : "",
                        value ? value : "");
    (void) fprintf(out, "  %-24s %s\n", left, help);
}

static void help_limit(FILE *out, const struct limit_info *limit)
{
    static const char *const values[] = {
        [LIMIT_BYTES] = "SIZE", [LIMIT_COUNT] = "N", [LIMIT_CPUS] = "N"
    };
    char help[160], value[32];

    if (limit->unit == LIMIT_BYTES)
        (void) report_size(value, sizeof value, limit->fallback);
    else if (limit->unit == LIMIT_CPUS)
        (void) snprintf(value, sizeof value, "%g", (double) limit->fallback / 1000);
    else
        (void) snprintf(value, sizeof value, "%llu", (unsigned long long) limit->fallback);
    (void) snprintf(help, sizeof help, "%s (%s)", limit->help,
                    limit->fallback ? value : "no limit");
    help_row(out, 0, limit->name, values[limit->unit], help);
}

void options_help(const struct verb *verb, FILE *out)
{
    (void) fprintf(out, "cove %s - %s\n\nUsage: cove %s%s%s\n", verb->name, verb->summary,
                   verb->name, verb->synopsis[0] ? " " : "", verb->synopsis);
    if (verb->details)
        (void) fprintf(out, "\n%s\n", verb->details);
    if (verb->sub_count)
        (void) fprintf(out, "\nCommands:\n");
    for (size_t i = 0; i < verb->sub_count; i++)
        (void) fprintf(out, "  %-24s %s\n", verb->subs[i].name, verb->subs[i].summary);
    (void) fprintf(out, "\nOptions:\n");
    for (size_t i = 0; i < verb->option_count; i++)
        help_row(out, verb->options[i].letter, verb->options[i].name, verb->options[i].value,
                 verb->options[i].help);
    for (size_t i = 0; verb->takes_limits && i < limit_count; i++)
        help_limit(out, &limit_table[i]);
    help_row(out, 0, "state", "DIR", "state directory (COVE_STATE, or " COVE_STATE_DEFAULT ")");
    help_row(out, 'h', "help", NULL, "this text");
}
