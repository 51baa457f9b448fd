/* refusals.h - system calls that the sandbox's filter refused: who tried what, how often.
 *
 * The kernel holds a refused caller until the listener answers. Every notification is answered
 * EPERM; a turn of the loop takes a bounded number, so that a flood of them slows only those who
 * flood.
 *
 * Owns:    the listener's descriptor and the counts. Callers: main.c, ops.c. */
#ifndef COVE_AGENT_CORE_REFUSALS_H
#define COVE_AGENT_CORE_REFUSALS_H

#include "agent/core/loop.h"

#define REFUSALS_MAX     64
#define REFUSALS_PROGRAM 16

struct refusal {
    int32_t call;                   /* number; -1: all that came when the table was full */
    char program[REFUSALS_PROGRAM]; /* as in /proc/<pid>/comm */
    uint64_t count;
    uint32_t pid; /* who came last, inside the sandbox */
};

struct refusals {
    struct watch watch;
    struct refusal *rows; /* owned: REFUSALS_MAX + 1, made with the first refusal */
    size_t row_count;
    uint64_t total;
};

int refusals_open(struct refusals *refusals, struct loop *loop, int fd, struct err *err);

/* Another holder of the listener answers from now on; the counts stay. False: there was none. */
bool refusals_close(struct refusals *refusals, struct loop *loop);

/* Pure but for memory. */
void refusals_count(struct refusals *refusals, int32_t call, const char *program, uint32_t pid);

/* "mount"; "system call 511" in `room` when it has no name here. */
const char *refusals_call_name(int32_t call, char *room, size_t size);

#endif
