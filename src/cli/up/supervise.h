/* supervise.h - keeps a few programs running: starts them in order, restarts what ended, stops them in reverse order.
 *
 * A program is a row: how it is started, how it is known to be ready, what must have been ready before its first start.
 * Rows are started in the order of the table and stopped in the opposite order, one after the other. When a program
 * ends by itself, the others continue: each must cope with the absence of the others, and recover.
 *
 * SIGTERM, SIGINT: stop. The second one sends each program its `hurry` signal, the third one SIGKILL. SIGHUP: reload.
 *
 * Owns:    the processes of the table, from start to end; they are killed if this process is.
 * Callers: up.c. */
#ifndef COVE_CLI_SUPERVISE_H
#define COVE_CLI_SUPERVISE_H

#include "base/err.h"
#include "cli/up/restart.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum program_life {
    PROGRAM_DOWN,     /* is started when its time comes */
    PROGRAM_STARTING, /* runs, and was not ready yet */
    PROGRAM_UP,       /* runs, and was ready */
};

struct program {
    const char *name;
    /* Starts it: the child calls supervise_enter() before it executes the program. */
    int (*start)(void *with, pid_t *ret, struct err *err);
    /* Asked every few milliseconds while it starts; must not wait. */
    bool (*is_ready)(void *with);
    /* Before SIGHUP is sent to it. NULL: SIGHUP is not for this program. */
    void (*reload)(void *with);
    void *with;
    bool off; /* not part of this run */
    /* PROGRAM_BIT()s of rows that were ready once before this one is started for the first time */
    unsigned needs;
    int hurry; /* signal when a stop is asked for a second time */

    /* supervise()'s own. */
    enum program_life life;
    pid_t pid;                             /* 0: not running */
    unsigned asked;                        /* how often to stop */
    uint64_t start_ms, began_ms, ready_ms; /* when it is due, was started, became ready */
    bool slow;                             /* that it is slow to start was said */
    struct restart restart;
};

#define PROGRAM_BIT(row) (1u << (row))

/* Runs until a signal stops it (0) or a program is given up (the exit code of that program). `announce` is called
 * once, when every program is ready for the first time. */
int supervise(struct program *programs, size_t count, void (*announce)(void *with), void *with,
              struct err *err);

/* In the child, after it gave up privileges: its own process group (Ctrl-C comes from us, once), the signals that
 * supervise() blocked, and the end when we are killed. */
void supervise_enter(void);

#endif
