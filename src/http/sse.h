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

/* ": text", which readers ignore: keeps a connection awake. Line breaks become blanks. */
size_t sse_comment(char *out, size_t size, const char *text);

/* Escapes a piece of text for the inside of a JSON string, without quotes. What is no UTF-8 becomes
 * U+FFFD. A character that the end of the piece cuts is left for the next one, unless `last`:
 * ret_used says how much was taken, and the rest (at most 3 bytes) comes first in the next piece.
 * Stops before size would be passed; any buffer of SSE_JSON_MIN bytes or more gets on. Returns the
 * length written. */
#define SSE_JSON_MIN 6
size_t sse_json_escape(struct slice text, bool last, char *out, size_t size, size_t *ret_used);

#endif
