#include "image/pstree.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC_LEN 8
#define NAME      "pstree.img"
#define INIT      1u

/* Fields 1 to 4 of an entry, in this order; then the threads, which are kept as they are. */
enum { PID, PPID, PGID, SID, NUMBERS };

struct entry {
    uint32_t number[NUMBERS];
    uint32_t born; /* in which session, as criu reckons from its children; 0: not known */
    const uint8_t *rest;
    size_t rest_len;
};

struct tree {
    size_t count;
    struct entry *entry; /* owned */
    bool changed;
};

static bool get_number(const uint8_t **at, const uint8_t *end, uint32_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; *at < end && shift < 35; shift += 7) {
        uint8_t byte = *(*at)++;

        *ret |= (uint32_t) (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool read_entry(const uint8_t *at, size_t len, struct entry *ret)
{
    const uint8_t *end = at + len;

    for (unsigned i = 0; i < NUMBERS; i++)
        if (at == end || *at++ != (i + 1) << 3 || !get_number(&at, end, &ret->number[i]))
            return false;
    ret->born = 0;
    ret->rest = at;
    ret->rest_len = (size_t) (end - at);
    return true;
}

static bool read_tree(const uint8_t *at, size_t len, struct tree *ret)
{
    const uint8_t *end = at + len;

    ret->entry = malloc((len / 8 + 1) * sizeof *ret->entry); /* none is shorter */
    if (!ret->entry)
        return false;
    while (at < end) {
        uint32_t size;

        if (end - at < (ptrdiff_t) sizeof size)
            return false;
        memcpy(&size, at, sizeof size);
        at += sizeof size;
        if (size < 8 || size > (size_t) (end - at) ||
            !read_entry(at, size, &ret->entry[ret->count]))
            return false;
        ret->count++;
        at += size;
    }
    return true;
}

static struct entry *find(const struct tree *tree, uint32_t pid)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->entry[i].number[PID] == pid)
            return &tree->entry[i];
    return NULL;
}

/* criu's own reckoning: a session is inherited, so the leader is found upwards, and a process in between was born in that
 * session and left it later. No process is born twice. */
static bool can_inherit(const struct tree *tree, const struct entry *e)
{
    uint32_t sid = e->number[SID];
    struct entry *at = find(tree, e->number[PPID]), *leader = at;
    size_t steps = 0;

    if (sid == e->number[PID] || !at || at->number[SID] == sid)
        return true;
    for (; leader && leader->number[PID] != sid; leader = find(tree, leader->number[PPID]))
        if ((leader->born && leader->born != sid) || steps++ == tree->count)
            return false;
    for (; leader && at != leader; at = find(tree, at->number[PPID]))
        at->born = sid;
    return leader;
}

static int mend_once(struct tree *tree, bool *ret_changed, struct err *err)
{
    *ret_changed = false;
    for (size_t i = 0; i < tree->count; i++)
        tree->entry[i].born = 0;
    for (size_t i = 0; i < tree->count; i++) {
        struct entry *e = &tree->entry[i];
        const struct entry *parent = find(tree, e->number[PPID]);

        if (!parent || parent->number[PID] == INIT || can_inherit(tree, e))
            continue;
        /* Only a shepherd's orphan: another parent may wait for its child. */
        if (parent->number[PPID] != INIT)
            return err_set(err, ERR_UNSUPPORTED,
                           "process %u is in a session whose leader is not one of its ancestors",
                           e->number[PID]);
        e->number[PPID] = INIT;
        *ret_changed = tree->changed = true;
    }
    return 0;
}

/* A process that gets another parent changes what its descendants can inherit: again, until none does. Init's children stay, so it
 * ends. */
static int fix(struct tree *tree, struct err *err)
{
    bool changed = true;

    while (changed)
        if (mend_once(tree, &changed, err) < 0)
            return -1;
    return 0;
}

static size_t put_entry(uint8_t *out, const struct entry *e)
{
    uint8_t *at = out + sizeof(uint32_t);
    uint32_t size;

    for (unsigned i = 0; i < NUMBERS; i++) {
        uint32_t value = e->number[i];

        *at++ = (uint8_t) ((i + 1) << 3);
        for (; value > 0x7f; value >>= 7)
            *at++ = (uint8_t) (value | 0x80);
        *at++ = (uint8_t) value;
    }
    memcpy(at, e->rest, e->rest_len);
    at += e->rest_len;
    size = (uint32_t) ((size_t) (at - out) - sizeof size);
    memcpy(out, &size, sizeof size);
    return (size_t) (at - out);
}

int pstree_fix_bytes(const uint8_t *text, size_t len, uint8_t *out, size_t *ret_len,
                     struct err *err)
{
    struct tree tree = { .count = 0 };
    int rc = -1;

    if (!read_tree(text, len, &tree))
        err_set(err, ERR_UNSUPPORTED, "criu wrote a tree of processes in a form that is unknown");
    else
        rc = fix(&tree, err);
    *ret_len = 0;
    /* Numbers are never longer than they were, and a parent's can only become shorter. */
    for (size_t i = 0; rc == 0 && tree.changed && i < tree.count; i++)
        *ret_len += put_entry(out + *ret_len, &tree.entry[i]);
    free(tree.entry);
    return rc < 0 ? -1 : tree.changed;
}

int pstree_fix(int memory_fd, struct err *err)
{
    auto_close int fd = openat(memory_fd, NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    auto_free uint8_t *text = NULL, *out = NULL;
    struct stat st;
    size_t len;
    int rc;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "open " NAME);
    if (st.st_size < MAGIC_LEN)
        return err_set(err, ERR_UNSUPPORTED, "criu wrote no tree of processes");
    text = malloc((size_t) st.st_size);
    out = malloc((size_t) st.st_size);
    if (!text || !out)
        return err_set(err, ERR_NO_MEMORY, "no memory for the tree of processes");
    if (io_read_all(fd, text, (size_t) st.st_size) < 0)
        return err_sys(err, errno, "read " NAME);
    rc = pstree_fix_bytes(text + MAGIC_LEN, (size_t) st.st_size - MAGIC_LEN, out, &len, err);
    if (rc <= 0)
        return rc;
    if (lseek(fd, MAGIC_LEN, SEEK_SET) < 0 || ftruncate(fd, MAGIC_LEN) < 0 ||
        io_write_all(fd, out, len) < 0)
        return err_sys(err, errno, "write " NAME);
    return 0;
}
