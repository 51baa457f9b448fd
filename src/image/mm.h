/* mm.h - the agent's mm-1.img: whether its memory is open to debuggers of its sandbox.
 *
 * It is while it is saved, because a checkpoint needs that; a restore is to make it as it was before, from its first
 * instruction on.
 *
 * Callers: save.c, and stage.c for images that were saved without. */
#ifndef COVE_IMAGE_MM_H
#define COVE_IMAGE_MM_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define MM_NAME "mm-1.img"
#define MM_MOST (1u << 20) /* bytes of the file */

/* Where the file says that it is, as one byte; 0: it does not. Pure. */
size_t mm_dumpable_at(const uint8_t *text, size_t len);

/* The whole file. *ret is the caller's to free. */
int mm_read(int memory_fd, uint8_t **ret, size_t *ret_len, struct err *err);

int mm_fix(int memory_fd, struct err *err);

#endif
