/* ask.h - what a program of the host says of itself. It runs without rights, and for a few seconds at most.
 *
 * Callers: drivers that need a program of another project. */
#ifndef COVE_DRIVER_ASK_H
#define COVE_DRIVER_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Its standard output, cut at `size`; "" if it does not run. argv[0] is its path. */
void ask_program(const char *const *argv, char *out, size_t size);

/* The file has not changed. */
bool ask_is_same(const struct stat *a, const struct stat *b);

#endif
