/* guest.h - starting what the bridge leads to. One function for each isolation that has a bridge; main.c has the table.
 *
 * Runs with the rights of the jail around a guest (jail/machine.h), before the bridge gives them up and before any byte of the guest's
 * is read. */
#ifndef COVE_BRIDGE_GUEST_H
#define COVE_BRIDGE_GUEST_H

#include "base/err.h"

#include <stddef.h>

struct guest_start {
    /* of the agent: its program as the guest sees it, then its arguments; NULL at the end */
    char **argv;
    char **envp;
    int trunk; /* the guest's end: becomes its standard input */
    int log;   /* for what the guest's program says */
};

/* The last line that was said, in plain characters; "nothing" if there is none. */
void guest_last_words(int log, char *out, size_t size);

/* gVisor, by runsc: returns when the guest's first process was started. */
int guest_start_gvisor(const struct guest_start *start, struct err *err);

#endif
