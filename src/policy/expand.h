/* expand.h - words as written become the arguments that a program would get.
 *
 * Braces, tildes, variables, substitutions (which are run in the head), quotes and splitting are
 * done here; globs are only marked. */
#ifndef COVE_POLICY_EXPAND_H
#define COVE_POLICY_EXPAND_H

#include "policy/ast.h"

void expand_words(struct analysis *an, const struct source *src, const struct words *words,
                  struct fields *out);

/* One value without braces and splitting: the right side of an assignment, a redirection. */
struct field expand_one(struct analysis *an, const struct source *src, struct word word);

/* A here-document: variables and substitutions, but no quotes. */
struct flow expand_doc(struct analysis *an, const struct source *src, const char *text, size_t len);

/* "name=value", "name+=value", "name[0]=value", "name=(a b)": sets the variable and returns its
 * name; the value is in *ret_value. NULL: no assignment. */
const char *expand_assign(struct analysis *an, const struct source *src, struct word word,
                          struct field *ret_value);

/* The alternatives of "{a,b}" and "{1..3}", each as written; a word without them gives itself. */
void brace_expand(struct analysis *an, struct word word, struct words *out);

/* What a variable holds: what was assigned, what every sandbox has, "" for lower-case names that
 * no command set (a command starts in a fresh shell), unknown for others. */
struct flow expand_var(struct analysis *an, const char *name, bool *ret_set);

#endif
