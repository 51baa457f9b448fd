/* child.h - runs a program that may do anything, and leaves nothing of it behind.
 *
 * Owns:    the program's process and mount namespaces: when it ends, fails or is interrupted, every
 *          process it started is gone and every mount it made with them.
 * Callers: template_build.c. Needs root.
 * Never:   a shell: argv is exec'd as it is. */
#ifndef COVE_TEMPLATE_CHILD_H
#define COVE_TEMPLATE_CHILD_H

#include "base/err.h"

#include <stddef.h>

struct child {
    const char *const *argv; /* argv[0] is searched in PATH */
    const char *const *env;  /* K=V on top of a clean environment; NULL: none */
    int log_fd;              /* gets all output; -1: none */
    void (*line)(void *context, const char *line); /* every line of output; may be NULL */
    void *context;
};

/* From here to child_signals_done, SIGINT, SIGTERM and SIGHUP end the running child, and every
 * later child_run fails at once. */
int child_signals_init(struct err *err);
void child_signals_done(void);

/* The signal that came, or 0. */
int child_interrupted(void);

/* 0 when it ended with 0. ERR_UNAVAILABLE: no such program. */
int child_run(const struct child *child, struct err *err);

/* The output of a program that says little, as text; for asking apt. No namespaces. */
int child_ask(const char *const *argv, char *out, size_t size, struct err *err);

#endif
