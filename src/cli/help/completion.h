/* completion.h - completion scripts for shells, written from the same tables that parse and explain.
 *
 * Callers: completion.c, one writer per shell. */
#ifndef COVE_CLI_COMPLETION_H
#define COVE_CLI_COMPLETION_H

#include "cli/verbs.h"

#include <stdio.h>

void completion_bash(FILE *out);
void completion_zsh(FILE *out);
void completion_fish(FILE *out);

/* Calls fn for each option that the verb takes: its own rows, then the limits, then --state and --help, whose rows
 * stand in no table. */
typedef void completion_option_fn(FILE *out, const struct option *option);
void completion_each_option(const struct verb *verb, FILE *out, completion_option_fn *fn);

/* `text` with a backslash before each character of `special`; a single quote becomes '\'' (how shells write one
 * inside single quotes). */
void completion_quote(FILE *out, const char *text, const char *special);

#endif
