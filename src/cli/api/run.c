#include "cli/api/make.h"
#include "cli/api/session.h"
#include "cli/common.h"
#include "cli/report.h"

#include <unistd.h>

/* In templates that came from images: agent/entrypoint.c. */
#define RUN_ENTRYPOINT "/opt/cove/bin/entrypoint"

/* run and shell: a sandbox of one's own for one command. They differ in the command. */

struct run_options {
    struct make_options make;
    struct command_options command;
    bool keep, wait;
};

#define AT(field) offsetof(struct run_options, field)

/* clang-format off */
static const struct option run_options[] = {
    MAKE_OPTIONS(struct run_options, make),
    COMMAND_OPTIONS(struct run_options, command),
    { 0, "keep", OPTION_FLAG, AT(keep), NULL, COMPLETE_NONE,
      "the sandbox stays when the command has ended" },
    { 0, "wait", OPTION_FLAG, AT(wait), NULL, COMPLETE_NONE,
      "end when nothing of the sandbox is left; without it, it is removed behind the command" },
};

const struct verb run_verb = {
    .name = "run",
    .synopsis = "[OPTION…] [--] [COMMAND [ARGUMENT…]]",
    .summary = "run a command in a new sandbox that ends with it",
    .details =
        "The exit code is the command's own; 128 + n when signal n ended it, 124 when it ran\n"
        "into --timeout or --cpu-timeout, 137 when the sandbox ran out of memory. The sandbox ends when\n"
        "cove ends, however cove ends, unless --keep is given. Ctrl-C reaches the command; a second\n"
        "Ctrl-C ends the sandbox. Without COMMAND, and with --template, the template's own command runs, if its\n"
        "image has one (ENTRYPOINT and CMD).\n\n"
        "  cove run -- python3 -c 'print(1+1)'\n"
        "  cove run --memory 256m --cpus 0.5 --timeout 10s -- make test\n"
        "  cove run --allow pypi.org --allow files.pythonhosted.org -- pip download requests\n"
        "  tar c . | cove run -i -- tar tv",
    .options = run_options,
    .option_count = sizeof run_options / sizeof run_options[0],
    .takes_limits = true,
    .limits_offset = AT(make.limits),
    .command_at = 1,
    .run = verb_run,
};

const struct verb shell_verb = {
    .name = "shell",
    .synopsis = "[OPTION…] [SANDBOX]",
    .summary = "a login shell in a new sandbox, or in one that is there",
    .details =
        "Without SANDBOX a new one is made, and ends with the shell unless --keep is given;\n"
        "with it, options that describe a new sandbox have no effect.",
    .options = run_options,
    .option_count = sizeof run_options / sizeof run_options[0],
    .takes_limits = true,
    .limits_offset = AT(make.limits),
    .operands = COMPLETE_SANDBOX,
    .run = verb_shell,
};
/* clang-format on */

/* The user's own shell; -lc has read the login files already. Without a terminal it reads a script. */
#define SHELL_TERMINAL "exec \"${SHELL:-/bin/sh}\" -i"
#define SHELL_SCRIPT   "exec \"${SHELL:-/bin/sh}\""

/* sandbox NULL: a new one. The process is taken. */
static int run(const struct run_options *options, const char *sandbox, json_t *process)
{
    struct session session = { .options = &options->command,
                               .tied = !sandbox && !options->keep,
                               .keeps = !sandbox && options->keep,
                               .detaches = !sandbox && options->keep };
    json_t *body = sandbox ? json_string(sandbox) : NULL;
    struct err err;

    if (!sandbox && make_body(&options->make, options->keep, NULL, &body, &err) < 0) {
        json_decref(process);
        return report_error(&err);
    }
    session.order = json_pack("{s:o, s:o, s:b, s:b, s:s}", "sandbox", body, "process", process,
                              "keep", options->keep, "wait", options->wait, "on_disconnect",
                              session.detaches ? "keep" : "kill");
    return session_run(&session);
}

int verb_run(int argc, char **argv)
{
    static char program[] = RUN_ENTRYPOINT, *entrypoint[] = { program };
    struct run_options options = { .keep = false };
    json_t *process;
    struct err err;
    char **words;
    int count, code;

    code = common_parse(&run_verb, argc, argv, &options, &words, &count);
    if (code >= 0)
        return code;
    if (count == 0 && !options.make.template)
        return common_missing(&run_verb, "a command");
    if (count == 0) { /* the command that came with the template's image */
        words = entrypoint;
        count = 1;
    }
    if (command_body(&run_verb, &options.command, words, (size_t) count, NULL, &process, &err) < 0)
        return report_error(&err);
    return run(&options, NULL, process);
}

int verb_shell(int argc, char **argv)
{
    struct run_options options = { .keep = false };
    json_t *process;
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&shell_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 1)
        return common_excess(&shell_verb, operands[1]);
    options.command.tty = options.command.tty || isatty(STDIN_FILENO);
    options.command.interactive = true;
    if (command_body(&shell_verb, &options.command, NULL, 0,
                     options.command.tty ? SHELL_TERMINAL : SHELL_SCRIPT, &process, &err) < 0)
        return report_error(&err);
    return run(&options, count ? operands[0] : NULL, process);
}
