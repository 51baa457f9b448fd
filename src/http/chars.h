/* chars.h - which byte may stand where: one table for the grammars of RFC 3986, 9110 and 9112. */
#ifndef COVE_HTTP_CHARS_H
#define COVE_HTTP_CHARS_H

#include "http/slice.h"

enum {
    CHAR_TOKEN = 1, /* methods, header names */
    CHAR_VALUE = 2, /* header values: visible, space, tab, and bytes above 0x7f */
    CHAR_LINE = 4,  /* the request line: visible and space */
    CHAR_PATH = 8, /* of a request target; includes {}|^` and [], which browsers send as they are */
    CHAR_QUERY = 16, /* the same, with ? and \ */
    CHAR_HOST = 32,  /* letters, digits, - . _ */
    CHAR_PLAIN = 64, /* needs no percent-encoding anywhere: letters, digits, - . _ ~ */
    CHAR_HEX = 128,
};

extern const uint8_t char_classes[256];

static inline bool char_is(char c, unsigned classes)
{
    return char_classes[(unsigned char) c] & classes;
}

/* How many bytes at the start are of that class. */
static inline size_t char_span(const char *at, size_t len, unsigned classes)
{
    size_t n = 0;

    while (n < len && char_is(at[n], classes))
        n++;
    return n;
}

/* Not empty, and all of that class. */
static inline bool char_all(struct slice slice, unsigned classes)
{
    return slice.len > 0 && char_span(slice.at, slice.len, classes) == slice.len;
}

/* 0 to 15; the caller knows that it is CHAR_HEX. */
static inline unsigned char_hex(char c)
{
    return (unsigned) (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

#endif
