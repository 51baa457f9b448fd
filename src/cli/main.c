#include "base/err.h"
#include "base/own.h"
#include "cli/api/build.h"
#include "cli/elsewhere.h"
#include "cli/help/help.h"
#include "cli/hints.h"
#include "cli/keeper.h"
#include "cli/report.h"
#include "cli/verbs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int bad(const char *text, const char *what)
{
    struct err err;

    (void) err_set(&err, ERR_USAGE, "%s '%.60s' (see 'cove help')", text, what);
    return report_error(&err);
}

static int no_verb(const char *word)
{
    char hint[160];
    struct err err;

    (void) err_set(&err, ERR_USAGE, "there is no verb '%.60s'%s (see 'cove help')", word,
                   hint_verb(verbs, verb_count, word, hint, sizeof hint));
    return report_error(&err);
}

/* Options before the verb: --state DIR, --help, --version. Returns the index of the verb, 0 when
 * everything is said (*ret_code), or -1 after a complaint (*ret_code). */
static int before_verb(int argc, char **argv, int *ret_code)
{
    int i;

    *ret_code = 0;
    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        const char *arg = argv[i], *state = NULL;

        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            help_overview(stdout);
            *ret_code = report_end(0);
            return 0;
        }
        if (strcmp(arg, "--version") == 0) {
            char *version[] = { argv[i], NULL };

            *ret_code = verb_version(1, version);
            return 0;
        }
        if (strcmp(arg, "--state") == 0 && i + 1 < argc)
            state = argv[++i];
        else if (strncmp(arg, "--state=", 8) == 0)
            state = arg + 8;
        if (!state || !state[0]) {
            *ret_code = bad(strncmp(arg, "--state", 7) == 0 ? "a directory is missing after"
                                                            : "there is no option",
                            arg);
            return -1;
        }
        if (setenv("COVE_STATE", state, 1) < 0)
            abort();
    }
    return i < argc ? i : argc;
}

/* 'template build' of a Dockerfile, images, and what is asked of templates concern whichever server is in use. */
static bool asks_server(const struct verb *verb, int count, char **words)
{
    static const char *const asking[] = { "ls", "inspect", "rm", "pull", "import" };

    if (verb != &template_verb || count < 2)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(asking); i++)
        if (strcmp(words[1], asking[i]) == 0)
            return true;
    return strcmp(words[1], "build") == 0 && build_is_dockerfile(count - 2, words + 2);
}

int main(int argc, char **argv)
{
    static const struct verb *const hidden[] = { &keeper_ps_verb, &keeper_kill_verb };
    const struct verb *verb;
    struct err err;
    int code, at;

    /* A reader that goes away is an error of write, not a sudden end with the terminal raw. */
    (void) signal(SIGPIPE, SIG_IGN);
    at = before_verb(argc, argv, &code);
    if (at <= 0)
        return code;
    if (at == argc) {
        help_overview(stderr);
        return err_kind_info(ERR_USAGE)->exit_code;
    }
    for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
        if (strcmp(hidden[i]->name, argv[at]) == 0)
            return hidden[i]->run(argc - at, argv + at);
    verb = verb_find(argv[at]);
    if (!verb)
        return no_verb(argv[at]);
    if (!asks_server(verb, argc - at, argv + at) && elsewhere_check(verb->name, &err) < 0)
        return report_error(&err);
    return verb->run(argc - at, argv + at);
}
