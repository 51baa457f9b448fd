/* code_cell.h - one line on its way through a kernel: handed over, its events taken in, up to its end.
 *
 * Owns:    what there is of a line of the kernel's that is not whole; the attachment to the kernel while it runs.
 * Callers: code_execute.c (cells), code_fork.c (a fork is a cell that runs nothing); by whose turn it is.
 * Never:   writes to a client: events go to the caller's sink. */
#ifndef COVE_SURFACE_E2B_CODE_CELL_H
#define COVE_SURFACE_E2B_CODE_CELL_H

#include "surface/e2b/code.h"
#include "surface/e2b/code_event.h"

#define CODE_WORDS_MAX  512
#define CODE_SILENCE_MS 5000

enum code_ending {
    CODE_ENDED,
    CODE_DIED,        /* the kernel, before the cell's end */
    CODE_NEVER_BEGUN, /* it died without having begun */
    CODE_NO_KERNEL,   /* none could be started: err */
    CODE_LOST         /* the sandbox does not answer: err */
};

/* Those that are NULL are not wanted. */
struct code_sink {
    void (*event)(void *to, const struct code_event *event); /* begin and end are of this cell */
    void (*too_big)(void *to);                               /* a line was dropped */
    void (*flush)(void *to);                                 /* what came at once is over */
    void (*silence)(void *to);                               /* nothing for CODE_SILENCE_MS */
};

struct code_cell {
    struct ops *ops;              /* borrowed */
    struct code_context *context; /* borrowed; its kernel is started where there is none */
    const struct code_sink *sink;
    void *to;
    bool gone; /* the client: also set by the sink. Its cell is interrupted */
    struct ops_cell cell;
    char id[20];

    /* Behind code_cell_run: */
    struct exec_result result; /* of a kernel that ended */
    /* the last of what it said on stderr before it began; ends with a NUL */
    char words[CODE_WORDS_MAX];
    uint64_t malformed; /* lines that were no events */

    /* The rest is code_cell.c's. */
    struct ops_run run;
    char *text; /* what goes in */
    char *line; /* what there is of a line that is not whole */
    size_t len, room, words_len;
    bool begun, ended;
    bool skipping; /* the rest of a line that was too long */
    bool has_room; /* code_room_take */
};

/* ops, context, sink and `to` are set. The cell gets its id. */
int code_cell_init(struct code_cell *cell, struct err *err);
/* The line for the kernel, which is taken over; without its "id". */
int code_cell_say(struct code_cell *cell, json_t *line, struct err *err);
enum code_ending code_cell_run(struct code_cell *cell, struct err *err);
void code_cell_done(struct code_cell *cell);

#endif
