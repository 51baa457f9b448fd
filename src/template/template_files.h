/* template_files.h - the files that cove itself writes into every template: one table.
 *
 * Owns:    their content and modes. What a file says is the same on every host.
 * Callers: template_host.c (all of them), template_build.c (those that also fit a Debian tree). */
#ifndef COVE_TEMPLATE_TEMPLATE_FILES_H
#define COVE_TEMPLATE_TEMPLATE_FILES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEMPLATE_UID 1000

/* Which templates get a file; bits. */
#define FILES_HOST  1u
#define FILES_TREE  2u
#define FILES_IMAGE 4u /* from layers: image_tools.h */

/* Replaces what is there. Parents must be there. */
int template_files_put(int root_fd, uint32_t which, struct err *err);

/* The i-th file of those; false: there are no more. */
struct template_file {
    const char *path, *text;
    uint32_t mode;
};
bool template_files_at(size_t i, uint32_t which, struct template_file *ret);

/* Changes when any of the files does. */
uint64_t template_files_hash(uint64_t hash, uint32_t which);

#endif
