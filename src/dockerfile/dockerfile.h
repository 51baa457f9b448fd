/* dockerfile.h - a Dockerfile as a list of instructions.
 *
 * Pure: text in, structs out; fuzzed. Continuation lines, comments, parser directives, heredocs and the JSON form are understood
 * here; variables are plan.c's, which knows their values. What is not supported is refused with the number of its line:
 * nothing is ignored.
 *
 * Owns:    the texts of the instructions, from parse to done.
 * Callers: dockerfile/plan.c; the command line. */
#ifndef COVE_DOCKERFILE_DOCKERFILE_H
#define COVE_DOCKERFILE_DOCKERFILE_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DOCKERFILE_MAX       (256u * 1024) /* bytes of a file */
#define DOCKERFILE_LINES_MAX 1000          /* instructions */
#define DOCKERFILE_TEXT_MAX  65536         /* of one instruction, and of one value */
#define DOCKERFILE_DOCS_MAX  16            /* heredocs of one instruction */

enum dockerfile_word {
    WORD_FROM,
    WORD_RUN,
    WORD_COPY,
    WORD_ADD,
    WORD_ARG,
    WORD_ENV,
    WORD_WORKDIR,
    WORD_USER,
    WORD_SHELL,
    WORD_CMD,
    WORD_ENTRYPOINT,
    WORD_LABEL,
    WORD_EXPOSE,
    WORD_COUNT
};

struct dockerfile_doc {
    char *name, *text; /* name: without quotes and '-' */
    bool expand;       /* the name was without quotes: variables are replaced */
};

struct dockerfile_line {
    unsigned number; /* of its first line */
    enum dockerfile_word word;
    json_t *flags; /* array of [name, value]; value "" of a flag without '=' */
    char *rest;    /* behind the flags; continuation lines joined */
    json_t *exec;  /* array of texts, of the JSON form; NULL: another form */
    struct dockerfile_doc *docs;
    size_t doc_count;
};

struct dockerfile {
    struct dockerfile_line *lines;
    size_t count;
    char escape; /* '\\' or '`' */
};

const char *dockerfile_word_name(enum dockerfile_word word);

/* Every error begins with "line N: ". */
int dockerfile_parse(const char *text, size_t len, struct dockerfile *ret, struct err *err);
void dockerfile_done(struct dockerfile *file);

/* "line N: …", ERR_INVALID. */
int dockerfile_bad(struct err *err, unsigned line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* "line N: …" around what is in err. */
int dockerfile_at(struct err *err, unsigned line);

#endif
