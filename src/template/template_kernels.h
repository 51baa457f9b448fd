/* template_kernels.h - programs for inside, which every template has: the code interpreter's kernels in
 * /opt/cove/kernels, and mcp-gateway in /opt/cove/bin.
 *
 * Owns:    their content: the files of kernels/ and inside/ as they were when this program was built.
 * Callers: template_host.c, template_build.c, template_store.c. */
#ifndef COVE_TEMPLATE_TEMPLATE_KERNELS_H
#define COVE_TEMPLATE_TEMPLATE_KERNELS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Replaces what is there and differs; what is no longer ours goes. */
int template_put_kernels(int root_fd, struct err *err);

/* The i-th file; false: there are no more. */
bool template_kernels_at(size_t i, const char **ret_path, const char **ret_text, mode_t *ret_mode);

/* Changes when any of them does. */
uint64_t template_kernels_hash(uint64_t hash);

#endif
