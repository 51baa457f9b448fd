/* pagemap_fuzz.c - the map of a process's pages that criu wrote: what is taken from it is in order, and of whole pages. */
#include "image/pagemap.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ranges ranges = { .count = 0 };
    struct err err;
    uint32_t id;

    (void) pagemap_read(data, size, &id, &ranges, &err);
    for (size_t i = 0; i < ranges.count; i++) {
        const struct range *r = &ranges.at[i];

        if (r->start >= r->end || (r->start | r->end | r->offset) % PAGE_BYTES ||
            (i && r->start < ranges.at[i - 1].end))
            abort();
    }
    ranges_done(&ranges);
    return 0;
}
