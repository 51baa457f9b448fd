/* response.h - writes the head of a response into a buffer of the caller's.
 *
 * Never:   writes a header that could be read as two: a CR, LF or NUL in a value, or a name that is
 *          no token, makes response_end fail, and so does a buffer that is too small. A handler
 *          can thus write all its headers first and look once. */
#ifndef COVE_HTTP_RESPONSE_H
#define COVE_HTTP_RESPONSE_H

#include "base/err.h"
#include "http/put.h"

#include <sys/types.h>

/* "Not Found"; a number that is not in the table has the reason of its hundred. */
const char *status_reason(unsigned status);

/* 1xx, 204 and 304 have no body and no Content-Length. */
bool status_has_body(unsigned status);

struct response {
    struct put put;
    const char *bad; /* the header that is refused; a literal of the caller's, so borrowed */
};

void response_begin(struct response *response, char *buf, size_t size, unsigned status);
/* The same, with a sentence in the place of the status's own reason; bytes that are not printable ASCII become '?'. */
void response_begin_with(struct response *response, char *buf, size_t size, unsigned status,
                         const char *reason);
void response_field(struct response *response, const char *name, const char *value);
void response_slice(struct response *response, const char *name, struct slice value);
void response_number(struct response *response, const char *name, uint64_t value);
/* "Date: ", from seconds since 1970. */
void response_date(struct response *response, int64_t now);

/* The empty line. Returns the length of the whole head, or -1. */
ssize_t response_end(struct response *response, struct err *err);

#endif
