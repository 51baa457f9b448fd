/* range.h - parts of a file, and whether the client has it already: Range, If-Range, ETag,
 * If-None-Match, If-Modified-Since (RFC 9110, sections 13 and 14). Pure functions of header values;
 * a value whose at is NULL was not sent. */
#ifndef COVE_HTTP_RANGE_H
#define COVE_HTTP_RANGE_H

#include "http/slice.h"

enum range_result {
    RANGE_NONE,          /* not sent, or not for us: answer 200 with all of it */
    RANGE_OK,            /* answer 206 */
    RANGE_UNSATISFIABLE, /* answer 416 with range_put of none */
};

struct range {
    uint64_t first, len; /* len > 0 */
};

/* bytes=a-b, bytes=a-, bytes=-n, for a file of `size` bytes. What is no range, is in another unit,
 * or asks for several ranges counts as not sent, as the RFC allows. */
enum range_result range_parse(struct slice value, uint64_t size, struct range *ret_range);

/* Content-Range: "bytes 0-99/1000", or "bytes *" "/1000" when range is NULL. */
#define RANGE_TEXT_SIZE 72
void range_put(char out[RANGE_TEXT_SIZE], const struct range *range, uint64_t size);

/* A strong validator from what changes with a file: "1a2b-3c". With quotes. */
#define ETAG_SIZE 40
void etag_put(char out[ETAG_SIZE], uint64_t mtime_ns, uint64_t size);

/* Whether a list of entity tags (or *) has this one. weak: W/"x" and "x" count as the same. */
bool etag_in(struct slice list, const char *etag, bool weak);

/* Answer 304. mtime in seconds. If-None-Match, where sent, decides alone. */
bool range_not_modified(struct slice if_none_match, struct slice if_modified_since,
                        const char *etag, int64_t mtime);

/* Whether Range is to be heeded: If-Range was not sent, or names what we have. */
bool range_applies(struct slice if_range, const char *etag, int64_t mtime);

#endif
