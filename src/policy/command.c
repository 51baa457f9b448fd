#include "policy/command.h"

#include "policy/eval.h"
#include "policy/expand.h"
#include "policy/judge.h"

#include <ctype.h>
#include <string.h>

#define UNWRAP_MAX  24
#define KNOWN_STEPS 1024 /* all names of judge_known_program, in all places */

bool command_flag(const struct command *c, char letter, const char *word)
{
    for (size_t i = 1; i < c->argc; i++) {
        const char *arg = c->argv[i].text;

        if (strcmp(arg, "--") == 0)
            return false;
        if (arg[0] != '-' || !arg[1])
            continue;
        if (arg[1] == '-') {
            size_t len = strcspn(arg + 2, "=");

            if (word && strlen(word) == len && memcmp(arg + 2, word, len) == 0)
                return true;
        } else if (letter && strchr(arg + 1, letter)) {
            return true;
        }
    }
    return false;
}

static const struct field *field_of(struct analysis *an, const struct field *from, const char *text)
{
    struct field *field = arena_alloc(&an->arena, sizeof *field);

    *field = *from;
    field->text = text;
    field->len = strlen(text);
    return field;
}

const struct field *command_value(struct analysis *an, const struct command *c, char letter,
                                  const char *word)
{
    for (size_t i = 1; i < c->argc; i++) {
        const char *arg = c->argv[i].text;

        if (arg[0] != '-')
            continue;
        if (word && arg[1] == '-' && strncmp(arg + 2, word, strlen(word)) == 0) {
            const char *rest = arg + 2 + strlen(word);

            if (*rest == '=')
                return field_of(an, &c->argv[i], rest + 1);
            if (!*rest && i + 1 < c->argc)
                return &c->argv[i + 1];
        }
        if (letter && arg[1] && arg[1] != '-') {
            const char *at = strchr(arg + 1, letter);

            if (at && at[1])
                return field_of(an, &c->argv[i], at + 1);
            if (at && i + 1 < c->argc)
                return &c->argv[i + 1];
        }
    }
    return NULL;
}

const struct field *command_operand(const struct command *c, size_t n)
{
    bool options = true;

    for (size_t i = 1; i < c->argc; i++) {
        const char *arg = c->argv[i].text;

        if (options && strcmp(arg, "--") == 0)
            options = false;
        else if ((!options || arg[0] != '-' || !arg[1]) && n-- == 0)
            return &c->argv[i];
    }
    return NULL;
}

bool command_has(const struct command *c, const char *text)
{
    for (size_t i = 1; i < c->argc; i++)
        if (strcmp(c->argv[i].text, text) == 0)
            return true;
    return false;
}

struct flow command_join(struct analysis *an, const struct command *c, size_t from)
{
    struct sink all = { 0 };

    for (size_t i = from; i < c->argc; i++) {
        if (i > from)
            sink_char(an, &all, ' ');
        sink_add(an, &all, c->argv[i].text, c->argv[i].len);
        all.taint |= c->argv[i].taint;
    }
    return sink_flow(an, &all);
}

/* "/usr/bin/python3.11" is python: versions of interpreters do not matter to any rule. */
static const char *plain_name(struct analysis *an, const char *path)
{
    static const char *const versioned[] = { "python", "pypy", "perl", "ruby",
                                             "php",    "lua",  "node", "tclsh" };
    const char *slash = strrchr(path, '/');
    const char *name = slash && slash[1] ? slash + 1 : path;

    for (size_t i = 0; i < sizeof versioned / sizeof versioned[0]; i++) {
        size_t len = strlen(versioned[i]);

        if (strncmp(name, versioned[i], len) == 0 && name[len] &&
            strspn(name + len, "0123456789.") == strlen(name + len))
            return arena_text(&an->arena, name, len);
    }
    return name;
}

/* The name counts as known when its last component is. */
static bool name_known(struct analysis *an, struct command *c)
{
    const struct field *program = &c->argv[0];
    const char *known;

    if (program->taint & TAINT_NET)
        violate(an, RULE_DOWNLOAD_RUN, c->at, c->shown);
    if (program->taint & TAINT_DECODED)
        violate(an, RULE_ENCODED_RUN, c->at, c->shown);
    c->name = plain_name(an, program->text);
    if (program->glob)
        spend(an, KNOWN_STEPS + program->len * 32);
    if (program->glob && (known = judge_known_program(program->text))) {
        violate(an, RULE_UNKNOWN_PROGRAM, c->at, c->shown);
        c->name = known;
        return true;
    }
    if (!is_unknown(c->name))
        return true;
    violate(an, RULE_UNKNOWN_PROGRAM, c->at, c->shown);
    return false;
}

/* Runs one program; true: *c is what it wraps, to be run next. */
static bool run_one(struct analysis *an, struct command *c)
{
    struct command inner = { .in = c->in, .out = c->out, .at = c->at };

    /* Rules ask for one option or operand after the other, and each is looked for from the front. */
    spend(an, 32 + c->argc * 2 + c->argc * c->argc / 64);
    c->shown = fields_shown(an, c->argv, c->argc);
    if (!name_known(an, c)) {
        judge_whitelist(an, c->name, c->at, c->shown);
        judge_command(an, c);
        flow_run(an, c);
        return false;
    }
    if (eval_function(an, c->argv, c->argc, c->in, c->out))
        return false;
    report_program(an->report, c->name);
    judge_whitelist(an, c->name, c->at, c->shown);
    judge_command(an, c);
    if (wrap_open(an, c, &inner)) {
        *c = inner;
        return inner.argc > 0;
    }
    if (!builtin_run(an, c) && !shell_run(an, c) && !interpreter_run(an, c))
        flow_run(an, c);
    return false;
}

void command_run(struct analysis *an, const struct field *argv, size_t argc, struct span at,
                 const struct flow *in, struct sink *out)
{
    struct command c = { .argv = argv, .argc = argc, .in = in, .out = out, .at = at };
    unsigned unwrapped = 0;

    while (c.argc && !*c.argv[0].text) { /* an empty expansion in front */
        c.argv++;
        c.argc--;
    }
    if (!c.argc || !enter(an, at)) /* find -exec find -exec ... comes back here */
        return;
    while (run_one(an, &c))
        if (++unwrapped == UNWRAP_MAX) {
            report_incomplete(an->report, "too many wrappers around a command");
            violate(an, RULE_TOO_COMPLEX, at, fields_shown(an, argv, argc)); /* c has no text yet */
            break;
        }
    leave(an);
}
