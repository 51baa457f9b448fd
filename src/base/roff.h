/* roff.h - text in manual pages: what is special there is escaped. */
#ifndef COVE_BASE_ROFF_H
#define COVE_BASE_ROFF_H

#include <stdio.h>

/* Within a line. */
void roff_text(FILE *out, const char *text);
/* A line of its own, whatever it begins with. */
void roff_line(FILE *out, const char *text);
/* Lines: those that begin with two spaces are shown as they are, an empty one begins a paragraph. */
void roff_block(FILE *out, const char *text);

#endif
