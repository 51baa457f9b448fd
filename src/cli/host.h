/* host.h - the program cove-host: verbs that are about this host, or about the keeper. It has what the command line itself does
 * without, so that the verbs of every day start fast.
 *
 * Callers: cli/api. */
#ifndef COVE_CLI_HOST_H
#define COVE_CLI_HOST_H

#include <stdbool.h>

/* Becomes cove-host, with these words behind its name; returns only on failure, with an exit code. */
int host_become(char *const *words);

/* `cove ps --keeper` and `cove kill --keeper`. */
int host_ps(bool json, bool quiet);
int host_kill(const char *verb, bool all, bool running, char **names, int count);

#endif
