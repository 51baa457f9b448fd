/* hints.h - what to type instead: for words that other tools know, and for slips of the finger. Pure.
 *
 * Callers: main.c and subverbs.c (verbs), options.c (options). */
#ifndef COVE_CLI_HINTS_H
#define COVE_CLI_HINTS_H

#include "cli/verbs.h"

#include <stddef.h>

/* A sentence for a verb, or an option of a verb, that does not exist; "" if there is nothing to say. Returns out. */
const char *hint_verb(const struct verb *const *list, size_t count, const char *word, char *out,
                      size_t size);
const char *hint_command(const struct verb *verb, const char *word, char *out, size_t size);
const char *hint_option(const struct verb *verb, const char *word, char *out, size_t size);

/* How many letters are to be added, left out, changed or swapped with the next one; more than `most` is most + 1. */
unsigned hint_distance(const char *a, const char *b, unsigned most);

#endif
