/* url.h - paths and queries: splitting, percent-decoding, encoding.
 *
 * Never:   resolves "." or "..", joins, or touches a file system. What a path means is decided by
 *          who knows what it is a path of; url_path says what to look out for. */
#ifndef COVE_HTTP_URL_H
#define COVE_HTTP_URL_H

#include "base/err.h"
#include "http/slice.h"

#include <sys/types.h>

enum {
    URL_PLUS = 1, /* '+' is a blank: queries and forms */
    URL_UTF8 = 2, /* refuse what does not decode to UTF-8 */
};

/* NUL-terminated into out; the length, or -1: a percent sign without two hex digits, a NUL however
 * written, no UTF-8 where asked for (ERR_INVALID), no room (ERR_TOO_BIG). */
ssize_t url_decode(struct slice in, unsigned flags, char *out, size_t size, struct err *err);

#define URL_PAIRS_MAX 256

struct url_query {
    struct slice rest;
    unsigned pairs;
};

struct url_pair {
    struct slice key, value; /* raw; value.at is NULL for a key without '=' */
};

struct url_query url_query(struct slice query);
/* 1 with a pair, 0 at the end, -1 past URL_PAIRS_MAX. Empty pairs ("a&&b") are passed over. */
int url_query_next(struct url_query *query, struct url_pair *ret_pair, struct err *err);

/* The value of that key, decoded (plus, UTF-8) into out: 1 found, 0 not there and out is "", -1 not
 * well-formed, too long, or given twice. The sentence names the key. */
int url_query_get(struct slice query, const char *key, char *out, size_t size, struct err *err);

#define URL_SEGMENTS_MAX 64

struct url_path {
    struct slice segments[URL_SEGMENTS_MAX]; /* raw, without slashes */
    unsigned count;                          /* 0 for "/" */
    bool dots;                               /* a segment is "." or "..", however it is written */
    bool empty;                              /* two slashes in a row */
    bool slash;                              /* ends with a slash, and is not just "/" */
    bool hidden;                             /* a segment has an encoded slash or backslash */
};

/* Splits a raw path that begins with a slash. Every segment is checked to decode (not into what).
 * More than URL_SEGMENTS_MAX segments are ERR_TOO_BIG. */
int url_path_split(struct slice path, struct url_path *ret_path, struct err *err);

/* Percent-encodes all but letters, digits and -._~ : right inside any part of a URL. The length
 * that is needed, without a NUL; nothing counts if that is more than size. */
size_t url_encode(struct slice in, char *out, size_t size);

#endif
