/* man.h - the manual page cove(1), written from the same tables as --help. Callers: help.c. */
#ifndef COVE_CLI_MAN_H
#define COVE_CLI_MAN_H

#include <stdio.h>

void man_page(FILE *out);

#endif
