/* Sandbox to host, the dangerous direction: see copy.h for what must hold. A tree arrives as an archive. Each entry's directory is
 * opened part by part below the destination, never through a link, so that no entry, however it is named and whatever changed
 * since, leads out of the destination. */
#include "base/io.h"
#include "base/own.h"
#include "cli/api/copy.h"
#include "cli/api/show.h"
#include "http/tar.h"
#include "remote/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define PIECE 65536

/* A name of our own in the destination. */
static int scratch_name(char out[32], struct err *err)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, 0) != (ssize_t) sizeof number)
        return err_sys(err, errno, "get random bytes");
    (void) snprintf(out, 32, ".cove-%016llx", (unsigned long long) number);
    return 0;
}

static int scratch_open(char out[32], int dir_fd, const char *name, int *ret_fd, struct err *err)
{
    if (scratch_name(out, err) < 0)
        return -1;
    *ret_fd = openat(dir_fd, out, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return *ret_fd < 0 ? err_sys(err, errno, "make '%s' here", name) : 0;
}

static int scratch_keep(const char *scratch, int fd, int dir_fd, const char *name, unsigned mode,
                        struct err *err)
{
    if (fchmod(fd, mode & 0777) == 0 && renameat(dir_fd, scratch, dir_fd, name) == 0)
        return 0;
    return err_sys(err, errno, "make '%s' here", name);
}

static int take(struct copy *copy, int fd, const void *data, size_t len, struct err *err)
{
    if (copy->most_bytes && copy->bytes + len > copy->most_bytes)
        return err_set(err, ERR_TOO_BIG, "more than --max came out of the sandbox");
    if (io_write_all(fd, data, len) < 0) {
        copy->reader_gone = errno == EPIPE;
        return err_sys(err, errno, "write it here");
    }
    copy_progress(copy, len, 0);
    return 0;
}

static int open_call(const struct copy *copy, const char *what, const char *from,
                     const char *accept, struct call *call, struct err *err)
{
    auto_free char *path = copy_path(copy, what, from, "");
    const struct call_request request = { .method = "GET", .path = path, .accept = accept };

    *call = CALL_NONE;
    if (!path)
        return err_set(err, ERR_NO_MEMORY, "no memory for a request");
    return call_open(call, copy->remote, &request, err) < 0 || call_answer(call, err) < 0
               ? -1
               : ask_check(call, err);
}

/* ---- one file ---- */

static int receive(struct copy *copy, const char *from, int fd, struct err *err)
{
    auto_free char *data = malloc(PIECE);
    struct call call = CALL_NONE;
    ssize_t n = -1;
    int r = -1;

    if (!data)
        return err_set(err, ERR_NO_MEMORY, "no memory for a copy");
    if (open_call(copy, "", from, "*/*", &call, err) == 0) {
        while ((n = call_read(&call, data, PIECE, err)) > 0 &&
               take(copy, fd, data, (size_t) n, err) == 0)
            ;
        r = n == 0 ? 0 : -1;
    }
    call_close(&call);
    return r;
}

static int file_out(struct copy *copy, const char *from, unsigned mode, int dir_fd,
                    const char *name, struct err *err)
{
    auto_close int fd = -1;
    char scratch[32];

    if (scratch_open(scratch, dir_fd, name, &fd, err) < 0)
        return -1;
    if (receive(copy, from, fd, err) < 0 ||
        scratch_keep(scratch, fd, dir_fd, name, mode, err) < 0) {
        (void) unlinkat(dir_fd, scratch, 0);
        return -1;
    }
    copy_progress(copy, 0, 1);
    return 0;
}

static int link_out(struct copy *copy, const char *target, int dir_fd, const char *name,
                    struct err *err)
{
    char scratch[32];

    if (!target[0])
        return err_set(err, ERR_PROTOCOL, "%s: a link without a target", name);
    if (scratch_name(scratch, err) < 0)
        return -1;
    if (symlinkat(target, dir_fd, scratch) < 0)
        return err_sys(err, errno, "%s", name);
    if (renameat(dir_fd, scratch, dir_fd, name) < 0) {
        (void) err_sys(err, errno, "%s", name);
        (void) unlinkat(dir_fd, scratch, 0);
        return -1;
    }
    copy_progress(copy, 0, 1);
    return 0;
}

/* ---- a tree ---- */

/* A directory that this copy made, and its mode for the end: until then it can be written. */
struct made {
    struct made *next;
    unsigned mode;
    char path[];
};

struct tree {
    struct copy *copy;
    int root;          /* borrowed */
    struct made *made; /* the last one first */
    struct tar tar;
    /* of the file that is being written */
    int parent, fd;
    char scratch[32];
    char data[PIECE];
};

/* The directory of a path below the root: each part is a directory, none is a link. *ret_name: the last part. */
static int open_parent(int root, const char *path, int *ret_fd, const char **ret_name,
                       struct err *err)
{
    auto_close int fd = fcntl(root, F_DUPFD_CLOEXEC, 3);
    const char *slash;
    char part[256];

    for (; fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        int below;

        if (slash - path >= (ptrdiff_t) sizeof part)
            return err_set(err, ERR_PROTOCOL, "the archive has an invalid path");
        (void) snprintf(part, sizeof part, "%.*s", (int) (slash - path), path);
        below = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
            return err_sys(err, errno, "'%s' exists and is not a directory", part);
        (void) close(fd);
        fd = below;
    }
    if (fd < 0)
        return err_sys(err, errno, "open the destination");
    if (!copy_name_ok(path))
        return err_set(err, ERR_PROTOCOL, "the archive has an invalid path");
    *ret_name = path;
    *ret_fd = take_fd(&fd);
    return 0;
}

static int make_dir(int parent, const char *name, bool *ret_made, int *ret_fd, struct err *err)
{
    *ret_made = mkdirat(parent, name, 0700) == 0;
    if (!*ret_made && errno != EEXIST)
        return err_sys(err, errno, "make '%s' here", name);
    /* NOFOLLOW: a link that is there already, from an earlier copy, leads nowhere. */
    *ret_fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys(err, errno, "'%s' exists and is not a directory", name) : 0;
}

static int dir_entry(struct tree *t, const char *name, int parent, struct err *err)
{
    const struct tar_entry *e = &t->tar.entry;
    auto_close int fd = -1;
    struct made *made;
    bool new;

    if (make_dir(parent, name, &new, &fd, err) < 0)
        return -1;
    if (!new)
        return 0;
    made = malloc(sizeof *made + strlen(e->path) + 1);
    if (!made)
        return err_set(err, ERR_NO_MEMORY, "no memory for a copy");
    made->mode = e->mode;
    made->next = t->made;
    (void) strcpy(made->path, e->path);
    t->made = made;
    return 0;
}

static void entry_done(struct tree *t)
{
    own_close(&t->fd);
    own_close(&t->parent);
}

static int entry_begin(struct tree *t, struct err *err)
{
    const struct tar_entry *e = &t->tar.entry;
    const char *name;

    if (open_parent(t->root, e->path, &t->parent, &name, err) < 0)
        return -1;
    switch (e->type) {
    case TAR_DIR:
        return dir_entry(t, name, t->parent, err);
    case TAR_LINK:
        return link_out(t->copy, e->target, t->parent, name, err);
    case TAR_FILE:
        return scratch_open(t->scratch, t->parent, name, &t->fd, err);
    case TAR_SAME:
    case TAR_NODE:
        break;
    }
    return err_set(err, ERR_PROTOCOL, "%s: an entry that no server sends", name);
}

static int entry_end(struct tree *t, struct err *err)
{
    const struct tar_entry *e = &t->tar.entry;
    const char *slash = strrchr(e->path, '/');
    int r = 0;

    if (e->type == TAR_FILE) {
        r = scratch_keep(t->scratch, t->fd, t->parent, slash ? slash + 1 : e->path, e->mode, err);
        if (r == 0)
            own_close(&t->fd);
        copy_progress(t->copy, 0, 1);
    }
    if (r == 0)
        entry_done(t);
    return r;
}

static int take_piece(struct tree *t, const char *data, size_t len, struct err *err)
{
    for (size_t at = 0;;) {
        struct slice content;
        size_t used;
        int r = 0, event = tar_read(&t->tar, data + at, len - at, &used, &content, err);

        if (event < 0)
            return -1;
        at += used;
        if (event == TAR_MORE && at == len)
            return 0;
        if (event == TAR_ENTRY)
            r = entry_begin(t, err);
        else if (event == TAR_DATA)
            r = take(t->copy, t->fd, content.at, content.len, err);
        else if (event == TAR_ENTRY_END)
            r = entry_end(t, err);
        if (r < 0)
            return -1;
    }
}

static int take_archive(struct tree *t, const char *from, struct err *err)
{
    struct call call = CALL_NONE;
    ssize_t n = -1;
    int r = -1;

    if (open_call(t->copy, "/tar", from, "application/x-tar", &call, err) == 0) {
        while ((n = call_read(&call, t->data, PIECE, err)) > 0 &&
               take_piece(t, t->data, (size_t) n, err) == 0)
            ;
        if (n < 0 && err->kind == ERR_UNAVAILABLE)
            (void) err_wrap(err, "%s: the copy ended early, perhaps at a file that cannot be read",
                            from);
        r = n == 0 ? tar_read_end(&t->tar, err) : -1;
    }
    call_close(&call);
    return r;
}

/* Modes that were kept back: what is deeper first. */
static int set_modes(struct tree *t, struct err *err)
{
    int r = 0;

    while (t->made) {
        auto_free struct made *made = t->made;
        auto_close int parent = -1, fd = -1;
        const char *name;

        t->made = made->next;
        if (r < 0 || open_parent(t->root, made->path, &parent, &name, err) < 0)
            r = -1;
        else if ((fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 ||
                 fchmod(fd, made->mode & 0777) < 0)
            r = err_sys(err, errno, "%s", made->path);
    }
    return r;
}

/* What archives leave out. A tree of more entries than a list has is copied without notes. */
static void note_skipped(struct copy *copy, const char *from)
{
    auto_free char *path = copy_path(copy, "/list", from, "&depth=64&limit=10000");
    json_t *answer = NULL, *entry;
    struct err ignored;
    size_t i;

    if (ask(copy->remote, "GET", path, NULL, &answer, &ignored) < 0)
        return;
    json_array_foreach(json_object_get(answer, "entries"), i, entry)
    {
        if (!copy_is(entry, "file") && !copy_is(entry, "directory") && !copy_is(entry, "symlink"))
            copy_skip(copy, show_text(entry, "path"), show_text(entry, "type"));
    }
    json_decref(answer);
}

int copy_out_into(struct copy *copy, const char *from, int dir_fd, struct err *err)
{
    auto_free struct tree *t = calloc(1, sizeof *t);
    struct err other;
    int r;

    if (!t)
        return err_set(err, ERR_NO_MEMORY, "no memory for a copy");
    t->copy = copy;
    t->root = dir_fd;
    t->fd = t->parent = -1;
    r = take_archive(t, from, err);
    if (t->fd >= 0)
        (void) unlinkat(t->parent, t->scratch, 0);
    entry_done(t);
    if (set_modes(t, r < 0 ? &other : err) < 0)
        r = -1;
    if (r == 0)
        note_skipped(copy, from);
    return r;
}

static int dir_out(struct copy *copy, const char *from, unsigned mode, int dir_fd, const char *name,
                   struct err *err)
{
    auto_close int fd = -1;
    bool made;

    if (make_dir(dir_fd, name, &made, &fd, err) < 0 || copy_out_into(copy, from, fd, err) < 0)
        return -1;
    return made && fchmod(fd, mode & 0777) < 0 ? err_sys(err, errno, "%s", name) : 0;
}

static int entry_out(struct copy *copy, const char *from, json_t *entry, int dir_fd,
                     const char *name, struct err *err)
{
    if (copy_is(entry, "file"))
        return file_out(copy, from, copy_mode(entry), dir_fd, name, err);
    if (copy_is(entry, "directory"))
        return dir_out(copy, from, copy_mode(entry), dir_fd, name, err);
    if (copy_is(entry, "symlink"))
        return link_out(copy, show_text(entry, "target"), dir_fd, name, err);
    copy_skip(copy, from, show_text(entry, "type"));
    return 0;
}

int copy_out(struct copy *copy, const char *from, int dir_fd, const char *name, struct err *err)
{
    json_t *entry;
    int r;

    if (!copy_name_ok(name))
        return err_set(err, ERR_INVALID, "'%.60s' is not a name for a file", name);
    if (copy_stat(copy, from, false, &entry, err) < 0)
        return -1;
    r = entry_out(copy, from, entry, dir_fd, name, err);
    json_decref(entry);
    return r;
}

int copy_out_stdout(struct copy *copy, const char *from, struct err *err)
{
    return receive(copy, from, STDOUT_FILENO, err);
}
