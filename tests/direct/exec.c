#include "cli/report.h"
#include "cli/saved.h"
#include "cli/verbs.h"
#include "direct/common.h"
#include "direct/session.h"

struct exec_options {
    struct command_options command;
    struct attach_options attach;
    bool detach;
    const char *tag;
};

#define AT(field) offsetof(struct exec_options, field)

/* clang-format off */
static const struct option exec_options[] = {
    COMMAND_OPTIONS(struct exec_options, command),
    ATTACH_OPTIONS(struct exec_options, attach),
    { 'd', "detach", OPTION_FLAG, AT(detach), NULL, COMPLETE_NONE,
      "print its process number and let it run" },
    { 0, "tag", OPTION_TEXT, AT(tag), "TEXT", COMPLETE_NONE,
      "a name for it in 'cove ps SANDBOX'" },
};

const struct verb exec_verb = {
    .name = "exec",
    .synopsis = "[OPTION…] SANDBOX [--] COMMAND [ARGUMENT…]",
    .summary = "run a command in a sandbox that is there",
    .details =
        "Exit codes are those of 'cove run'. The command ends when cove does, unless --detach\n"
        "is given; 'cove logs SANDBOX PROC' shows what a detached one writes.",
    .options = exec_options,
    .option_count = sizeof exec_options / sizeof exec_options[0],
    .command_at = 2,
    .operands = COMPLETE_SANDBOX,
    .run = verb_exec,
};
/* clang-format on */

static void set_flags(const struct exec_options *options, struct agent_request *request)
{
    request->flags = options->detach ? AGENT_DETACH : AGENT_KILL_ON_CLOSE;
    request->tag = options->tag;
    common_attach(&options->attach, request);
    if (options->detach) /* nobody is there to write to it */
        request->flags &= ~(uint32_t) AGENT_STDIN;
}

static int attached(const struct exec_options *options, struct link *link,
                    const struct keeper_sandbox *sandbox, const struct agent_request *request)
{
    struct session session = {
        .link = link,
        .sandbox = sandbox,
        .quiet = options->attach.quiet,
        .stats = options->attach.stats,
    };

    return session_start(&session, request, NULL);
}

static int detached(struct link *link, const struct keeper_sandbox *sandbox,
                    const struct agent_request *request, struct err *err)
{
    struct exec exec;

    if (exec_start(&exec, link, sandbox->id, request, err) < 0)
        return session_not_started(err);
    printf("%u\n", exec.proc);
    exec_close(&exec);
    return report_end(0);
}

int verb_exec(int argc, char **argv)
{
    struct exec_options options = { .detach = false };
    struct keeper_sandbox sandbox;
    struct agent_request request;
    struct common_held held;
    struct link link;
    struct err err;
    char **words;
    int count, code;

    code = common_parse(&exec_verb, argc, argv, &options, &words, &count);
    if (code >= 0)
        return code;
    if (count < 2)
        return common_missing(&exec_verb, count == 0 ? "a sandbox" : "a command");
    if (common_check_attach(&exec_verb, &options.attach, &err) < 0 ||
        common_request(&options.command, words + 1, (size_t) count - 1, options.attach.tty,
                       &request, &held, &err) < 0)
        return report_error(&err);
    set_flags(&options, &request);
    if (common_open(&link, &err) < 0 || saved_resolve(&link, &words[0], &err) < 0 ||
        sandbox_get(&link, words[0], &sandbox, &err) < 0)
        code = report_error(&err);
    else if (options.detach)
        code = detached(&link, &sandbox, &request, &err);
    else
        code = attached(&options, &link, &sandbox, &request);
    link_close(&link);
    common_release(&held);
    return code;
}
