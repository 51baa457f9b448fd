/* pack_fuzz.c - the list of chunks of compressed pages: one that is taken adds up, and its chunks are opened only if they
 * are what it says. */
#include "image/pack.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char plain[PACK_CHUNK], room[1 << 20], stored[PACK_CHUNK];
    void *copy = malloc(size + 1); /* aligned, and its end is known */
    struct pack pack;
    struct err err;

    if (copy) {
        memcpy(copy, data, size);
        if (pack_room() > sizeof room)
            abort();
        if (pack_parse(copy, size, &pack, &err) == 0)
            for (uint32_t i = 0; i < pack.head->chunks; i++) {
                size_t len = pack.chunk[i].len;

                if (pack.len != size || len == 0 || len > sizeof stored)
                    abort();
                /* Blank bytes: only a list that has their very hash opens them. */
                if (pack_open_chunk(&pack.chunk[i], stored, len, plain, room) > (ssize_t) len)
                    abort();
            }
    }
    free(copy);
    return 0;
}
