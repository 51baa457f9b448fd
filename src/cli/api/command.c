#include "cli/api/command.h"

#include "cli/api/make.h"
#include "cli/terminal.h"

#include <stdlib.h>
#include <unistd.h>

bool command_reads(const struct command_options *options)
{
    /* Without a terminal of ours, the terminal of the command has no input. */
    return options->interactive || (options->tty && isatty(STDIN_FILENO));
}

static int put_words(json_t *process, char *const *words, size_t count, struct err *err)
{
    json_t *args = json_array();

    (void) json_object_set_new(process, "args", args);
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(args, json_string(words[i])) < 0)
            return err_set(err, ERR_INVALID, "argument %zu is not UTF-8", i + 1);
    return 0;
}

/* What the terminal is called must be known inside, unless the caller says otherwise. */
static int put_env(json_t *process, const struct command_options *o, struct err *err)
{
    json_t *env = json_object();

    (void) json_object_set_new(process, "env", env);
    if (o->tty && getenv("TERM"))
        (void) json_object_set_new(env, "TERM", json_string(getenv("TERM")));
    return make_assignments("env", &o->env, true, env, err);
}

static void put_options(json_t *process, const struct command_options *o)
{
    uint16_t rows, columns;

    if (o->user)
        (void) json_object_set_new(process, "user", json_string(o->user));
    if (o->workdir)
        (void) json_object_set_new(process, "cwd", json_string(o->workdir));
    if (o->tag)
        (void) json_object_set_new(process, "tag", json_string(o->tag));
    if (o->timeout_ms)
        (void) json_object_set_new(process, "timeout", json_real((double) o->timeout_ms / 1000));
    if (o->cpu_timeout_ms)
        (void) json_object_set_new(process, "cpu_timeout",
                                   json_real((double) o->cpu_timeout_ms / 1000));
    if (!o->tty)
        return;
    terminal_size(&rows, &columns);
    (void) json_object_set_new(process, "pty", json_true());
    (void) json_object_set_new(process, "rows", json_integer(rows));
    (void) json_object_set_new(process, "columns", json_integer(columns));
}

int command_body(const struct verb *verb, const struct command_options *o, char *const *words,
                 size_t count, const char *shell, json_t **ret, struct err *err)
{
    json_t *process;

    if (o->tty && o->interactive && !isatty(STDIN_FILENO))
        return err_set(err, ERR_USAGE,
                       "%s: -t with -i needs a terminal, but stdin is not a terminal; leave out -t",
                       verb->name);
    process = json_object();
    put_options(process, o);
    if (shell)
        (void) json_object_set_new(process, "command", json_string(shell));
    if (command_reads(o))
        (void) json_object_set_new(process, "stdin", json_true());
    if (put_env(process, o, err) < 0 || (!shell && put_words(process, words, count, err) < 0)) {
        json_decref(process);
        return -1;
    }
    *ret = process;
    return 0;
}
