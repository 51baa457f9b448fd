/* sse.h - events of a stream: server-sent events, and texts inside lines of JSON.
 *
 * Like snprintf, the writers return what they need; if that is more than size, nothing counts. */
#ifndef COVE_HTTP_SSE_H
#define COVE_HTTP_SSE_H

#include "base/err.h"
#include "http/slice.h"

#include <sys/types.h>

/* event and id may be NULL. A line break in data (CR, LF or both) begins a new "data:" line, which
 * the reader joins with LF; one in event or id is an error. */
ssize_t sse_event(char *out, size_t size, const char *event, const char *id, struct slice data,
                  struct err *err);

#endif
