/* tracer.h - makes the n-th system call of the keeper, its child, its disk maker or its saver fail, or the
 * last thing a process ever did.
 *
 * Owns:    the ptrace relation to those processes, from tracer_begin to tracer_end.
 * Callers: sweep.c. While a tracer is at work, waitpid(-1) is its alone.
 * Never:   waits longer than `patience_ms`: a keeper that hangs is a finding, not a hung test. */
#ifndef COVE_FAULT_TRACER_H
#define COVE_FAULT_TRACER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum role {
    ROLE_NONE,
    ROLE_KEEPER,
    ROLE_CHILD, /* between clone and exec */
    ROLE_MAKER, /* of disks */
    ROLE_SAVER, /* of a sandbox */
    ROLE_COUNT
};
const char *role_name(enum role role);

struct injection {
    enum role who;    /* whose calls are counted */
    enum role victim; /* ROLE_NONE: the call fails; else this one is killed at that moment */
    bool keeper_too;  /* and the keeper with it */
    unsigned n;       /* which call, from 1 on */
    unsigned variant; /* error mode: which of the plausible errors */
};

struct tracee {
    pid_t pid;
    enum role role;
    bool running;  /* not in a stop that we know of */
    int fail_with; /* its call was skipped: the errno to put at its exit */
};

#define TRACEES_MAX 16

struct tracer {
    struct injection what;
    unsigned counted;
    bool done;     /* the n-th call came */
    char call[32]; /* its name, for messages */
    int errnum;    /* what it was made to return */
    int patience_ms;
    bool timed_out;
    bool ending;
    pid_t keeper;
    struct tracee tracees[TRACEES_MAX];
};

/* Attaches to the keeper, to its maker where that one is counted, and to a child that waits (0: there is none) where that one is counted, or
 * killed. */
int tracer_begin(struct tracer *t, const struct injection *what, pid_t keeper, pid_t maker,
                 pid_t child, struct err *err);

/* Serves the tracees until `client`, a child of ours that is not traced, ends. Returns its wait
 * status, or -1 when patience ran out (the client is then killed). */
int tracer_serve(struct tracer *t, pid_t client);

/* Lets everybody go. */
void tracer_end(struct tracer *t);

#endif
