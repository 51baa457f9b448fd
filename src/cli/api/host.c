#include "cli/host.h"

#include "base/own.h"
#include "cli/api/server.h"
#include "cli/programs.h"
#include "cli/report.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define WORDS_MAX 4096
#define PS_WORD   "keeper-ps"
#define KILL_WORD "keeper-kill"

int host_become(char *const *words)
{
    char path[PATH_MAX], *argv[WORDS_MAX + 2] = { (char[]){ "cove" } };
    const char *verb = words[0] ? words[0] : "";
    struct err err;
    size_t n = 0;

    while (words[n] && n < WORDS_MAX) {
        argv[n + 1] = words[n];
        n++;
    }
    argv[n + 1] = NULL;
    if (program_find("cove-host", path, sizeof path, &err) < 0) {
        (void) err_set(
            &err, ERR_UNAVAILABLE,
            "'%s' is about a host that runs cove, and this one has the command line only",
            strcmp(verb, PS_WORD) == 0     ? "ps --keeper"
            : strcmp(verb, KILL_WORD) == 0 ? "kill --keeper"
                                           : verb);
        return report_error(&err);
    }
    (void) execv(path, argv);
    (void) err_sys(&err, errno, "start %s", path);
    return report_error(&err);
}

/* The keeper is this host's alone. */
static int refuse_elsewhere(const char *verb)
{
    struct err err;

    (void) err_set(&err, ERR_USAGE, "%s --keeper: is about this host, and a server is named", verb);
    return report_error(&err);
}

int host_ps(bool json, bool quiet)
{
    char *words[] = { (char[]){ PS_WORD },
                      json    ? (char[]){ "--json" }
                      : quiet ? (char[]){ "-q" }
                              : NULL,
                      NULL };

    return getenv("COVE_SERVER") ? refuse_elsewhere("ps") : host_become(words);
}

int host_kill(const char *verb, bool all, bool running, char **names, int count)
{
    char *words[WORDS_MAX + 1] = { (char[]){ KILL_WORD } };
    char all_word[] = "--all",
         running_word[] = "--running"; /* not literals in the branches, whose life ends there */
    size_t n = 1;

    if (getenv("COVE_SERVER"))
        return refuse_elsewhere(verb);
    if (all)
        words[n++] = all_word;
    if (running)
        words[n++] = running_word;
    for (int i = 0; i < count && n < WORDS_MAX; i++)
        words[n++] = names[i];
    return host_become(words);
}
