#include "cli/common.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/verbs.h"

#include <string.h>

struct create_options {
    struct sandbox_options sandbox;
    const char *snapshot;
};

/* clang-format off */
static const struct option create_options[] = {
    SANDBOX_OPTIONS(struct create_options, sandbox),
    { 0, "snapshot", OPTION_TEXT, offsetof(struct create_options, snapshot), "SNAPSHOT", COMPLETE_NONE,
      "made of this one, with its template, limits and processes" },
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

/* What a snapshot has cannot be said beside it; limits that are as they always are were not said. */
static int from_snapshot(struct link *link, const struct create_options *options,
                         struct keeper_sandbox *ret, struct err *err)
{
    struct keeper_image image;
    struct limits preset;

    limits_preset(&preset);
    if (options->sandbox.template || options->sandbox.root ||
        memcmp(&preset, &options->sandbox.limits, sizeof preset) != 0)
        return err_set(err, ERR_USAGE, "create: a snapshot has its own template, limits and root");
    return saved_snapshot(link, options->snapshot, &image, err) < 0
               ? -1
               : saved_load(link, &image, options->sandbox.name, ret, err);
}

int verb_create(int argc, char **argv)
{
    struct create_options options = { .sandbox.root = false };
    struct keeper_sandbox sandbox;
    struct link link;
    struct err err;
    char **operands;
    int count, code;

    limits_preset(&options.sandbox.limits);
    code = common_parse(&create_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 0)
        return common_excess(&create_verb, operands[0]);
    if (common_open(&link, &err) < 0 ||
        (options.snapshot ? from_snapshot(&link, &options, &sandbox, &err)
                          : common_create(&link, &options.sandbox, 0, &sandbox, &err)) < 0)
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
