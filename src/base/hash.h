/* hash.h - FNV-1a, 64 bits: tells versions of our own inputs apart. Not for hostile ones. */
#ifndef COVE_BASE_HASH_H
#define COVE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 0xcbf29ce484222325ull

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * 0x100000001b3ull;
    return hash;
}

/* With its NUL, so that "ab","c" and "a","bc" differ. NULL counts as "". */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

#endif
