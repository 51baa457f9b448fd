/* subverbs.h - verbs with commands of their own (`cove tenant add`).
 *
 * A command is a struct verb in the subs of its verb; its run gets argv from the command's name on. */
#ifndef COVE_CLI_SUBVERBS_H
#define COVE_CLI_SUBVERBS_H

#include "cli/verbs.h"

#include <stddef.h>
#include <stdint.h>

/* Finds the command that argv names, and runs it. Returns the exit code. */
int subverbs_run(const struct verb *verb, int argc, char **argv);

/* As common_parse, with both words in messages. -1: continue; else the exit code. least and most count operands;
 * what says what is missing, or one too many. */
int subverb_parse(const struct verb *verb, const char *name, int argc, char **argv, void *values,
                  const char *what, int least, int most, char ***ret_operands, int *ret_count);

/* "2026-01-31 12:00", or "-" for 0; local time. */
const char *subverb_when(char *out, size_t size, uint64_t ms);

#endif
