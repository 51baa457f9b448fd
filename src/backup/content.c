#include "backup/content.h"

#include <string.h>

static void put_number(struct sha256 *hash, uint64_t number)
{
    unsigned char bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char) (number >> (56 - 8 * i));
    sha256_add(hash, bytes, sizeof bytes);
}

bool content_is_zero(const void *data, size_t len)
{
    const unsigned char *bytes = data;

    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

void content_init(struct content *c)
{
    sha256_init(&c->hash);
    c->size = c->stored = 0;
    c->have = 0;
}

static void end_block(struct content *c)
{
    if (!content_is_zero(c->block, c->have)) {
        put_number(&c->hash, c->size - c->have);
        sha256_add(&c->hash, c->block, c->have);
        c->stored += c->have;
    }
    c->have = 0;
}

void content_add(struct content *c, const void *data, size_t len)
{
    const unsigned char *bytes = data;

    while (len > 0) {
        size_t n = len < CONTENT_BLOCK - c->have ? len : CONTENT_BLOCK - c->have;

        memcpy(c->block + c->have, bytes, n);
        c->have += n;
        c->size += n;
        bytes += n;
        len -= n;
        if (c->have == CONTENT_BLOCK)
            end_block(c);
    }
}

void content_zeros(struct content *c, uint64_t len)
{
    static const unsigned char zeros[CONTENT_BLOCK];
    uint64_t first = (CONTENT_BLOCK - c->have) % CONTENT_BLOCK;

    first = first < len ? first : len;
    content_add(c, zeros, (size_t) first);
    len -= first;
    c->size += len - len % CONTENT_BLOCK; /* whole blocks, of which the digest has nothing */
    content_add(c, zeros, (size_t) (len % CONTENT_BLOCK));
}

void content_done(struct content *c, unsigned char ret[SHA256_LEN])
{
    if (c->have > 0)
        end_block(c);
    put_number(&c->hash, c->size);
    sha256_done(&c->hash, ret);
}
