/* forget_filter JOURNAL - makes every record of a keeper's journal one of the version that did not write down filters: shorter,
 * and with a zero in the place of the filter's form. For tests of adoption; no keeper runs meanwhile. */
#include "base/own.h"
#include "keeper/journal.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As src/keeper/journal.c has it. */
#define MAGIC 0x314c4a43u
#define SLOT  2048

struct head {
    uint32_t magic, len;
    uint64_t sum;
    uint8_t boot[16];
};

#define LEN_BEFORE (sizeof(struct head) + offsetof(struct journal_record, filter))

static uint64_t sum_of(const unsigned char *at, size_t len)
{
    uint64_t sum = 0xcbf29ce484222325u;

    for (size_t i = 0; i < len; i++)
        sum = (sum ^ at[i]) * 0x100000001b3u;
    return sum;
}

int main(int argc, char **argv)
{
    auto_close int fd = argc == 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
    unsigned char slot[SLOT];
    ssize_t n;

    if (fd < 0) {
        perror("forget_filter");
        return 2;
    }
    for (off_t at = 0; (n = pread(fd, slot, sizeof slot, at)) > 0; at += SLOT) {
        struct head head;

        memcpy(&head, slot, sizeof head);
        if (n < (ssize_t) LEN_BEFORE || head.magic != MAGIC)
            continue;
        memset(slot + sizeof head + offsetof(struct journal_record, filter_form), 0,
               sizeof(uint32_t));
        memset(slot + LEN_BEFORE, 0, sizeof slot - LEN_BEFORE);
        head.len = LEN_BEFORE;
        head.sum =
            sum_of(slot + offsetof(struct head, boot), LEN_BEFORE - offsetof(struct head, boot));
        memcpy(slot, &head, sizeof head);
        if (pwrite(fd, slot, (size_t) n, at) != n)
            return 1;
    }
    return 0;
}
