#include "cli/help/help.h"

#include "cli/common.h"
#include "cli/help/man.h"
#include "cli/hints.h"
#include "cli/report.h"
#include "cli/verbs.h"

#include <string.h>

struct help_options {
    bool man;
};

/* clang-format off */
static const struct option help_options[] = {
    { 0, "man", OPTION_FLAG, offsetof(struct help_options, man), NULL, COMPLETE_NONE,
      "print the manual page, for man -l" },
};

const struct verb help_verb = {
    .name = "help",
    .synopsis = "[OPTION…] [VERB]",
    .summary = "what cove can do, or all about one verb",
    .options = help_options,
    .option_count = sizeof help_options / sizeof help_options[0],
    .operands = COMPLETE_VERB,
    .run = verb_help,
};

/* clang-format on */

void help_overview(FILE *out)
{
    (void) fprintf(out, "cove runs untrusted code, each command in its own sandbox.\n\n"
                        "Usage: cove [--state DIR] VERB [OPTION…] [OPERAND…]\n\nVerbs:\n");
    for (size_t i = 0; i < verb_count; i++)
        (void) fprintf(out, "  %-12s %s\n", verbs[i]->name, verbs[i]->summary);
    (void) fprintf(out, "\nBegin with 'cove up', then 'cove run -- COMMAND' in another terminal.\n"
                        "'cove help VERB' says more; every failure has its own exit code:\n\n");
    for (uint8_t code = 1; code < UINT8_MAX; code++)
        for (uint32_t kind = ERR_NONE + 1; kind < ERR_KIND_COUNT; kind++)
            if (err_kind_info(kind)->exit_code == code)
                (void) fprintf(out, "  %3u  %s\n", code, err_kind_info(kind)->help);
}

int verb_help(int argc, char **argv)
{
    const struct verb *verb;
    struct help_options options = { .man = false };
    struct err err;
    char hint[160];
    char **operands;
    int count, code;

    code = common_parse(&help_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (options.man) {
        man_page(stdout);
        return report_end(0);
    }
    if (count == 0) {
        help_overview(stdout);
        return report_end(0);
    }
    verb = verb_find(operands[0]);
    if (!verb) {
        (void) err_set(&err, ERR_USAGE, "there is no verb '%.40s'%s (see 'cove help')", operands[0],
                       hint_verb(verbs, verb_count, operands[0], hint, sizeof hint));
        return report_error(&err);
    }
    options_help(verb, stdout);
    return report_end(0);
}
