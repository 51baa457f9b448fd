/* lines.h - a stream of bytes as lines, and lines as server-sent events. Pure; memory is bounded.
 *
 * Callers: cli/api/mcp.c: messages on stdin, and answers of a server; fuzz/mcp_message_fuzz.c. */
#ifndef COVE_MCP_LINES_H
#define COVE_MCP_LINES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define LINES_MOST (24u << 20) /* bytes of a line, and of an event */

/* The line without its end (LF or CR LF), or the data of an event. -1 ends the feeding. */
typedef int lines_fn(void *context, const char *text, size_t len, struct err *err);

struct lines {
    char *text; /* owned: what has not ended yet */
    size_t have, room;
};

/* ERR_TOO_BIG for a line beyond LINES_MOST. */
int lines_feed(struct lines *lines, const char *data, size_t len, lines_fn *each, void *context,
               struct err *err);
/* What stands behind the last line's end, if anything: a line as well. */
int lines_end(struct lines *lines, lines_fn *each, void *context, struct err *err);
void lines_done(struct lines *lines);

/* Fields other than "data" are passed over; an event that has no end is dropped. */
struct events {
    struct lines lines, data;
    bool begun;
};
int events_feed(struct events *events, const char *bytes, size_t len, lines_fn *each, void *context,
                struct err *err);
void events_done(struct events *events);

#endif
