/* question.h - asks a program that says little: its standard input and output, with a bound for both size and time.
 *
 * Owns:    the program's session and process group, which is killed when question_ask() returns; and, if the program did not answer, every
 *          process that it started, also one in a session of its own.
 * Callers: credentials.c, template_pull.c. */
#ifndef COVE_CLI_QUESTION_H
#define COVE_CLI_QUESTION_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define QUESTION_INPUT_MAX 1024

struct question {
    const char *const *argv; /* argv[0] is searched in PATH */
    const char *input;       /* shorter than QUESTION_INPUT_MAX; NULL: none */
    /* whom it runs as, with that user's groups and home, and little of our environment; our own: as we are */
    uid_t uid;
    uint64_t most_ms;
    char *out; /* gets the output, as text */
    size_t size;
};

/* The exit code. ERR_UNAVAILABLE: there is no such program; ERR_TIMEOUT; ERR_TOO_BIG: it said more than fits; ERR_STATE: a
 * signal ended it. */
int question_ask(const struct question *q, struct err *err);

#endif
