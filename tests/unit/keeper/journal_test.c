#include "check.h"

#include "base/own.h"
#include "keeper/journal.h"

#include <fcntl.h>
#include <sys/stat.h>

#define SLOT 2048 /* bytes, as journal.c lays it out */

static int state = -1;
static char state_path[] = "/tmp/cove-journal.XXXXXX";
static struct journal journal;
static struct err err;

static void begin(void)
{
    if (state < 0) {
        state = mkdtemp(state_path) ? open(state_path, O_RDONLY | O_DIRECTORY) : -1;
        (void) chmod(state_path, 0700);
    }
    (void) unlinkat(state, "journal", 0);
    CHECK(journal_open(&journal, state, &err) == 0);
}

static struct journal_record example(void)
{
    struct journal_record r;

    memset(&r, 0, sizeof r);
    (void) snprintf(r.sandbox.id, sizeof r.sandbox.id, "iabcd0123456789abcdef");
    r.sandbox.life = LIFE_RUNNING;
    r.sandbox.slot = 3;
    r.sandbox.pid = 4711;
    r.pid_started = 123456789;
    return r;
}

static void what_was_written_is_read(void)
{
    struct journal_record r = example(), got;

    begin();
    CHECK(journal_write(&journal, 3, &r, &err) == 0);
    CHECK(journal_read(&journal, 3, &got, &err) == 1);
    CHECK(memcmp(&r, &got, sizeof r) == 0);
    journal_close(&journal);
}

static void a_slot_never_written_is_empty_also_past_the_end(void)
{
    struct journal_record r = example(), got;

    begin();
    CHECK(journal_read(&journal, 0, &got, &err) == 0);
    CHECK(journal_write(&journal, 3, &r, &err) == 0);
    CHECK(journal_read(&journal, 2, &got, &err) == 0);
    CHECK(journal_read(&journal, 4, &got, &err) == 0);
    CHECK(journal_read(&journal, 2047, &got, &err) == 0);
    journal_close(&journal);
}

static void a_cleared_slot_is_empty_and_its_neighbours_are_not(void)
{
    struct journal_record r = example(), got;

    begin();
    for (uint32_t slot = 0; slot < 3; slot++)
        CHECK(journal_write(&journal, slot, &r, &err) == 0);
    CHECK(journal_clear(&journal, 1, &err) == 0);
    CHECK(journal_read(&journal, 0, &got, &err) == 1);
    CHECK(journal_read(&journal, 1, &got, &err) == 0);
    CHECK(journal_read(&journal, 2, &got, &err) == 1);
    journal_close(&journal);
}

/* Each byte of a record in turn is damaged: none may pass, and none may be reported as an error. */
static void every_torn_byte_makes_the_record_count_as_none(void)
{
    struct journal_record r = example(), got;
    char whole[SLOT];
    ssize_t size;
    int fd, passed = 0, failed = 0;

    begin();
    CHECK(journal_write(&journal, 0, &r, &err) == 0);
    fd = openat(state, "journal", O_RDWR);
    size = pread(fd, whole, sizeof whole, 0);
    CHECK(size > (ssize_t) sizeof r && size <= SLOT);
    for (ssize_t i = 0; i < size; i++) {
        char bad = (char) (whole[i] ^ 0x40);

        IGNORE(pwrite(fd, &bad, 1, i) != 1);
        passed += journal_read(&journal, 0, &got, &err) == 1;
        failed += journal_read(&journal, 0, &got, &err) < 0;
        IGNORE(pwrite(fd, &whole[i], 1, i) != 1);
    }
    CHECK_INT(passed, 0);
    CHECK_INT(failed, 0);
    CHECK(journal_read(&journal, 0, &got, &err) == 1);
    (void) close(fd);
    journal_close(&journal);
}

static void a_record_cut_short_counts_as_none(void)
{
    struct journal_record r = example(), got;
    struct stat st;

    begin();
    CHECK(journal_write(&journal, 0, &r, &err) == 0);
    CHECK(fstatat(state, "journal", &st, 0) == 0);
    CHECK(ftruncate(journal.fd, st.st_size - 1) == 0);
    CHECK(journal_read(&journal, 0, &got, &err) == 0);
    journal_close(&journal);
}

static void a_record_of_another_boot_counts_as_none(void)
{
    struct journal_record r = example(), got;

    begin();
    journal.boot[0] ^= 1; /* an earlier run of the machine */
    CHECK(journal_write(&journal, 0, &r, &err) == 0);
    CHECK(journal_read(&journal, 0, &got, &err) == 1);
    journal.boot[0] ^= 1;
    CHECK(journal_read(&journal, 0, &got, &err) == 0);
    journal_close(&journal);
}

/* What it lacks is behind all that it has; what lies there of a longer record is not its own. */
static void a_record_of_the_version_before_is_read(void)
{
    struct {
        uint32_t magic, len;
        uint64_t sum;
        uint8_t boot[16];
        struct journal_record record;
    } d;
    struct journal_record r = example(), got;

    begin();
    r.was_frozen = 1;
    (void) snprintf(r.cgroup, sizeof r.cgroup, "iabcd0123456789abcdef");
    CHECK(journal_write(&journal, 2, &r, &err) == 0);
    CHECK(pread(journal.fd, &d, sizeof d, 2 * SLOT) == (ssize_t) sizeof d);
    d.len = (uint32_t) ((char *) &d.record.was_frozen - (char *) &d);
    d.sum = 0xcbf29ce484222325u;
    for (size_t i = 16; i < d.len; i++)
        d.sum = (d.sum ^ ((unsigned char *) &d)[i]) * 0x100000001b3u;
    CHECK(pwrite(journal.fd, &d, d.len, 2 * SLOT) == (ssize_t) d.len);
    CHECK(journal_read(&journal, 2, &got, &err) == 1);
    CHECK_STR(got.cgroup, r.cgroup);
    CHECK_INT(got.was_frozen, 0);
    CHECK(ftruncate(journal.fd, 2 * SLOT + (off_t) d.len) == 0); /* the last one of its file */
    CHECK(journal_read(&journal, 2, &got, &err) == 1);
    CHECK_INT(got.sandbox.pid, 4711);
    CHECK(ftruncate(journal.fd, 2 * SLOT + (off_t) d.len - 1) == 0);
    CHECK(journal_read(&journal, 2, &got, &err) == 0);
    journal_close(&journal);
}

/* The version before did not know of disks of a template: a machine of its own has none, whatever lies behind the record. */
static void a_machine_of_the_version_before_has_no_template_disks(void)
{
    struct {
        uint32_t magic, len;
        uint64_t sum;
        uint8_t boot[16];
        struct journal_record record;
    } d;
    struct journal_record r = example(), got;

    begin();
    r.io_device = 8;
    r.template_disks = 1;
    CHECK(journal_write(&journal, 3, &r, &err) == 0);
    CHECK(journal_read(&journal, 3, &got, &err) == 1);
    CHECK_INT(got.template_disks, 1);
    CHECK(pread(journal.fd, &d, sizeof d, 3 * SLOT) == (ssize_t) sizeof d);
    d.len = (uint32_t) ((char *) &d.record.template_disks - (char *) &d);
    CHECK_INT(d.len % 8, 0); /* the size that the struct had: without padding at its end */
    d.sum = 0xcbf29ce484222325u;
    for (size_t i = 16; i < d.len; i++)
        d.sum = (d.sum ^ ((unsigned char *) &d)[i]) * 0x100000001b3u;
    CHECK(pwrite(journal.fd, &d, d.len, 3 * SLOT) == (ssize_t) d.len);
    CHECK(journal_read(&journal, 3, &got, &err) == 1);
    CHECK_INT(got.io_device, 8);
    CHECK_INT(got.template_disks, 0);
    journal_close(&journal);
}

static void a_journal_survives_being_closed(void)
{
    struct journal_record r = example(), got;

    begin();
    CHECK(journal_write(&journal, 7, &r, &err) == 0);
    journal_close(&journal);
    CHECK(journal_open(&journal, state, &err) == 0);
    CHECK(journal_read(&journal, 7, &got, &err) == 1);
    CHECK_INT(got.sandbox.pid, 4711);
    journal_close(&journal);
}

static void a_journal_that_is_a_link_is_refused(void)
{
    begin();
    journal_close(&journal);
    (void) unlinkat(state, "journal", 0);
    CHECK(symlinkat("/dev/null", state, "journal") == 0);
    CHECK(journal_open(&journal, state, &err) == -1);
    CHECK(strstr(err.msg, "open the journal") != NULL);
    (void) unlinkat(state, "journal", 0);
    (void) rmdir(state_path);
}

CHECK_MAIN(T(what_was_written_is_read), T(a_slot_never_written_is_empty_also_past_the_end),
           T(a_cleared_slot_is_empty_and_its_neighbours_are_not),
           T(every_torn_byte_makes_the_record_count_as_none), T(a_record_cut_short_counts_as_none),
           T(a_record_of_another_boot_counts_as_none), T(a_record_of_the_version_before_is_read),
           T(a_machine_of_the_version_before_has_no_template_disks),
           T(a_journal_survives_being_closed), T(a_journal_that_is_a_link_is_refused))
