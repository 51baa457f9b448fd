/* tools_text.h - what tools do with texts: edits, lines, cuts, and telling texts from other files. Pure. */
#ifndef COVE_SURFACE_TOOLS_TOOLS_TEXT_H
#define COVE_SURFACE_TOOLS_TOOLS_TEXT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_EDIT_MAX (16u << 20) /* bytes of an edited file, before and after */

struct text {
    char *data; /* NUL-terminated behind len; the owner frees it */
    size_t len, room;
};

/* Replaces old by new in place. Without `all`, old must be there exactly once. An error leaves it as it was.
 * *ret_count: replacements. */
int text_edit(struct text *text, const char *old, const char *new, bool all, size_t *ret_count,
              struct err *err);

/* Appends; 0 or -1 when memory is short. */
int text_add(struct text *text, const char *data, size_t len);
int text_addf(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends with "     1\t" before each line, from `first` on. */
int text_add_numbered(struct text *text, const char *data, size_t len, uint64_t first);

/* The longest beginning of at most `most` characters that does not cut one. */
size_t text_cut(const char *data, size_t len, size_t most);

/* Appends what JSON can hold: bytes that are no UTF-8, and NUL, become U+FFFD. */
int text_add_utf8(struct text *text, const char *data, size_t len);

/* Appends the bytes that base64 stands for; -1: it is not base64 (or memory is short), and nothing was added. */
int text_from_base64(struct text *text, const char *base64);

/* "image/png" … by the first bytes; NULL: no image that is known. */
const char *text_image_type(const void *data, size_t len);
/* Of the first bytes of a file: NUL, or no UTF-8 (but for a character cut at the end). */
bool text_is_binary(const char *data, size_t len);

#endif
