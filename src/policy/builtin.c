#include "policy/command.h"

#include "base/own.h"
#include "policy/eval.h"
#include "policy/expand.h"
#include "policy/judge.h"
#include "policy/lex.h"
#include "policy/paths.h"

#include <string.h>

/* export, declare, local ...: their assignments are words that were expanded already. */
static void declare(struct analysis *an, const struct command *c)
{
    for (size_t i = 1; i < c->argc; i++) {
        const struct field *arg = &c->argv[i];
        size_t n = lex_name(arg->text, arg->len);
        struct field value = *arg;

        if (!n || arg->text[n] != '=')
            continue;
        value.text += n + 1;
        value.len -= n + 1;
        var_set(an, arena_text(&an->arena, arg->text, n),
                (struct flow){ value.text, value.len, value.taint });
        judge_assign(an, arena_text(&an->arena, arg->text, n), &value);
    }
}

/* read, mapfile, getopts: what they set is not known before; with a known input it is. */
static void read_names(struct analysis *an, const struct command *c)
{
    struct flow value = flow_unknown(c->in ? c->in->taint : 0);
    const struct field *name;
    bool only = !command_operand(c, 1);

    if (c->in && only && !is_unknown(c->in->text)) {
        size_t len = strcspn(c->in->text, "\n");

        value.text = arena_text(&an->arena, c->in->text, len);
        value.len = len;
    }
    an->loop_waits = true;
    if (!command_operand(c, 0))
        var_set(an, "REPLY", value);
    for (size_t i = 0; (name = command_operand(c, i)); i++)
        var_set(an, name->text, value);
}

static void change_directory(struct analysis *an, const struct command *c)
{
    const struct field *to = command_operand(c, 0);

    if (!to)
        an->cwd = an->policy->home;
    else if (is_unknown(to->text) || to->glob || strcmp(to->text, "-") == 0)
        an->cwd = "";
    else if (*to->text == '/' || *an->cwd)
        an->cwd = path_resolve(an, to->text);
}

/* trap 'command' SIGNAL, and aliases: the text is run later, so it is judged now. */
static void trap(struct analysis *an, const struct command *c)
{
    const struct field *text = command_operand(c, 0);

    if (text && command_operand(c, 1))
        eval_text(an, text->text, text->len, text->at, NULL, NULL);
}

static void alias(struct analysis *an, const struct command *c)
{
    for (size_t i = 1; i < c->argc; i++) {
        const char *equals = strchr(c->argv[i].text, '=');

        if (equals)
            eval_text(an, equals + 1, strlen(equals + 1), c->argv[i].at, NULL, NULL);
    }
}

static void set_arguments(struct analysis *an, const struct command *c)
{
    for (size_t i = 1; i < c->argc; i++)
        if (strcmp(c->argv[i].text, "--") == 0 || c->argv[i].text[0] != '-') {
            size_t from = strcmp(c->argv[i].text, "--") == 0 ? i : i - 1;

            eval_arguments(an, c->argv + from, c->argc - from);
            return;
        }
}

static void unset(struct analysis *an, const struct command *c)
{
    const struct field *name;

    for (size_t i = 0; (name = command_operand(c, i)); i++) {
        struct field empty = { .text = "", .at = name->at };

        var_set(an, name->text, flow_of(""));
        judge_assign(an, name->text, &empty);
    }
}

static void waits(struct analysis *an, const struct command *c)
{
    (void) c;
    an->loop_waits = true;
}

static const struct {
    const char *name;
    void (*run)(struct analysis *an, const struct command *c);
} builtins[] = {
    { "export", declare },
    { "declare", declare },
    { "typeset", declare },
    { "local", declare },
    { "readonly", declare },
    { "read", read_names },
    { "mapfile", read_names },
    { "getopts", read_names },
    { "readarray", read_names },
    { "cd", change_directory },
    { "pushd", change_directory },
    { "trap", trap },
    { "alias", alias },
    { "set", set_arguments },
    { "unset", unset },
    { "wait", waits },
    { "sleep", waits },
    { "inotifywait", waits },
};

bool builtin_run(struct analysis *an, const struct command *c)
{
    for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
        if (strcmp(c->name, builtins[i].name) == 0) {
            builtins[i].run(an, c);
            return true;
        }
    return false;
}
