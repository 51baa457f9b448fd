/* words.h - words of an instruction: quotes, escapes and variables, as Docker reads them.
 *
 *   $x ${x}   ${x:-y} ${x-y}   ${x:+y} ${x+y}   ${x:?why} ${x?why}
 *
 * Pure; fuzzed. */
#ifndef COVE_DOCKERFILE_WORDS_H
#define COVE_DOCKERFILE_WORDS_H

#include "base/err.h"

#include <jansson.h>

/* A variable's value; NULL: it has none. */
typedef const char *words_get(void *arg, const char *name);

/* Quotes removed, variables replaced; the caller's to free. At most DOCKERFILE_TEXT_MAX bytes. */
int words_expand(const char *text, char escape, words_get *get, void *arg, char **ret,
                 struct err *err);
/* Variables alone: quotes stay as they are. For heredocs. */
int words_expand_text(const char *text, char escape, words_get *get, void *arg, char **ret,
                      struct err *err);

/* Words between blanks; quotes and escapes hold them together and stay in them. An array of texts. */
int words_split(const char *text, char escape, json_t **ret, struct err *err);

#endif
