/* Each file: two words of magic, a length, one record. pstree.img: the same with many records.
 *
 * What decides is the thread, not the list of filters: each thread names its own chain. Threads of one process that
 * have the same chain are an exception: criu writes the chain for the process's first thread, marked to be given to the
 * others (TSYNC), and nothing for those. */
#include "image/filters.h"

#include "base/io.h"
#include "base/own.h"
#include "image/proto.h"
#include "jail/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC_LEN 8
#define NAME      "seccomp.img"
#define TREE      "pstree.img"
#define AGENT     1u
#define DEAD      2 /* criu's TASK_DEAD */
#define MOST                                                                                       \
    (128ll                                                                                         \
     << 20) /* of seccomp.img: what programs stack for themselves, 256 KiB for each process, is held here twice */

enum { ENTRY_FILTER = 1 };
enum { FILTER_CODE = 1, FILTER_NEWER, FILTER_FLAGS };
enum { CORE_TASK = 3, CORE_THREAD = 5 };
enum { TASK_STATE = 1 };
enum { THREAD_MODE = 11, THREAD_FILTER };
enum { TREE_PID = 1, TREE_THREAD = 5 };

/* The record at *at, which moves behind it. */
static bool next_record(const uint8_t **at, const uint8_t *end, const uint8_t **ret_end)
{
    uint32_t size;

    if (end - *at < (ptrdiff_t) sizeof size)
        return false;
    memcpy(&size, *at, sizeof size);
    *at += sizeof size;
    if (size > (size_t) (end - *at))
        return false;
    *ret_end = *at + size;
    return true;
}

/* The only record of a file. */
static bool only_record(const uint8_t *text, size_t len, const uint8_t **at, const uint8_t **end)
{
    if (len < MAGIC_LEN)
        return false;
    *at = text + MAGIC_LEN;
    return next_record(at, text + len, end) && *end == text + len;
}

static bool parse_filter(const uint8_t *text, const struct proto_field *record,
                         struct sock_filter *room, struct saved_filter *ret)
{
    const uint8_t *at = record->data, *end = record->data + record->value;
    struct proto_field f;

    *ret = (struct saved_filter){ .newer = FILTERS_NONE };
    while (at < end) {
        if (!proto_next(&at, end, &f))
            return false;
        if (f.number == FILTER_NEWER && !f.data)
            ret->newer = (uint32_t) f.value;
        if (f.number == FILTER_FLAGS && !f.data)
            ret->flags = (uint32_t) f.value;
        if (f.number != FILTER_CODE)
            continue;
        if (!f.data || ret->code || f.value == 0 || f.value % sizeof *room ||
            f.value / sizeof *room > BPF_MAXINSNS)
            return false;
        ret->code = memcpy(room, f.data, f.value);
        ret->len = (uint32_t) (f.value / sizeof *room);
        ret->at = (size_t) (f.data - text);
    }
    return ret->code;
}

bool filters_parse(const uint8_t *text, size_t len, struct saved_filters *ret)
{
    struct proto_field f;
    const uint8_t *at, *end;
    size_t used = 0;

    *ret = (struct saved_filters){ .count = 0 };
    if (!only_record(text, len, &at, &end))
        return false;
    /* No filter is shorter than an instruction with its two heads. */
    ret->filter = malloc((len / (sizeof *ret->code + 4) + 1) * sizeof *ret->filter);
    ret->code = malloc(len);
    while (ret->filter && ret->code && at < end) {
        struct saved_filter *own = &ret->filter[ret->count];

        if (!proto_next(&at, end, &f) || f.number != ENTRY_FILTER || !f.data ||
            !parse_filter(text, &f, ret->code + used, own))
            break;
        used += own->len;
        ret->count++;
    }
    if (ret->filter && ret->code && at == end)
        return true;
    filters_free(ret);
    return false;
}

void filters_free(struct saved_filters *filters)
{
    free(filters->filter);
    free(filters->code);
    *filters = (struct saved_filters){ .count = 0 };
}

bool filters_parse_core(const uint8_t *text, size_t len, struct saved_thread *ret)
{
    struct proto_field f, in;
    const uint8_t *at, *end;

    *ret = (struct saved_thread){ .oldest = FILTERS_NONE };
    if (!only_record(text, len, &at, &end))
        return false;
    while (at < end) {
        const uint8_t *part;

        if (!proto_next(&at, end, &f))
            return false;
        if (!f.data || (f.number != CORE_TASK && f.number != CORE_THREAD))
            continue;
        for (part = f.data; proto_next(&part, f.data + f.value, &in);) {
            if (f.number == CORE_TASK && in.number == TASK_STATE && !in.data)
                ret->dead = in.value == DEAD;
            if (f.number == CORE_THREAD && in.number == THREAD_MODE && !in.data)
                ret->mode = (uint32_t) in.value;
            if (f.number == CORE_THREAD && in.number == THREAD_FILTER && !in.data)
                ret->oldest = (uint32_t) in.value;
        }
    }
    return true;
}

/* ---- files ---- */

struct file {
    uint8_t *text; /* owned */
    size_t len;
};

static int read_file(int memory_fd, const char *name, struct file *ret, struct err *err)
{
    auto_close int fd = openat(memory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    auto_free uint8_t *text = NULL;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "read %s", name);
    if (st.st_size > MOST)
        return err_set(
            err, ERR_UNSUPPORTED,
            "its processes have more system call filters of their own than can be saved");
    if (!(text = malloc((size_t) st.st_size + 1)) || io_read_all(fd, text, (size_t) st.st_size) < 0)
        return err_sys(err, errno, "read %s", name);
    *ret = (struct file){ take_ptr(&text), (size_t) st.st_size };
    return 0;
}

static int unknown_form(const char *name, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "criu wrote %s in a form that is unknown", name);
}

static int read_core(int memory_fd, uint32_t tid, struct saved_thread *ret, struct err *err)
{
    struct file file = { NULL, 0 };
    char name[32];
    int rc;

    (void) snprintf(name, sizeof name, "core-%u.img", tid);
    if (read_file(memory_fd, name, &file, err) < 0)
        return -1;
    rc = filters_parse_core(file.text, file.len, ret) ? 0 : unknown_form(name, err);
    free(file.text);
    return rc;
}

/* ---- what each thread has ---- */

struct look {
    int memory_fd;
    struct saved_filters filters;
    const struct saved_filter *own; /* the sandbox's filter, as process 1 has it */
    bool quiet;                     /* each must be quiet already */
};

static const struct saved_filter *filter_at(const struct look *l, uint32_t index)
{
    return index < l->filters.count ? &l->filters.filter[index] : NULL;
}

/* The same program, in either form. */
static bool same_program(const struct saved_filter *a, const struct saved_filter *b)
{
    if (a->len != b->len)
        return false;
    for (uint32_t i = 0; i < a->len; i++) {
        struct sock_filter one = a->code[i], other = b->code[i];

        seccomp_quiet(&one, 1);
        seccomp_quiet(&other, 1);
        if (memcmp(&one, &other, sizeof one) != 0)
            return false;
    }
    return true;
}

/* The sandbox's filter in a chain; NULL: none. A chain that is a ring ends, too. */
static const struct saved_filter *find_own(const struct look *l, uint32_t oldest)
{
    const struct saved_filter *f = filter_at(l, oldest);

    for (size_t steps = 0; f && steps < l->filters.count; steps++, f = filter_at(l, f->newer))
        if (same_program(f, l->own))
            return f;
    return NULL;
}

/* given: the filter of the first thread, if that is given to the others; NULL: not. */
static int check_thread(const struct look *l, uint32_t tid, const struct saved_thread *thread,
                        const struct saved_filter *given, struct err *err)
{
    const struct saved_filter *own =
        thread->mode == SECCOMP_MODE_FILTER ? find_own(l, thread->oldest) : NULL;

    if (thread->mode == SECCOMP_MODE_DISABLED)
        own = given;
    if (!own || (l->quiet && !seccomp_is_quiet(own->code, own->len)))
        return err_set(err, ERR_DENIED, "process %u is without the sandbox's system call filter",
                       tid);
    return 0;
}

static int check_process(const struct look *l, const uint8_t *at, const uint8_t *end,
                         struct err *err)
{
    const struct saved_filter *given = NULL;
    struct saved_thread first, other;
    const uint8_t *again = at;
    struct proto_field f;
    uint32_t pid = 0;

    while (proto_next(&at, end, &f))
        if (f.number == TREE_PID && !f.data)
            pid = (uint32_t) f.value;
    if (at != end || !pid)
        return unknown_form(TREE, err);
    if (read_core(l->memory_fd, pid, &first, err) < 0)
        return -1;
    if (first.dead) /* of its threads criu writes nothing that means anything */
        return 0;
    if (check_thread(l, pid, &first, NULL, err) < 0)
        return -1;
    given = find_own(l, first.oldest);
    if (!(given->flags & SECCOMP_FILTER_FLAG_TSYNC))
        given = NULL;
    while (proto_next(&again, end, &f)) {
        if (f.number != TREE_THREAD || f.data || f.value == pid)
            continue;
        if (read_core(l->memory_fd, (uint32_t) f.value, &other, err) < 0 ||
            check_thread(l, (uint32_t) f.value, &other, given, err) < 0)
            return -1;
    }
    return 0;
}

static int check_all(const struct look *l, struct err *err)
{
    struct file tree = { NULL, 0 };
    const uint8_t *at, *end, *next = NULL;
    int rc = 0;

    if (read_file(l->memory_fd, TREE, &tree, err) < 0)
        return -1;
    end = tree.text + tree.len;
    at = tree.len < MAGIC_LEN ? end : tree.text + MAGIC_LEN;
    if (at == end)
        rc = unknown_form(TREE, err);
    for (; rc == 0 && at < end; at = next)
        rc = next_record(&at, end, &next) ? check_process(l, at, next, err)
                                          : unknown_form(TREE, err);
    free(tree.text);
    return rc;
}

/* ---- the sandbox's own filter ---- */

/* Whether a filter of process 1 is the one that is looked for. Nothing inside can add one to process 1, and an older one
 * is the host's, if the keeper itself runs under a filter. */
static bool is_own(const struct saved_filter *f, const unsigned char *name, bool quiet)
{
    static const unsigned char not_recorded[SHA256_LEN];
    struct sock_filter code[BPF_MAXINSNS];
    unsigned char has[SHA256_LEN];

    if (name && memcmp(name, not_recorded, sizeof not_recorded) != 0) {
        seccomp_name(f->code, f->len, has);
        return memcmp(has, name, sizeof has) == 0;
    }
    memcpy(code, f->code, f->len * sizeof *code);
    if (!quiet)
        seccomp_quiet(code, f->len);
    return seccomp_confines(code, f->len);
}

static int begin(struct look *l, struct file *file, const unsigned char *name, struct err *err)
{
    struct saved_thread agent;
    const struct saved_filter *f;

    if (read_file(l->memory_fd, NAME, file, err) < 0 ||
        read_core(l->memory_fd, AGENT, &agent, err) < 0)
        return -1;
    if (!filters_parse(file->text, file->len, &l->filters))
        return unknown_form(NAME, err);
    f = agent.mode == SECCOMP_MODE_FILTER ? filter_at(l, agent.oldest) : NULL;
    for (size_t steps = 0; f && steps < l->filters.count; steps++, f = filter_at(l, f->newer))
        if (is_own(f, name, l->quiet))
            l->own = f;
    return l->own
               ? 0
               : err_set(err, ERR_DENIED, "process 1 is without the sandbox's system call filter");
}

static int write_quiet(struct look *l, struct err *err)
{
    auto_close int fd = openat(l->memory_fd, NAME, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, errno, "open " NAME);
    for (size_t i = 0; i < l->filters.count; i++) {
        struct saved_filter *f = &l->filters.filter[i];
        size_t size = f->len * sizeof *f->code;

        if (seccomp_is_quiet(f->code, f->len) || !same_program(f, l->own))
            continue;
        seccomp_quiet(f->code, f->len);
        if (pwrite(fd, f->code, size, (off_t) f->at) != (ssize_t) size)
            return err_sys(err, errno, "write " NAME);
    }
    return 0;
}

int filters_make_quiet(int memory_fd, const unsigned char name[SHA256_LEN], struct err *err)
{
    struct look l = { .memory_fd = memory_fd };
    struct file file = { NULL, 0 };
    int rc = -1;

    if (begin(&l, &file, name, err) == 0 && check_all(&l, err) == 0)
        rc = write_quiet(&l, err);
    filters_free(&l.filters);
    free(file.text);
    return rc;
}

int filters_check(int memory_fd, unsigned char ret_name[SHA256_LEN], struct err *err)
{
    struct look l = { .memory_fd = memory_fd, .quiet = true };
    struct file file = { NULL, 0 };
    int rc = -1;

    if (begin(&l, &file, NULL, err) == 0 && check_all(&l, err) == 0) {
        seccomp_name(l.own->code, l.own->len, ret_name);
        rc = 0;
    }
    filters_free(&l.filters);
    free(file.text);
    return rc;
}
