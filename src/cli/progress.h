/* progress.h - how far a long piece of work is: one line that changes on a terminal, a line per
 * step elsewhere. On stderr, so that stdout stays the result's. */
#ifndef COVE_CLI_PROGRESS_H
#define COVE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *title;
    bool tty, drawn;
    unsigned percent; /* never goes back */
    char step[64];
    uint64_t started_ms, drawn_ms;
};

void progress_init(struct progress *progress, const char *title);

/* `detail` may be NULL; it is cut, and its control characters are not shown. */
void progress_show(struct progress *progress, unsigned percent, const char *step,
                   const char *detail);

/* Wipes the line, or leaves the text as the last one. */
void progress_done(struct progress *progress, const char *text);

#endif
