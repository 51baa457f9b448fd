/* template_files.h - the files that cove itself writes into every template: one table.
 *
 * Owns:    their content and modes. What a file says is the same on every host.
 * Callers: template_host.c (all of them), template_build.c (those that also fit a Debian tree). */
#ifndef COVE_TEMPLATE_TEMPLATE_FILES_H
#define COVE_TEMPLATE_TEMPLATE_FILES_H

#include "base/err.h"

#include <stdint.h>

#define TEMPLATE_UID 1000

/* Which templates get a file; bits. */
#define FILES_HOST 1u
#define FILES_TREE 2u

/* Replaces what is there. Parents must be there. */
int template_files_put(int root_fd, uint32_t which, struct err *err);

/* Changes when any of the files does. */
uint64_t template_files_hash(uint64_t hash, uint32_t which);

#endif
