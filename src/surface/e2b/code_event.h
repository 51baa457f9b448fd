/* code_event.h - one line that a kernel wrote: checked, taken apart, and said again in E2B's words.
 *
 * What a kernel writes is the sandbox's word: any process in there may have written it. A line is scanned strictly and
 * never made into a tree, so it costs its own length and nothing else; what is passed on is put together again of values
 * that were scanned, under names that are ours.
 *
 * Pure: no allocation, no I/O but by the caller's function. */
#ifndef COVE_SURFACE_E2B_CODE_EVENT_H
#define COVE_SURFACE_E2B_CODE_EVENT_H

#include "base/err.h"
#include "http/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define CODE_LINE_MAX  (32u << 20)
#define CODE_DEPTH_MAX 64 /* of arrays and objects in each other */

enum code_event_type {
    CODE_BEGIN,
    CODE_STDOUT,
    CODE_STDERR,
    CODE_RESULT,
    CODE_ERROR,
    CODE_END,
    CODE_EVENT_COUNT
};

/* Slices are JSON values as they stand in the line: texts have their quotes. */
struct code_event {
    enum code_event_type type;
    struct slice id, execution_count;    /* BEGIN, END */
    struct slice text;                   /* STDOUT, STDERR */
    struct slice data, is_main_result;   /* RESULT: a MIME bundle */
    struct slice name, value, traceback; /* ERROR */
};

/* A line without its newline. */
int code_event_parse(const char *line, size_t len, struct code_event *ret, struct err *err);
/* A BEGIN or END of this cell. */
bool code_event_is(const struct code_event *event, const char *cell);

typedef int (*code_put_fn)(void *context, const char *data, size_t len, struct err *err);

/* As a line for the client. `now`: for the timestamp of output. END gives nothing: the caller ends an execution. */
int code_event_put(const struct code_event *event, const char *now, code_put_fn put, void *context,
                   struct err *err);

#endif
