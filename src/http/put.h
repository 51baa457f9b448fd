/* put.h - writes into a buffer of the caller's, and counts what did not fit.
 *
 * Never writes past its size and never stops counting: `len` is what was needed, so a caller that
 * gave too little room knows how much to give. */
#ifndef COVE_HTTP_PUT_H
#define COVE_HTTP_PUT_H

#include "http/slice.h"

struct put {
    char *buf; /* borrowed */
    size_t size;
    size_t len;
};

static inline struct put put_into(char *buf, size_t size)
{
    return (struct put){ buf, size, 0 };
}

static inline bool put_fits(const struct put *put)
{
    return put->len <= put->size;
}

static inline void put_bytes(struct put *put, const char *at, size_t len)
{
    if (len > 0 && put->len <= put->size && len <= put->size - put->len)
        memcpy(put->buf + put->len, at, len);
    put->len += len;
}

static inline void put_char(struct put *put, char c)
{
    if (put->len < put->size)
        put->buf[put->len] = c;
    put->len++;
}

static inline void put_text(struct put *put, const char *text)
{
    put_bytes(put, text, strlen(text));
}

void put_number(struct put *put, uint64_t value);
/* At least `width` digits, with zeros before. */
void put_padded(struct put *put, uint64_t value, unsigned width);
void put_hex(struct put *put, uint64_t value);
/* Percent-encoded, all but letters, digits and -._~ */
void put_percent(struct put *put, struct slice text);

#endif
