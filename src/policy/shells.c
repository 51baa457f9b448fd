#include "policy/command.h"

#include "base/own.h"
#include "policy/code.h"
#include "policy/decode.h"
#include "policy/eval.h"
#include "policy/judge.h"
#include "policy/paths.h"

#include <string.h>

static const char *const shell_names[] = { "sh",  "bash", "dash", "zsh",  "ksh",
                                           "ash", "mksh", "fish", "rbash" };

bool shell_is(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(shell_names); i++)
        if (strcmp(name, shell_names[i]) == 0)
            return true;
    return false;
}

void shell_run_flow(struct analysis *an, const struct command *c, const char *language,
                    struct flow flow)
{
    if (flow.taint & TAINT_NET)
        violate(an, RULE_DOWNLOAD_RUN, c->at, c->shown);
    if (flow.taint & TAINT_DECODED)
        violate(an, RULE_ENCODED_RUN, c->at, c->shown);
    if (flow.text[0] == UNKNOWN) {
        violate(an, RULE_UNKNOWN_CODE, c->at, c->shown);
        if (!flow.text[1])
            return;
    }
    if (strcmp(language, "sh") == 0)
        eval_text(an, flow.text, flow.len, c->at, NULL, c->out);
    else
        code_run(an, language, flow, c);
}

/* A file that was written before, in this very command. */
static void run_file(struct analysis *an, const struct command *c, const char *language,
                     const struct field *path)
{
    const struct file *file = file_find(an, path_resolve(an, path->text));

    if (path->taint & TAINT_NET)
        violate(an, RULE_DOWNLOAD_RUN, c->at, c->shown);
    if (!file)
        return;
    if (file->content.text[0] == UNKNOWN && !(file->content.taint & (TAINT_NET | TAINT_DECODED)) &&
        strncmp(file->path, "/dev/fd/", 8) != 0)
        return; /* made by a program, such as a compiler: nothing hidden about that */
    shell_run_flow(an, c, language, file->content);
}

/* Options of a shell. The index of the first operand; *ret_c: there was -c; *ret_stdin: -s. */
static size_t shell_options(const struct command *c, bool *ret_c, bool *ret_stdin)
{
    size_t i = 1;

    *ret_c = *ret_stdin = false;
    for (; i < c->argc; i++) {
        const char *arg = c->argv[i].text;

        if ((arg[0] != '-' && arg[0] != '+') || !arg[1])
            break;
        if (strcmp(arg, "--") == 0)
            return i + 1;
        if (arg[1] == '-') {
            if (strcmp(arg, "--rcfile") == 0 || strcmp(arg, "--init-file") == 0)
                i++;
            continue;
        }
        *ret_c |= strchr(arg, 'c') != NULL;
        *ret_stdin |= strchr(arg, 's') != NULL;
        if (strchr(arg, 'o') || strchr(arg, 'O'))
            i++;
    }
    return i < c->argc ? i : c->argc;
}

static void run_shell(struct analysis *an, const struct command *c)
{
    bool text, from_stdin;
    size_t i = shell_options(c, &text, &from_stdin);
    struct var *vars = an->vars;

    if (text && i < c->argc) {
        struct flow flow = { c->argv[i].text, c->argv[i].len, c->argv[i].taint };

        eval_arguments(an, c->argv + i + 1, c->argc - i - 1);
        if (i + 1 < c->argc) {
            const struct field *zero = &c->argv[i + 1];

            var_set(an, "0", (struct flow){ zero->text, zero->len, zero->taint });
        }
        shell_run_flow(an, c, "sh", flow);
    } else if (i < c->argc && !from_stdin && strcmp(c->argv[i].text, "-") != 0 &&
               strcmp(c->argv[i].text, "/dev/stdin") != 0) {
        run_file(an, c, "sh", &c->argv[i]);
    } else {
        an->pipe_shell++;
        if (an->sockets)
            violate(an, RULE_REVERSE_SHELL, c->at, c->shown);
        if (c->in)
            shell_run_flow(an, c, "sh", *c->in);
    }
    an->vars = vars;
}

static void run_eval(struct analysis *an, const struct command *c)
{
    struct flow text = command_join(an, c, 1);

    if (text.len)
        shell_run_flow(an, c, "sh", text);
}

static void run_source(struct analysis *an, const struct command *c)
{
    if (c->argc > 1 && (strcmp(c->argv[1].text, "/dev/stdin") == 0) && c->in)
        shell_run_flow(an, c, "sh", *c->in);
    else if (c->argc > 1)
        run_file(an, c, "sh", &c->argv[1]);
}

bool shell_run(struct analysis *an, const struct command *c)
{
    if (shell_is(c->name))
        run_shell(an, c);
    else if (strcmp(c->name, "eval") == 0)
        run_eval(an, c);
    else if ((strcmp(c->name, "at") == 0 || strcmp(c->name, "batch") == 0) && c->in)
        shell_run_flow(an, c, "sh", *c->in);
    else if (strcmp(c->name, "source") == 0 || strcmp(c->name, ".") == 0)
        run_source(an, c);
    else if (strchr(c->argv[0].text, '/') && file_find(an, path_resolve(an, c->argv[0].text)))
        run_file(an, c, "sh", &c->argv[0]);
    else
        return false;
    return true;
}

/* Interpreters: the options with code, and those that mean that no code comes from stdin. */
static const struct {
    const char *name, *language;
    const char *code;   /* letters of options whose value is code */
    const char *module; /* letters of options that name what is run otherwise */
    bool first_operand; /* the code is the first operand */
} interpreters[] = {
    { "python", "python", "c", "m", false },
    { "pypy", "python", "c", "m", false },
    { "ipython", "python", "c", "m", false },
    { "perl", "perl", "eE", "", false },
    { "ruby", "ruby", "e", "", false },
    { "node", "javascript", "ep", "", false },
    { "nodejs", "javascript", "ep", "", false },
    { "bun", "javascript", "e", "", false },
    { "php", "php", "r", "", false },
    { "lua", "lua", "e", "", false },
    { "awk", "awk", "", "f", true },
    { "gawk", "awk", "", "f", true },
    { "mawk", "awk", "", "f", true },
    { "deno", "javascript", "", "", false },
    { "osascript", "applescript", "e", "", false },
    { "tclsh", "tcl", "", "", false },
};

/* The value of the first of these options. Before the letter in a cluster ("perl -ne") only flags may
 * stand: "-MMIME::Base64" has no -e in it. */
static const struct field *code_option(const struct command *c, const char *letters)
{
    static const char flags[] = "nlpaiswutTxdBSqOvEbR0123456789";

    for (size_t i = 1; i < c->argc; i++) {
        const char *arg = c->argv[i].text, *at;

        if (strcmp(arg, "--eval") == 0 || strcmp(arg, "--print") == 0)
            return i + 1 < c->argc && *letters ? &c->argv[i + 1] : NULL;
        if (arg[0] != '-' || arg[1] == '-')
            continue;
        at = arg + 1 + strcspn(arg + 1, letters);
        if (!*at || strspn(arg + 1, flags) < (size_t) (at - arg - 1))
            continue;
        if (!at[1])
            return i + 1 < c->argc ? &c->argv[i + 1] : NULL;
        return &c->argv[i]; /* -e'code': the letter in front harms nothing */
    }
    return NULL;
}

bool interpreter_run(struct analysis *an, const struct command *c)
{
    for (size_t i = 0; i < ARRAY_LEN(interpreters); i++) {
        const struct field *code, *operand = command_operand(c, 0);
        const char *language = interpreters[i].language;

        if (strcmp(c->name, interpreters[i].name) != 0)
            continue;
        code = interpreters[i].first_operand ? operand : code_option(c, interpreters[i].code);
        if (c->out) {
            sink_char(an, c->out, UNKNOWN);
            c->out->taint |= c->in ? c->in->taint & TAINT_SECRET : 0;
        }
        if (code) {
            shell_run_flow(an, c, language, (struct flow){ code->text, code->len, code->taint });
        } else if (*interpreters[i].module && command_flag(c, *interpreters[i].module, NULL)) {
            return true;
        } else if (operand && strcmp(operand->text, "-") != 0) {
            run_file(an, c, language, operand);
        } else if (c->in) {
            shell_run_flow(an, c, language, *c->in);
        }
        return true;
    }
    return false;
}
