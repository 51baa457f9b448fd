/* help.h - what `cove` alone, `cove help` and `cove --help` print. */
#ifndef COVE_CLI_HELP_H
#define COVE_CLI_HELP_H

#include <stdio.h>

void help_overview(FILE *out);

#endif
