/* pagemap.h - which pages of a process are where in a dump's file of pages.
 *
 * Callers: fill.c, with criu's pagemap-<pid>.img, which is authenticated. Pure. */
#ifndef COVE_IMAGE_PAGEMAP_H
#define COVE_IMAGE_PAGEMAP_H

#include "base/err.h"
#include "image/ranges.h"

#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES 4096u

/* What criu lets others bring later goes into ret, which is empty; the name of the file is pages-<id>.img. */
int pagemap_read(const uint8_t *text, size_t len, uint32_t *ret_id, struct ranges *ret,
                 struct err *err);

#endif
