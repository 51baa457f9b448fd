#include "base/io.h"
#include "base/own.h"
#include "direct/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

/* Sandbox to host, the dangerous direction: see copy.h for what must hold. The walk keeps one
 * descriptor per level and resolves one checked name at a time, so that no entry, however it is
 * named and whatever changed since, can move us out of the destination. */

/* One directory as the agent listed it: names and link targets in one growing buffer. */
struct entry {
    size_t name, target; /* offsets in texts */
    enum agent_entry_type type;
    uint32_t mode;
};

struct listing {
    struct entry *entries;
    size_t count, room;
    char *texts;
    size_t used, size;
};

static void listing_done(struct listing *l)
{
    free(l->entries);
    free(l->texts);
}

static int keep_text(struct listing *l, const char *text, size_t *ret_at, struct err *err)
{
    size_t len = strlen(text) + 1;

    if (l->used + len > COPY_LISTING_MAX)
        return err_set(err, ERR_TOO_BIG, "a directory with more than %u MiB of names",
                       COPY_LISTING_MAX >> 20);
    if (l->used + len > l->size) {
        size_t size = 2 * (l->used + len) + 4096;
        char *longer = realloc(l->texts, size);

        if (!longer)
            return err_set(err, ERR_NO_MEMORY, "no memory for a listing");
        l->texts = longer;
        l->size = size;
    }
    memcpy(l->texts + l->used, text, len);
    *ret_at = l->used;
    l->used += len;
    return 0;
}

/* Entries come with absolute paths; only the last component is ever used. */
static int keep_entry(void *context, const struct agent_reply *item, struct err *err)
{
    struct listing *l = context;
    const char *path = item->path ? item->path : "", *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    struct entry entry = { .type = (enum agent_entry_type) item->type, .mode = item->mode };

    if (!copy_name_ok(name))
        return err_set(err, ERR_PROTOCOL, "the sandbox listed an entry without a proper name");
    if (keep_text(l, name, &entry.name, err) < 0 ||
        keep_text(l, item->target ? item->target : "", &entry.target, err) < 0)
        return -1;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        struct entry *longer = reallocarray(l->entries, room, sizeof *longer);

        if (!longer)
            return err_set(err, ERR_NO_MEMORY, "no memory for a listing");
        l->entries = longer;
        l->room = room;
    }
    l->entries[l->count++] = entry;
    return 0;
}

/* A name of our own in the destination; nobody's file has it. */
static int scratch_name(char out[32], struct err *err)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, 0) != (ssize_t) sizeof number)
        return err_sys(err, errno, "get random bytes");
    (void) snprintf(out, 32, ".cove-%016llx", (unsigned long long) number);
    return 0;
}

static int receive(struct copy *copy, struct stream *stream, int fd, struct err *err)
{
    const void *data;
    uint32_t len;
    int r;

    while ((r = files_read_next(stream, &data, &len, err)) == 1) {
        if (copy->most_bytes && copy->bytes + len > copy->most_bytes)
            return err_set(err, ERR_TOO_BIG, "more than --max came out of the sandbox");
        if (io_write_all(fd, data, len) < 0) {
            copy->reader_gone = errno == EPIPE;
            return err_sys(err, errno, "write it here");
        }
        copy_progress(copy, len, 0);
    }
    return r;
}

static int file_out(struct copy *copy, const char *from, int dir_fd, const char *name,
                    struct err *err)
{
    auto_close int fd = -1;
    struct file_info info;
    struct stream stream;
    char scratch[32];
    int r;

    if (scratch_name(scratch, err) < 0 ||
        files_read_open(&copy->at, from, 0, 0, &stream, &info, err) < 0)
        return -1;
    fd = openat(dir_fd, scratch, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        (void) err_sys(err, errno, "make '%s' here", name);
        stream_close(&stream);
        return -1;
    }
    r = receive(copy, &stream, fd, err);
    stream_close(&stream);
    if (r == 0 && (fchmod(fd, info.mode & 0777) < 0 || renameat(dir_fd, scratch, dir_fd, name) < 0))
        r = err_sys(err, errno, "make '%s' here", name);
    if (r < 0) {
        (void) unlinkat(dir_fd, scratch, 0);
        return -1;
    }
    copy_progress(copy, 0, 1);
    return 0;
}

static int link_out(struct copy *copy, const char *from, const char *target, int dir_fd,
                    const char *name, struct err *err)
{
    char scratch[32];

    if (!target[0])
        return err_set(err, ERR_PROTOCOL, "%s: a link without a target", from);
    if (scratch_name(scratch, err) < 0)
        return -1;
    if (symlinkat(target, dir_fd, scratch) < 0)
        return err_sys(err, errno, "%s", from);
    if (renameat(dir_fd, scratch, dir_fd, name) < 0) {
        (void) err_sys(err, errno, "%s", from);
        (void) unlinkat(dir_fd, scratch, 0);
        return -1;
    }
    copy_progress(copy, 0, 1);
    return 0;
}

static int entry_out(struct copy *copy, const char *from, enum agent_entry_type type, uint32_t mode,
                     const char *target, int dir_fd, const char *name, unsigned depth,
                     struct err *err);

static int entries_out(struct copy *copy, const char *from, int dir_fd, unsigned depth,
                       struct err *err)
{
    struct listing listing = { 0 };
    bool truncated = false;
    int r;

    r = files_list(&copy->at, from, 1, UINT32_MAX, keep_entry, &listing, &truncated, err);
    if (r == 0 && truncated)
        r = err_set(err, ERR_TOO_BIG, "%s: has more entries than can be listed", from);
    for (size_t i = 0; r == 0 && i < listing.count; i++) {
        const struct entry *e = &listing.entries[i];
        const char *name = listing.texts + e->name;
        char path[AGENT_PATH_MAX];

        r = copy_join(path, from, name, err);
        if (r == 0)
            r = entry_out(copy, path, e->type, e->mode, listing.texts + e->target, dir_fd, name,
                          depth + 1, err);
    }
    listing_done(&listing);
    return r;
}

static int dir_out(struct copy *copy, const char *from, uint32_t mode, int dir_fd, const char *name,
                   unsigned depth, struct err *err)
{
    auto_close int fd = -1;
    bool made;

    if (depth > COPY_DEPTH_MAX)
        return err_set(err, ERR_TOO_BIG, "deeper than %d levels: %s", COPY_DEPTH_MAX, from);
    made = mkdirat(dir_fd, name, 0700) == 0;
    if (!made && errno != EEXIST)
        return err_sys(err, errno, "%s", from);
    /* NOFOLLOW: a link that is there already, from an earlier copy, leads nowhere. */
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, errno, "%s: '%s' exists and is not a directory", from, name);
    if (entries_out(copy, from, fd, depth, err) < 0)
        return -1;
    if (made && fchmod(fd, mode & 0777) < 0)
        return err_sys(err, errno, "%s", from);
    return 0;
}

static int entry_out(struct copy *copy, const char *from, enum agent_entry_type type, uint32_t mode,
                     const char *target, int dir_fd, const char *name, unsigned depth,
                     struct err *err)
{
    switch (type) {
    case ENTRY_FILE:
        return file_out(copy, from, dir_fd, name, err);
    case ENTRY_DIR:
        return dir_out(copy, from, mode, dir_fd, name, depth, err);
    case ENTRY_LINK:
        return link_out(copy, from, target, dir_fd, name, err);
    case ENTRY_FIFO:
    case ENTRY_SOCKET:
    case ENTRY_CHAR:
    case ENTRY_BLOCK:
    case ENTRY_NONE:
        break;
    }
    copy_skip(copy, from, agent_entry_type_name(type));
    return 0;
}

int copy_out(struct copy *copy, const char *from, int dir_fd, const char *name, struct err *err)
{
    auto_free struct file_info *info = malloc(sizeof *info);

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory for a copy");
    if (!copy_name_ok(name))
        return err_set(err, ERR_INVALID, "'%.60s' is not a name for a file", name);
    if (files_stat(&copy->at, from, AGENT_NOFOLLOW, info, err) < 0)
        return -1;
    return entry_out(copy, from, info->type, info->mode, info->target, dir_fd, name, 0, err);
}

int copy_out_into(struct copy *copy, const char *from, int dir_fd, struct err *err)
{
    return entries_out(copy, from, dir_fd, 0, err);
}

int copy_out_stdout(struct copy *copy, const char *from, struct err *err)
{
    struct stream stream;
    int r;

    if (files_read_open(&copy->at, from, 0, 0, &stream, NULL, err) < 0)
        return -1;
    r = receive(copy, &stream, STDOUT_FILENO, err);
    stream_close(&stream);
    return r;
}
