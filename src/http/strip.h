/* strip.h - queries and cookies without what is ours: a server in a sandbox is not told by which token it was reached.
 *
 * What is not ours is passed on byte for byte, well-formed or not: it is for the application to judge. Pure. */
#ifndef COVE_HTTP_STRIP_H
#define COVE_HTTP_STRIP_H

#include "http/put.h"

/* The values of that key, as they were written: how often there is one, and the last. */
size_t strip_query_find(struct slice query, const char *key, struct slice *ret_value);
/* "?" and the query without pairs of that key; nothing where nothing is left of it. A query without the key is not
 * touched. */
void strip_query(struct put *put, struct slice query, const char *key);

/* The next cookie of a Cookie header; `rest` starts as its whole value. False at the end. A piece without '=' is a
 * value without a name, as browsers have it. */
bool strip_cookie_next(struct slice *rest, struct slice *ret_name, struct slice *ret_value);
/* The header's value without cookies of that name, in which letters count. Returns false, and writes nothing, where nothing
 * is left. */
bool strip_cookies(struct put *put, struct slice value, const char *const *names, size_t count);

#endif
