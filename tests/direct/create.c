#include "cli/report.h"
#include "cli/verbs.h"
#include "direct/common.h"

struct create_options {
    struct sandbox_options sandbox;
};

/* clang-format off */
static const struct option create_options[] = {
    SANDBOX_OPTIONS(struct create_options, sandbox),
};

const struct verb create_verb = {
    .name = "create",
    .synopsis = "[OPTION…]",
    .summary = "make a sandbox that stays, and print its id",
    .details = "Use it with 'cove exec', 'cove shell' and 'cove cp'; 'cove kill' ends it.",
    .options = create_options,
    .option_count = sizeof create_options / sizeof create_options[0],
    .takes_limits = true,
    .limits_offset = offsetof(struct create_options, sandbox.limits),
    .run = verb_create,
};
/* clang-format on */

int verb_create(int argc, char **argv)
{
    struct create_options options = { .sandbox.root = false };
    struct keeper_sandbox sandbox;
    struct link link;
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&create_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 0)
        return common_excess(&create_verb, operands[0]);
    if (common_open(&link, &err) < 0 ||
        common_create(&link, &options.sandbox, 0, &sandbox, &err) < 0)
        code = report_error(&err);
    else
        code = 0;
    link_close(&link);
    if (code == 0) {
        printf("%s\n", sandbox.id);
        code = report_end(0);
    }
    return code;
}
