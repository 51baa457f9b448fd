/* match.h - patterns of .dockerignore and of COPY.
 *
 *   *   any letters but '/'      ?   one of them      [a-z] [^a]   one of a set      \x   the letter x
 *   **  any letters, '/' too, in .dockerignore; "**" + "/" also nothing
 *
 * Takes time of the order of pattern times path, whatever both are. Pure; fuzzed. */
#ifndef COVE_DOCKERFILE_MATCH_H
#define COVE_DOCKERFILE_MATCH_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define MATCH_PATTERN_MAX 1024

/* deep: '**' is more than '*'. ERR_INVALID: a set without its end, or a pattern that is too long. */
int match_path(const char *pattern, const char *path, bool deep, bool *ret, struct err *err);
/* Whether it has letters that are more than themselves. */
bool match_is_pattern(const char *text);

/* ---- .dockerignore ---- */

struct ignore {
    struct ignore_row {
        char *pattern; /* clean: relative, without "." and ".." */
        bool except;   /* it began with '!' */
    } * rows;
    size_t count;
    /* one of them is an exception: what is below an ignored directory may be wanted */
    bool excepts;
};

#define IGNORE_ROWS_MAX 1000

/* Errors begin with "line N: ". */
int ignore_parse(const char *text, size_t len, struct ignore *ret, struct err *err);
void ignore_done(struct ignore *ignore);
/* path: relative, clean. A pattern means what is below it, too; the last that fits counts. */
bool ignore_has(const struct ignore *ignore, const char *path);

/* Without "//", "/./", and ".." where that leads to somewhere else in the path; a leading '/' goes. "" is the
 * root. -1: it leads out, or is too long. */
int match_clean(const char *path, char *out, size_t size);

#endif
