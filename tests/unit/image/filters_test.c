/* Saved filters: files as criu writes them, made by hand, in a directory of their own. */
#include "check.h"

#include "base/own.h"
#include "image/filters.h"
#include "image/mm.h"
#include "jail/seccomp.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIVE 1
#define DEAD  2
#define NONE  0xffffffffu

static char dir[] = "/tmp/cove-filters.XXXXXX";
static int dir_fd = -1;
static struct seccomp_filter notify, quiet;
static unsigned char name[SHA256_LEN];
static struct sock_filter harmless[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
static struct sock_filter asks[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF) };
static struct err err;

struct text {
    uint8_t data[200000];
    size_t len;
};

static void put_varint(struct text *t, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        t->data[t->len++] = (uint8_t) (value | 0x80);
    t->data[t->len++] = (uint8_t) value;
}

static void put_number(struct text *t, unsigned field, uint64_t value)
{
    put_varint(t, field << 3);
    put_varint(t, value);
}

static void put_bytes(struct text *t, unsigned field, const void *data, size_t len)
{
    put_varint(t, field << 3 | 2);
    put_varint(t, len);
    memcpy(t->data + t->len, data, len);
    t->len += len;
}

/* With magic and lengths in front of each record. */
static void write_file(const char *file, const struct text *records, size_t count)
{
    auto_close int fd = openat(dir_fd, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(write(fd, "MAGICMAG", 8) == 8);
    for (size_t i = 0; i < count; i++) {
        uint32_t len = (uint32_t) records[i].len;

        CHECK(write(fd, &len, sizeof len) == (ssize_t) sizeof len);
        CHECK(write(fd, records[i].data, len) == (ssize_t) len);
    }
}

/* ---- seccomp.img: chains are written newest first, and `newer` is the one before ---- */

static struct text all;

static void begin_filters(void)
{
    all.len = 0;
}

static void add_filter(const struct sock_filter *code, size_t len, uint32_t newer, uint32_t flags)
{
    static struct text one;

    one.len = 0;
    put_bytes(&one, 1, code, len * sizeof *code);
    if (newer != NONE)
        put_number(&one, 2, newer);
    put_number(&one, 3, flags);
    put_bytes(&all, 1, one.data, one.len);
}

static void end_filters(void)
{
    write_file("seccomp.img", &all, 1);
}

static void write_core(unsigned tid, uint32_t state, uint32_t mode, uint32_t filter)
{
    static struct text core, part;
    char file[32];

    core.len = part.len = 0;
    put_number(&core, 1, 1);
    put_number(&part, 1, state);
    put_bytes(&core, 3, part.data, part.len);
    part.len = 0;
    put_number(&part, 1, 12345678);
    if (mode) {
        put_number(&part, 11, mode);
        put_number(&part, 12, filter);
    }
    put_bytes(&core, 5, part.data, part.len);
    (void) snprintf(file, sizeof file, "core-%u.img", tid);
    write_file(file, &core, 1);
}

/* Process 1, and another with up to two more threads. */
static void write_tree(unsigned pid, unsigned second, unsigned third)
{
    static struct text records[2];
    const unsigned threads[] = { pid, second, third };

    for (size_t i = 0; i < 2; i++) {
        records[i].len = 0;
        put_number(&records[i], 1, i ? pid : 1);
        put_number(&records[i], 2, i);
        put_number(&records[i], 3, 1);
        put_number(&records[i], 4, 1);
    }
    put_number(&records[0], 5, 1);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        if (threads[i])
            put_number(&records[1], 5, threads[i]);
    write_file("pstree.img", records, pid ? 2 : 1);
}

/* The agent and one process, each with a chain of its own copy of the filter. */
static void write_plain(const struct seccomp_filter *filter)
{
    begin_filters();
    add_filter(filter->code, filter->len, NONE, 0);
    add_filter(filter->code, filter->len, NONE, 0);
    end_filters();
    write_core(1, ALIVE, SECCOMP_MODE_FILTER, 0);
    write_core(7, ALIVE, SECCOMP_MODE_FILTER, 1);
    write_tree(7, 0, 0);
}

#define CHECK_REFUSED(call, says)                                                                  \
    do {                                                                                           \
        CHECK((call) == -1);                                                                       \
        CHECK(strstr(err.msg, says));                                                              \
    } while (0)

static unsigned char found[SHA256_LEN];

static void both_forms_of_a_filter_have_one_name(void)
{
    unsigned char other[SHA256_LEN];

    seccomp_compile(&notify, true);
    seccomp_compile(&quiet, false);
    seccomp_name(notify.code, notify.len, name);
    seccomp_name(quiet.code, quiet.len, other);
    CHECK(memcmp(name, other, sizeof name) == 0);
    CHECK(!seccomp_is_quiet(notify.code, notify.len));
    CHECK(seccomp_is_quiet(quiet.code, quiet.len));
    CHECK(!seccomp_confines(notify.code, notify.len));
    CHECK(seccomp_confines(quiet.code, quiet.len));
    CHECK(!seccomp_confines(harmless, 1));
    CHECK(!seccomp_confines(NULL, 0));
    CHECK(dir_fd >= 0 ||
          (mkdtemp(dir) && (dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0));
}

static void a_filter_with_one_call_opened_does_not_confine(void)
{
    struct seccomp_filter open = quiet;

    for (unsigned i = 0; i < open.len; i++) /* the answer for namespaces by clone */
        if (open.code[i].code == (BPF_RET | BPF_K) &&
            open.code[i].k == (SECCOMP_RET_ERRNO | 1 /* EPERM */))
            open.code[i].k = SECCOMP_RET_ALLOW;
    CHECK(!seccomp_confines(open.code, open.len));
}

static void a_save_makes_every_copy_quiet(void)
{
    write_plain(&notify);
    CHECK_REFUSED(filters_check(dir_fd, found, &err), "process 1 is without");
    CHECK(filters_make_quiet(dir_fd, name, &err) == 0);
    CHECK(filters_check(dir_fd, found, &err) == 0);
    CHECK(memcmp(found, name, sizeof name) == 0);
    CHECK(filters_make_quiet(dir_fd, name, &err) == 0); /* saved again */
}

static void a_filter_that_was_not_recorded_is_that_of_process_1(void)
{
    static const unsigned char nothing[SHA256_LEN];

    write_plain(&notify);
    CHECK(filters_make_quiet(dir_fd, nothing, &err) == 0);
    CHECK(filters_check(dir_fd, found, &err) == 0);
}

static void a_save_that_would_replace_nothing_fails(void)
{
    unsigned char other[SHA256_LEN];

    write_plain(&notify);
    memcpy(other, name, sizeof other);
    other[0] ^= 1;
    CHECK_REFUSED(filters_make_quiet(dir_fd, other, &err), "process 1 is without");
    begin_filters();
    end_filters();
    CHECK_REFUSED(filters_make_quiet(dir_fd, name, &err), "process 1 is without");
}

static void a_process_without_the_filter_is_found(void)
{
    write_plain(&quiet);
    write_core(7, ALIVE, 0, 0);
    CHECK_REFUSED(filters_make_quiet(dir_fd, name, &err), "process 7 is without");
    CHECK_REFUSED(filters_check(dir_fd, found, &err), "process 7 is without");
    write_core(7, ALIVE, SECCOMP_MODE_STRICT, 0);
    CHECK_REFUSED(filters_check(dir_fd, found, &err), "process 7 is without");
    write_core(7, ALIVE, SECCOMP_MODE_FILTER, 2); /* there are two */
    CHECK_REFUSED(filters_check(dir_fd, found, &err), "process 7 is without");
    write_core(7, DEAD, 0, 0); /* runs nothing */
    CHECK(filters_check(dir_fd, found, &err) == 0);
    write_tree(7, 1813418944, 0); /* what criu wrote of one */
    CHECK(filters_check(dir_fd, found, &err) == 0);
}

static void one_copy_that_asks_a_listener_is_found(void)
{
    begin_filters();
    add_filter(quiet.code, quiet.len, NONE, 0);
    add_filter(notify.code, notify.len, NONE, 0);
    end_filters();
    write_core(1, ALIVE, SECCOMP_MODE_FILTER, 0);
    write_core(7, ALIVE, SECCOMP_MODE_FILTER, 1);
    write_tree(7, 0, 0);
    CHECK_REFUSED(filters_check(dir_fd, found, &err), "process 7 is without");
}

/* What a tenant adds is newer, stays as it is, and changes nothing. */
static void filters_of_programs_own_are_left_alone(void)
{
    begin_filters();
    add_filter(notify.code, notify.len, NONE, 0); /* 0: the agent's */
    add_filter(asks, 1, NONE, 0);                 /* 1: newest of 7 */
    add_filter(harmless, 1, 1, 0);                /* 2 */
    add_filter(notify.code, notify.len, 2, 0);    /* 3: oldest of 7 */
    end_filters();
    write_core(1, ALIVE, SECCOMP_MODE_FILTER, 0);
    write_core(7, ALIVE, SECCOMP_MODE_FILTER, 3);
    write_tree(7, 0, 0);
    CHECK(filters_make_quiet(dir_fd, name, &err) == 0);
    CHECK(filters_check(dir_fd, found, &err) == 0);
    write_core(7, ALIVE, SECCOMP_MODE_FILTER, 2); /* only those of its own */
    CHECK_REFUSED(filters_check(dir_fd, found, &err), "process 7 is without");
}

static void chains_that_are_rings_end(void)
{
    begin_filters();
    add_filter(quiet.code, quiet.len, NONE, 0);
    add_filter(harmless, 1, 2, 0);
    add_filter(harmless, 1, 1, 0);
    end_filters();
    write_core(1, ALIVE, SECCOMP_MODE_FILTER, 0);
    write_core(7, ALIVE, SECCOMP_MODE_FILTER, 1);
    write_tree(7, 0, 0);
    CHECK_REFUSED(filters_check(dir_fd, found, &err), "process 7 is without");
}

static void threads_get_the_first_ones_filter_only_if_it_is_given_to_them(void)
{
    for (uint32_t flags = 0; flags < 2; flags++) {
        begin_filters();
        add_filter(quiet.code, quiet.len, NONE, 0);
        add_filter(quiet.code, quiet.len, NONE, flags * SECCOMP_FILTER_FLAG_TSYNC);
        end_filters();
        write_core(1, ALIVE, SECCOMP_MODE_FILTER, 0);
        write_core(7, ALIVE, SECCOMP_MODE_FILTER, 1);
        write_core(8, ALIVE, 0, 0);
        write_core(9, ALIVE, SECCOMP_MODE_FILTER, 0);
        write_tree(7, 8, 9);
        if (flags)
            CHECK(filters_check(dir_fd, found, &err) == 0);
        else
            CHECK_REFUSED(filters_check(dir_fd, found, &err), "process 8 is without");
    }
}

static void files_that_are_cut_off_are_refused(void)
{
    static const char *const files[] = { "seccomp.img", "core-1.img", "core-7.img", "pstree.img" };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct stat st;

        write_plain(&quiet);
        CHECK(filters_check(dir_fd, found, &err) == 0);
        CHECK(fstatat(dir_fd, files[i], &st, 0) == 0);
        for (off_t len = st.st_size - 1; len >= 0; len = len > 11 ? 11 : len - 1) {
            auto_close int fd = openat(dir_fd, files[i], O_WRONLY | O_CLOEXEC);

            CHECK(ftruncate(fd, len) == 0);
            CHECK(filters_check(dir_fd, found, &err) == -1);
            CHECK(filters_make_quiet(dir_fd, name, &err) == -1);
        }
    }
}

/* Each process may have 256 KiB of its own, and criu writes them for each. */
static void more_filters_than_memory_is_spent_on_are_refused(void)
{
    write_plain(&notify);
    {
        auto_close int fd = openat(dir_fd, "seccomp.img", O_WRONLY | O_CLOEXEC);

        CHECK(ftruncate(fd, (128ll << 20) + 1) == 0);
    }
    CHECK_REFUSED(filters_make_quiet(dir_fd, name, &err), "more system call filters");
}

static void an_agent_that_was_open_is_saved_closed(void)
{
    static struct text mm;
    uint8_t text[64];
    ssize_t len;

    mm.len = 0;
    put_number(&mm, 1, 1u << 30);
    put_bytes(&mm, 14, "abc", 3);
    put_number(&mm, 15, 1);
    put_number(&mm, 16, 1);
    write_file("mm-1.img", &mm, 1);
    CHECK(mm_fix(dir_fd, &err) == 0);
    {
        auto_close int fd = openat(dir_fd, "mm-1.img", O_RDONLY | O_CLOEXEC);

        len = read(fd, text, sizeof text);
    }
    CHECK(len == (ssize_t) mm.len + 12);
    CHECK(mm_dumpable_at(text, (size_t) len) == 0);
    CHECK(memcmp(text + 12, mm.data, mm.len - 4) == 0 && text[len - 4] == 0 && text[len - 1] == 1);
}

static void nothing_is_left(void)
{
    static const char *const files[] = { "seccomp.img", "core-1.img", "core-7.img", "core-8.img",
                                         "core-9.img",  "pstree.img", "mm-1.img" };

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        (void) unlinkat(dir_fd, files[i], 0);
    (void) close(dir_fd);
    CHECK(rmdir(dir) == 0);
}

CHECK_MAIN(T(both_forms_of_a_filter_have_one_name),
           T(a_filter_with_one_call_opened_does_not_confine), T(a_save_makes_every_copy_quiet),
           T(a_filter_that_was_not_recorded_is_that_of_process_1),
           T(a_save_that_would_replace_nothing_fails), T(a_process_without_the_filter_is_found),
           T(one_copy_that_asks_a_listener_is_found), T(filters_of_programs_own_are_left_alone),
           T(chains_that_are_rings_end),
           T(threads_get_the_first_ones_filter_only_if_it_is_given_to_them),
           T(files_that_are_cut_off_are_refused),
           T(more_filters_than_memory_is_spent_on_are_refused),
           T(an_agent_that_was_open_is_saved_closed), T(nothing_is_left))
