/* restart.h - whether and when a program that ended is started again. Pure.
 *
 * Each end is a strike, each second of being ready takes one back. The first strike costs no wait; each further one
 * doubles the wait, from RESTART_FIRST_MS up to RESTART_MOST_MS. A program that was ready once is never given up. One
 * that was never ready is given up at an exit code that another attempt cannot change, or after RESTART_TRIES
 * attempts. */
#ifndef COVE_CLI_RESTART_H
#define COVE_CLI_RESTART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESTART_FIRST_MS 100
#define RESTART_MOST_MS  10000
#define RESTART_TRIES    5

struct restart {
    bool was_ready; /* at least once since `cove up` began */
    unsigned strikes;
};

/* After an end, with its wait status and for how long the program had been ready (0: it was not). False: give up. */
bool restart_again(struct restart *restart, int status, uint64_t ready_ms, unsigned *ret_wait_ms);

/* "exit code 70", "signal 9 (SIGKILL)". Returns out. */
const char *restart_reason(int status, char *out, size_t size);

/* As a shell would tell it: the exit code, or 128 and the signal. */
int restart_exit_code(int status);

#endif
