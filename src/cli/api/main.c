/* cove: the command line. Verbs that ask a server are here; the others are cove-host's. */
#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/verbs.h"
#include "cli/host.h"
#include "cli/report.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Options before the verb, each with a value, that become the environment of whatever runs. */
static const struct {
    const char *option, *variable, *what;
} before[] = {
    { "--state", "COVE_STATE", "a directory" },
    { "--server", "COVE_SERVER", "a URL" },
    { "--cacert", "COVE_CACERT", "a file" },
};

static int missing(const char *what, const char *option)
{
    struct err err;

    (void) err_set(&err, ERR_USAGE, "%s is missing behind '%.60s' (see 'cove help')", what, option);
    return report_error(&err);
}

/* 1: taken, *ret_used words; 0: not one of these; -1: its value is missing. */
static int take_option(char **words, int *ret_used, int *ret_code)
{
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        size_t len = strlen(before[i].option);
        const char *value;

        if (strncmp(words[0], before[i].option, len) != 0 ||
            (words[0][len] && words[0][len] != '='))
            continue;
        value = words[0][len] ? words[0] + len + 1 : words[1];
        *ret_used = words[0][len] ? 1 : 2;
        if (!value || !value[0]) {
            *ret_code = missing(before[i].what, words[0]);
            return -1;
        }
        /* What is said last counts: this host's, or another's. */
        if (i == 0)
            (void) unsetenv("COVE_SERVER");
        if (setenv(before[i].variable, value, 1) < 0)
            abort();
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct verb *verb;
    int at = 1, used = 0, code = 0, r = 1;

    /* A reader that goes away is an error of write, not a sudden end with the terminal raw. */
    (void) signal(SIGPIPE, SIG_IGN);
    while (at < argc && argv[at][0] == '-' && (r = take_option(argv + at, &used, &code)) == 1)
        at += used;
    if (r < 0)
        return code;
    if (at < argc && strcmp(argv[at], "--version") == 0)
        return verb_version(1, argv + at);
    verb = at < argc ? api_verb_find(argv[at]) : NULL;
    if (verb)
        return verb->run(argc - at, argv + at);
    return host_become(argv + at);
}
