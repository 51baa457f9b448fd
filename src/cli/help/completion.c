#include "cli/help/completion.h"

#include "base/own.h"
#include "cli/common.h"
#include "cli/report.h"
#include "wire/limits.h"

#include <string.h>

/* clang-format off */
const struct verb completion_verb = {
    .name = "completion",
    .synopsis = "bash|zsh|fish",
    .summary = "print a completion script for a shell",
    .details =
        "  cove completion bash > /etc/bash_completion.d/cove\n"
        "  cove completion zsh > /usr/local/share/zsh/site-functions/_cove\n"
        "  cove completion fish > ~/.config/fish/completions/cove.fish",
    .run = verb_completion,
};
/* clang-format on */

static const struct {
    const char *shell;
    void (*write)(FILE *out);
} writers[] = {
    { "bash", completion_bash },
    { "zsh", completion_zsh },
    { "fish", completion_fish },
};

void completion_each_option(const struct verb *verb, FILE *out, completion_option_fn *fn)
{
    static const struct option common[] = {
        { 0, "state", OPTION_TEXT, 0, "DIR", COMPLETE_DIR, "state directory" },
        { 'h', "help", OPTION_FLAG, 0, NULL, COMPLETE_NONE, "what the verb does" },
    };

    for (size_t i = 0; i < verb->option_count; i++)
        fn(out, &verb->options[i]);
    for (size_t i = 0; verb->takes_limits && i < limit_count; i++) {
        const struct option limit = { .name = limit_table[i].name,
                                      .kind = OPTION_TEXT,
                                      .value = "LIMIT",
                                      .help = limit_table[i].help };

        fn(out, &limit);
    }
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        fn(out, &common[i]);
}

void completion_quote(FILE *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'') {
            (void) fputs("'\\''", out);
            continue;
        }
        if (strchr(special, *text))
            (void) fputc('\\', out);
        (void) fputc(*text, out);
    }
}

int verb_completion(int argc, char **argv)
{
    char **operands;
    int count, code, unused;

    code = common_parse(&completion_verb, argc, argv, &unused, &operands, &count);
    if (code >= 0)
        return code;
    for (size_t i = 0; count == 1 && i < ARRAY_LEN(writers); i++) {
        if (strcmp(operands[0], writers[i].shell) == 0) {
            writers[i].write(stdout);
            return report_end(0);
        }
    }
    return common_missing(&completion_verb, "the word 'bash', 'zsh' or 'fish'");
}
