#include "cli/api/server.h"
#include "cli/api/session.h"
#include "cli/api/session_end.h"
#include "cli/common.h"
#include "cli/report.h"

struct exec_options {
    struct command_options command;
    bool detach;
};

#define AT(field) offsetof(struct exec_options, field)

/* clang-format off */
static const struct option exec_options[] = {
    COMMAND_OPTIONS(struct exec_options, command),
    { 'd', "detach", OPTION_FLAG, AT(detach), NULL, COMPLETE_NONE,
      "print its process number and let it run" },
    { 0, "tag", OPTION_TEXT, AT(command.tag), "TEXT", COMPLETE_NONE,
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

static int attached(const struct exec_options *options, const char *sandbox, json_t *process)
{
    struct session session = { .options = &options->command };

    session.order = json_pack("{s:s, s:o}", "sandbox", sandbox, "process", process);
    return session_run(&session);
}

static int detached(const char *sandbox, json_t *process)
{
    json_t *started = NULL;
    struct err err;

    (void) json_object_del(process, "stdin"); /* it has no writer */
    if (server_ask("POST", process, &started, &err, "/v1/sandboxes/%s/processes", sandbox) < 0)
        return session_not_started(&err);
    printf("%lld\n", (long long) json_integer_value(json_object_get(started, "proc")));
    json_decref(started);
    return report_end(0);
}

int verb_exec(int argc, char **argv)
{
    struct exec_options options = { .detach = false };
    json_t *process;
    struct err err;
    char **words;
    int count, code;

    code = common_parse(&exec_verb, argc, argv, &options, &words, &count);
    if (code >= 0)
        return code;
    if (count < 2)
        return common_missing(&exec_verb, count == 0 ? "a sandbox" : "a command");
    if (command_body(&exec_verb, &options.command, words + 1, (size_t) count - 1, NULL, &process,
                     &err) < 0)
        return report_error(&err);
    return options.detach ? detached(words[0], process) : attached(&options, words[0], process);
}
