/* match.h - the policy's regexes: PCRE2 with bounded work.
 *
 * Never:   lets an error pass. A pattern that cannot be compared within its bounds counts as met by
 *          the blacklist and as missed by the whitelist. */
#ifndef COVE_POLICY_MATCH_H
#define COVE_POLICY_MATCH_H

#include "base/err.h"

#include <stddef.h>

#define MATCH_LIMIT_MAX 10000

enum match { MATCH_NO, MATCH_YES, MATCH_FAILED };

/* NULL: err says which pattern, where and why. */
void *match_compile(const char *pattern, struct err *err);
void match_free(void *regex);

/* Anywhere in the text, or all of it. Safe for many threads with one regex. */
enum match match_search(const void *regex, const char *text, size_t len);
enum match match_whole(const void *regex, const char *text, size_t len);

#endif
