/* base64.h - RFC 4648, section 4. */
#ifndef COVE_BASE_BASE64_H
#define COVE_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* NUL-terminated; room for BASE64_SIZE(len). */
#define BASE64_SIZE(len) (((len) + 2) / 3 * 4 + 1)
void base64_put(char *out, const uint8_t *data, size_t len);

/* Of one digit, or -1. */
int base64_value(char c);

/* Strict: whole groups of four, padded, nothing else in between. The number of bytes, at most len / 4 * 3, or -1. */
ssize_t base64_get(const char *text, size_t len, uint8_t *out);

#endif
