#include "base/own.h"
#include "cli/common.h"
#include "cli/report.h"
#include "cli/verbs.h"

/* kill, pause and resume: the same walk over sandboxes with another step. */

struct kill_options {
    bool all;
};

/* clang-format off */
static const struct option kill_options[] = {
    { 'a', "all", OPTION_FLAG, offsetof(struct kill_options, all), NULL, COMPLETE_NONE,
      "every sandbox of this state directory" },
};

const struct verb kill_verb = {
    .name = "kill",
    .synopsis = "[--all] SANDBOX…",
    .summary = "destroy sandboxes, with all that is in them",
    .details = "Returns when nothing of them is left.",
    .options = kill_options,
    .option_count = sizeof kill_options / sizeof kill_options[0],
    .operands = COMPLETE_SANDBOX,
    .run = verb_kill,
};

const struct verb pause_verb = {
    .name = "pause",
    .synopsis = "[--all] SANDBOX…",
    .summary = "freeze every process of sandboxes, until 'cove resume'",
    .options = kill_options,
    .option_count = sizeof kill_options / sizeof kill_options[0],
    .operands = COMPLETE_SANDBOX,
    .run = verb_pause,
};

const struct verb resume_verb = {
    .name = "resume",
    .synopsis = "[--all] SANDBOX…",
    .summary = "let paused sandboxes go on",
    .options = kill_options,
    .option_count = sizeof kill_options / sizeof kill_options[0],
    .operands = COMPLETE_SANDBOX,
    .run = verb_resume,
};
/* clang-format on */

typedef int (*step_fn)(struct link *link, const char *sandbox, struct err *err);

/* Goes on after a failure; the exit code is the first one's. */
static int each_named(struct link *link, step_fn step, char **names, int count)
{
    int code = 0;

    for (int i = 0; i < count; i++) {
        struct err err;

        if (step(link, names[i], &err) == 0)
            continue;
        code = code ? code : err_kind_info(err.kind)->exit_code;
        (void) report_error(&err);
        if (err.kind == ERR_UNAVAILABLE)
            break;
    }
    return code;
}

static int each_there(struct link *link, step_fn step)
{
    auto_free struct keeper_sandbox *list = NULL;
    size_t count = 0;
    struct err err;
    int code = 0;

    if (sandbox_list(link, &list, &count, &err) < 0)
        return report_error(&err);
    for (size_t i = 0; i < count; i++) {
        /* One that ended meanwhile is what was asked for. */
        if (step(link, list[i].id, &err) == 0 || err.kind == ERR_NO_SANDBOX)
            continue;
        code = code ? code : err_kind_info(err.kind)->exit_code;
        (void) report_error(&err);
        if (err.kind == ERR_UNAVAILABLE)
            break;
    }
    return code;
}

static int walk(const struct verb *verb, step_fn step, int argc, char **argv)
{
    struct kill_options options = { .all = false };
    struct link link;
    struct err err;
    char **names;
    int count, code;

    code = common_parse(verb, argc, argv, &options, &names, &count);
    if (code >= 0)
        return code;
    if (options.all && count > 0)
        return common_excess(verb, names[0]);
    if (!options.all && count == 0)
        return common_missing(verb, "a sandbox (or --all)");
    if (common_open(&link, &err) < 0)
        return report_error(&err);
    code = options.all ? each_there(&link, step) : each_named(&link, step, names, count);
    link_close(&link);
    return code;
}

int verb_kill(int argc, char **argv)
{
    return walk(&kill_verb, sandbox_destroy, argc, argv);
}

int verb_pause(int argc, char **argv)
{
    return walk(&pause_verb, sandbox_freeze, argc, argv);
}

int verb_resume(int argc, char **argv)
{
    return walk(&resume_verb, sandbox_thaw, argc, argv);
}
