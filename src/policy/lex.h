/* lex.h - where words and bracketed parts of shell text end. Pure; a bounded stack, no recursion. */
#ifndef COVE_POLICY_LEX_H
#define COVE_POLICY_LEX_H

#include <stdbool.h>
#include <stddef.h>

#define LEX_DEPTH_MAX 64

/* The index behind the word that starts at `at`; at itself when no word starts there. *ret_open: a
 * quote or bracket is not closed (or nests too deep), and the word goes to the end. */
size_t lex_word_end(const char *text, size_t len, size_t at, bool *ret_open);

/* The index of the bracket that closes the one before `at`; len when there is none (*ret_open).
 * closer is ')' for commands, 'a' for arithmetic, '}' for parameters, '"' or '`'. */
size_t lex_close(const char *text, size_t len, size_t at, char closer, bool *ret_open);

/* Whether a character ends a word when it is not quoted. */
bool lex_is_meta(char c);
/* Length of the variable name at text; 0 when none starts there. */
size_t lex_name(const char *text, size_t len);

#endif
