#include "cli/api/make.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/common.h"
#include "cli/report.h"

struct create_options {
    struct make_options make;
    struct option_list env;
};

/* clang-format off */
static const struct option create_options[] = {
    MAKE_OPTIONS(struct create_options, make),
    { 'e', "env", OPTION_LIST, offsetof(struct create_options, env), "KEY=VAL", COMPLETE_NONE,
      "environment of every command in it; KEY alone takes yours (repeatable)" },
};

const struct verb create_verb = {
    .name = "create",
    .synopsis = "[OPTION…]",
    .summary = "make a sandbox that stays, and print its id",
    .details = "Use it with 'cove exec', 'cove shell' and 'cove cp'; 'cove kill' ends it.",
    .options = create_options,
    .option_count = sizeof create_options / sizeof create_options[0],
    .takes_limits = true,
    .limits_offset = offsetof(struct create_options, make.limits),
    .run = verb_create,
};
/* clang-format on */

int verb_create(int argc, char **argv)
{
    struct create_options options = { .env.count = 0 };
    json_t *body, *made = NULL;
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&create_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 0)
        return common_excess(&create_verb, operands[0]);
    if (make_body(&options.make, true, &options.env, &body, &err) < 0 ||
        server_ask("POST", body, &made, &err, "/v1/sandboxes") < 0)
        return report_error(&err);
    code = show_id(made, "id", &err) < 0 ? report_error(&err) : report_end(0);
    json_decref(made);
    return code;
}
