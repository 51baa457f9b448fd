/* slice.h - a piece of a text that another owns: a pointer and a length, no NUL.
 *
 * Owns:    nothing. A slice is valid as long as the buffer that it points into.
 * Never:   allocates, or reads past its length. at == NULL means "not there", which an empty
 *          text ("there, and empty") is not. */
#ifndef COVE_HTTP_SLICE_H
#define COVE_HTTP_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const char *at;
    size_t len;
};

/* For printf's "%.*s"; cut, since texts of clients have no place in full in a sentence. */
#define SLICE_ARGS(slice) (int) ((slice).len < 40 ? (slice).len : 40), (slice).at

static inline struct slice slice_of(const char *text)
{
    return (struct slice){ text, text ? strlen(text) : 0 };
}

bool slice_is(struct slice slice, const char *text);
bool slice_is_nocase(struct slice slice, const char *text); /* ASCII letters only */
bool slice_same_nocase(struct slice a, struct slice b);

/* Without spaces and tabs at both ends (OWS of RFC 9110). */
struct slice slice_trim(struct slice slice);

/* The text before the first `c` goes to ret_before and slice keeps what is behind it; false, with
 * nothing changed, where there is no `c`. */
bool slice_cut(struct slice *slice, char c, struct slice *ret_before);

/* NUL-terminated copy; false when it does not fit or holds a NUL itself. */
bool slice_copy(struct slice slice, char *out, size_t size);

/* Decimal digits and nothing else, up to INT64_MAX: what is larger is false, too. */
bool slice_number(struct slice slice, uint64_t *ret_value);

#endif
