/* common.h - what every verb does first: options, operands, and complaints about them. */
#ifndef COVE_CLI_COMMON_H
#define COVE_CLI_COMMON_H

#include "cli/options.h"
#include "cli/verbs.h"

#include <stddef.h>

struct link;

/* Parses, opens nothing. Returns -1 to continue, or the exit code to end with. */
int common_parse(const struct verb *verb, int argc, char **argv, void *values, char ***ret_operands,
                 int *ret_count);

/* `cove: <verb>: <what> is missing (see 'cove help <verb>')`; returns the exit code. */
int common_missing(const struct verb *verb, const char *what);
/* `cove: <verb>: '<operand>' is one too many (see …)`; returns the exit code. */
int common_excess(const struct verb *verb, const char *operand);

/* A link to the keeper of the state directory in force. */
int common_open(struct link *link, struct err *err);

#endif
