#include "keeper/journal.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOURNAL_MAGIC 0x314c4a43u /* "CJL1" */
#define JOURNAL_SLOT  2048

struct on_disk {
    uint32_t magic;
    uint32_t len;
    uint64_t sum;
    uint8_t boot[16];
    struct journal_record record;
};
_Static_assert(sizeof(struct on_disk) <= JOURNAL_SLOT, "a record fits its slot");

/* Of versions before: sandboxes outlive a keeper, also when it is the next version that comes after it. */
static const size_t lengths[] = { sizeof(struct on_disk),
                                  offsetof(struct on_disk, record.template_disks),
                                  offsetof(struct on_disk, record.doomed),
                                  offsetof(struct on_disk, record.filter),
                                  offsetof(struct on_disk, record.was_frozen) };

static bool known_length(size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        if (lengths[i] == len)
            return true;
    return false;
}

/* FNV-1a: against torn writes, not against an attacker, who cannot write here. */
static uint64_t sum_of(const struct on_disk *d, size_t len)
{
    const unsigned char *at = (const unsigned char *) d;
    uint64_t sum = 0xcbf29ce484222325u;

    for (size_t i = offsetof(struct on_disk, boot); i < len; i++)
        sum = (sum ^ at[i]) * 0x100000001b3u;
    return sum;
}

static int read_boot_id(uint8_t boot[16], struct err *err)
{
    char text[64];
    size_t n = 0;

    if (io_read_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text) < 0)
        return err_sys(err, errno, "read the boot id");
    memset(boot, 0, 16);
    for (const char *c = text; *c && n < 32; c++) {
        const char *digits = "0123456789abcdef", *d = strchr(digits, *c);

        if (d)
            boot[n / 2] = (uint8_t) (boot[n / 2] << 4 | (d - digits)), n++;
    }
    return 0;
}

int journal_open(struct journal *journal, int state_fd, struct err *err)
{
    journal->fd = openat(state_fd, "journal", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (journal->fd < 0)
        return err_sys(err, errno, "open the journal");
    return read_boot_id(journal->boot, err);
}

void journal_close(struct journal *journal)
{
    own_close(&journal->fd);
}

int journal_write(const struct journal *journal, uint32_t slot, const struct journal_record *record,
                  struct err *err)
{
    struct on_disk d;
    ssize_t n;

    memset(&d, 0, sizeof d); /* padding too: it is summed */
    d.magic = JOURNAL_MAGIC;
    d.len = sizeof d;
    memcpy(d.boot, journal->boot, sizeof d.boot);
    memcpy(&d.record, record, sizeof d.record);
    d.sum = sum_of(&d, sizeof d);
    n = pwrite(journal->fd, &d, sizeof d, (off_t) slot * JOURNAL_SLOT);
    if (n != (ssize_t) sizeof d)
        return err_sys(err, n < 0 ? errno : ENOSPC, "write the journal");
    return 0;
}

int journal_clear(const struct journal *journal, uint32_t slot, struct err *err)
{
    static const struct on_disk nothing;

    if (pwrite(journal->fd, &nothing, sizeof nothing, (off_t) slot * JOURNAL_SLOT) !=
        (ssize_t) sizeof nothing)
        return err_sys(err, errno, "clear the journal");
    return 0;
}

uint32_t journal_slots(const struct journal *journal)
{
    struct stat st;

    return fstat(journal->fd, &st) < 0
               ? 0
               : (uint32_t) ((st.st_size + JOURNAL_SLOT - 1) / JOURNAL_SLOT);
}

int journal_read(const struct journal *journal, uint32_t slot, struct journal_record *ret,
                 struct err *err)
{
    struct on_disk d;
    ssize_t n = pread(journal->fd, &d, sizeof d, (off_t) slot * JOURNAL_SLOT);

    if (n < 0)
        return err_sys(err, errno, "read the journal");
    if (n < (ssize_t) offsetof(struct on_disk, record) || d.magic != JOURNAL_MAGIC ||
        !known_length(d.len) || n < (ssize_t) d.len || d.sum != sum_of(&d, d.len) ||
        memcmp(d.boot, journal->boot, sizeof d.boot) != 0)
        return 0;
    memset((char *) &d + d.len, 0, sizeof d - d.len);
    *ret = d.record;
    return 1;
}
