/* Two words of magic, then records, each with its length before it: the head, then one for each run of pages. Those that are
 * present follow each other in the file of pages. */
#include "image/pagemap.h"

#include "image/proto.h"

#include <string.h>

#define MAGIC_LEN 8

enum { HEAD_PAGES_ID = 1 };
enum { RUN_ADDRESS = 1, RUN_PAGES_OLD = 2, RUN_FLAGS = 4, RUN_PAGES = 5 };
enum { FLAG_LAZY = 1 << 1, FLAG_PRESENT = 1 << 2 };

/* Beyond what a process can have: a multiple of neither overflows. */
#define ADDRESS_END (1ull << 47)

static int bad(struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "criu wrote a map of pages in a form that is unknown");
}

static bool next_record(const uint8_t **at, const uint8_t *end, const uint8_t **ret,
                        uint32_t *ret_len)
{
    if ((size_t) (end - *at) < sizeof *ret_len)
        return false;
    memcpy(ret_len, *at, sizeof *ret_len);
    *at += sizeof *ret_len;
    if (*ret_len > (size_t) (end - *at))
        return false;
    *ret = *at;
    *at += *ret_len;
    return true;
}

static int read_run(const uint8_t *at, const uint8_t *end, uint64_t *offset, struct ranges *ret,
                    struct err *err)
{
    uint64_t address = 0, pages = 0, flags = 0;
    struct proto_field f;

    while (proto_next(&at, end, &f)) {
        if (f.number == RUN_ADDRESS)
            address = f.value;
        if (f.number == RUN_PAGES || (f.number == RUN_PAGES_OLD && !pages))
            pages = f.value;
        if (f.number == RUN_FLAGS)
            flags = f.value;
    }
    if (address % PAGE_BYTES || address >= ADDRESS_END ||
        pages > (ADDRESS_END - address) / PAGE_BYTES || *offset >= ADDRESS_END)
        return bad(err);
    if (!(flags & FLAG_PRESENT))
        return 0;
    if (flags & FLAG_LAZY && ranges_add(ret, address, address + pages * PAGE_BYTES, *offset) < 0)
        return err_set(err, ERR_UNSUPPORTED, "the runs of pages are not in order, or too many");
    *offset += pages * PAGE_BYTES;
    return 0;
}

int pagemap_read(const uint8_t *text, size_t len, uint32_t *ret_id, struct ranges *ret,
                 struct err *err)
{
    const uint8_t *at = text, *end = text + len, *record;
    struct proto_field f = { .number = 0 };
    uint64_t offset = 0;
    uint32_t size;

    if (len < MAGIC_LEN)
        return bad(err);
    at += MAGIC_LEN;
    if (!next_record(&at, end, &record, &size) || !proto_next(&record, record + size, &f) ||
        f.number != HEAD_PAGES_ID || f.data)
        return bad(err);
    *ret_id = (uint32_t) f.value;
    while (at < end)
        if (!next_record(&at, end, &record, &size))
            return bad(err);
        else if (read_run(record, record + size, &offset, ret, err) < 0)
            return -1;
    return 0;
}
