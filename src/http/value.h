/* value.h - inside header values: comma lists, and parameters behind semicolons.
 *
 * Quoted strings count as one piece, so a comma or semicolon inside one separates nothing. */
#ifndef COVE_HTTP_VALUE_H
#define COVE_HTTP_VALUE_H

#include "http/slice.h"

#include <sys/types.h>

/* The next item of a comma list, trimmed; empty items are passed over, as RFC 9110 asks. `rest`
 * starts as the whole value. False at the end. */
bool value_list_next(struct slice *rest, struct slice *ret_item);

/* Whether the list has that word, in any case of letters. */
bool value_list_has(struct slice value, const char *word);

/* What stands before the first semicolon: "text/html" of "text/html; charset=utf-8". */
struct slice value_main(struct slice value);

/* The parameter of that name, unquoted into out. Its length; -1 where there is none, where it does
 * not fit, where it is not well-formed, or where it is given twice: told apart by ret_found. A
 * backslash quotes only a quote or another backslash: browsers send others as they are. */
ssize_t value_param(struct slice value, const char *name, char *out, size_t size, bool *ret_found);

#endif
