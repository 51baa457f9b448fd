#include "cli/report.h"
#include "cli/saved.h"
#include "cli/verbs.h"
#include "direct/common.h"
#include "direct/session.h"

#include <unistd.h>

/* run and shell: a sandbox of one's own for one command. They differ in the command. */

struct run_options {
    struct sandbox_options sandbox;
    struct command_options command;
    struct attach_options attach;
    bool keep;
};

#define AT(field) offsetof(struct run_options, field)

/* clang-format off */
static const struct option run_options[] = {
    SANDBOX_OPTIONS(struct run_options, sandbox),
    COMMAND_OPTIONS(struct run_options, command),
    ATTACH_OPTIONS(struct run_options, attach),
    { 0, "keep", OPTION_FLAG, AT(keep), NULL, COMPLETE_NONE,
      "the sandbox stays when the command has ended" },
};

const struct verb run_verb = {
    .name = "run",
    .synopsis = "[OPTION…] [--] COMMAND [ARGUMENT…]",
    .summary = "run a command in a new sandbox that ends with it",
    .details =
        "The exit code is the command's own; 128 + n when signal n ended it, 124 when it ran\n"
        "into --timeout or --cpu-timeout, 137 when the sandbox ran out of memory. The sandbox is gone when cove\n"
        "ends, however cove ends, unless --keep is given. Ctrl-C reaches the command; a second\n"
        "Ctrl-C destroys the sandbox.\n\n"
        "  cove run -- python3 -c 'print(1+1)'\n"
        "  cove run --memory 256m --cpus 0.5 --timeout 10s -- make test\n"
        "  tar c . | cove run -i -- tar tv",
    .options = run_options,
    .option_count = sizeof run_options / sizeof run_options[0],
    .takes_limits = true,
    .limits_offset = AT(sandbox.limits),
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
    .limits_offset = AT(sandbox.limits),
    .operands = COMPLETE_SANDBOX,
    .run = verb_shell,
};
/* clang-format on */

/* The user's own shell; -lc has read the login files already. Without a terminal it reads a script.
 */
#define SHELL_TERMINAL "exec \"${SHELL:-/bin/sh}\" -i"
#define SHELL_SCRIPT   "exec \"${SHELL:-/bin/sh}\""

/* The command in a sandbox that is there; the link may be another one afterwards. */
static int run_in(const struct run_options *options, struct link *link,
                  const struct keeper_sandbox *sandbox, const struct agent_request *request,
                  bool is_new, bool *ret_started)
{
    struct session session = {
        .link = link,
        .sandbox = sandbox,
        .is_new = is_new,
        .tied = is_new && !options->keep,
        .quiet = options->attach.quiet,
        .stats = options->attach.stats,
    };

    return session_start(&session, request, ret_started);
}

static int run_new(const struct run_options *options, const struct agent_request *request)
{
    struct keeper_sandbox sandbox;
    struct link link;
    struct err err;
    bool started;
    int code;

    if (common_open(&link, &err) < 0)
        return report_error(&err);
    if (common_create(&link, &options->sandbox, options->keep ? 0 : KEEPER_FLAG_TIED, &sandbox,
                      &err) < 0) {
        link_close(&link);
        return report_error(&err);
    }
    code = run_in(options, &link, &sandbox, request, true, &started);
    /* Closing the link would do for a tied one; asking for it means that it is gone when we are. */
    if ((!options->keep || !started) && link.fd >= 0 &&
        sandbox_destroy(&link, sandbox.id, &err) < 0 && err.kind != ERR_NO_SANDBOX &&
        err.kind != ERR_UNAVAILABLE)
        (void) report_error(&err);
    else if (options->keep && started && !options->attach.quiet)
        report_note("kept: %s", sandbox.name[0] ? sandbox.name : sandbox.id);
    link_close(&link);
    return code;
}

static int run_existing(const struct run_options *options, char *name,
                        const struct agent_request *request)
{
    auto_link struct link link = { .fd = -1 };
    struct keeper_sandbox sandbox;
    struct err err;

    if (common_open(&link, &err) < 0 || saved_resolve(&link, &name, &err) < 0 ||
        sandbox_get(&link, name, &sandbox, &err) < 0)
        return report_error(&err);
    return run_in(options, &link, &sandbox, request, false, NULL);
}

int verb_run(int argc, char **argv)
{
    static char program[] = "/opt/cove/bin/entrypoint", *entrypoint[] = { program };
    struct run_options options = { .keep = false };
    struct agent_request request;
    struct common_held held;
    struct err err;
    char **words;
    int count, code;

    code = common_parse(&run_verb, argc, argv, &options, &words, &count);
    if (code >= 0)
        return code;
    if (count == 0 && !options.sandbox.template)
        return common_missing(&run_verb, "a command");
    if (count == 0) {
        words = entrypoint;
        count = 1;
    }
    if (common_check_attach(&run_verb, &options.attach, &err) < 0 ||
        common_request(&options.command, words, (size_t) count, options.attach.tty, &request, &held,
                       &err) < 0)
        return report_error(&err);
    if (!options.keep)
        request.flags |= AGENT_KILL_ON_CLOSE;
    common_attach(&options.attach, &request);
    code = run_new(&options, &request);
    common_release(&held);
    return code;
}

int verb_shell(int argc, char **argv)
{
    struct run_options options = { .keep = false };
    struct agent_request request;
    struct common_held held;
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&shell_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 1)
        return common_excess(&shell_verb, operands[1]);
    options.attach.tty = options.attach.tty || isatty(STDIN_FILENO);
    options.attach.interactive = true;
    if (common_check_attach(&shell_verb, &options.attach, &err) < 0 ||
        common_request(&options.command, NULL, 0, options.attach.tty, &request, &held, &err) < 0)
        return report_error(&err);
    request.command = options.attach.tty ? SHELL_TERMINAL : SHELL_SCRIPT;
    request.flags |= AGENT_KILL_ON_CLOSE;
    common_attach(&options.attach, &request);
    code = count ? run_existing(&options, operands[0], &request) : run_new(&options, &request);
    common_release(&held);
    return code;
}
