/* utf8.h - is it UTF-8? Piece by piece: a character may be split between pieces.
 *
 * Overlong forms, surrogates and what lies past U+10FFFF are not UTF-8. A wrong byte is found
 * when it arrives, not at the end of its character. */
#ifndef COVE_BASE_UTF8_H
#define COVE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct utf8 {            /* all zero: between characters */
    uint8_t left;        /* continuation bytes to come */
    uint8_t least, most; /* what the next of them may be */
};

/* False at the first byte that cannot follow; the state is then of no more use. */
bool utf8_feed(struct utf8 *utf8, const char *at, size_t len);

/* Nothing is missing. */
static inline bool utf8_whole(const struct utf8 *utf8)
{
    return utf8->left == 0;
}

bool utf8_ok(const char *at, size_t len);

/* The length of the character at the start: 0 if there is none, -1 if it may be one but is cut. */
int utf8_first(const char *at, size_t len);

/* In place: every byte that belongs to no character becomes a '?'. */
void utf8_clean(char *at, size_t len);

#endif
