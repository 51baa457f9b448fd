/* options.h - options of verbs: one table drives parsing, --help and completion.
 *
 * A verb describes itself with a struct verb (verbs.h) and gives options_parse a struct of its own
 * to fill, by offset. Values are pointers into argv or numbers: there is nothing to free.
 *
 *   struct ps_options { bool json; bool quiet; };
 *   static const struct option ps_options[] = {
 *       { 0,   "json",  OPTION_FLAG, offsetof(struct ps_options, json),  NULL, 0, "as JSON" },
 *       { 'q', "quiet", OPTION_FLAG, offsetof(struct ps_options, quiet), NULL, 0, "ids only" },
 *   };
 *
 * --help and --state DIR are understood by every verb and stand in no table. */
#ifndef COVE_CLI_OPTIONS_H
#define COVE_CLI_OPTIONS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_TEXT,     /* const char *; the last one counts */
    OPTION_LIST,     /* struct option_list */
    OPTION_NUMBER,   /* uint64_t */
    OPTION_SIZE,     /* uint64_t, bytes */
    OPTION_DURATION, /* uint64_t, milliseconds */
};

/* What bash offers for a value or an operand. */
enum complete {
    COMPLETE_NONE,
    COMPLETE_FILE,
    COMPLETE_DIR,
    COMPLETE_SANDBOX,
    COMPLETE_TEMPLATE,
    COMPLETE_COPY, /* SANDBOX: or a file */
    COMPLETE_VERB,
    COMPLETE_COUNT
};

#define OPTION_LIST_MAX 256
struct option_list {
    const char *items[OPTION_LIST_MAX]; /* borrowed from argv */
    size_t count;
};

struct option {
    char letter;      /* 0: none */
    const char *name; /* without its dashes */
    enum option_kind kind;
    size_t offset;     /* in the verb's own struct */
    const char *value; /* placeholder in the help; NULL for a flag */
    enum complete complete;
    const char *help;
    bool not_zero; /* of a number, a size or a duration: 0 is an invalid value */
};

struct verb;

enum options_result {
    OPTIONS_BAD = -1,
    OPTIONS_RUN,  /* continue */
    OPTIONS_HELP, /* --help was answered: end with 0 */
};

/* argv[0] is the verb's name. Operands are moved to the front of *ret_operands, which points into
 * argv and ends with NULL. `values` is filled, never cleared: defaults may be in it already. */
enum options_result options_parse(const struct verb *verb, int argc, char **argv, void *values,
                                  char ***ret_operands, int *ret_count, struct err *err);

void options_help(const struct verb *verb, FILE *out);

#endif
