/* Host to sandbox. The host's tree is walked by descriptors; the server checks every path again, and the sandbox's agent resolves
 * them with the user's rights. */
#include "base/own.h"
#include "cli/api/copy.h"
#include "http/tar.h"
#include "remote/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PIECE 65536

static int open_call(const struct copy *copy, const char *what, const char *to, const char *more,
                     const char *type, struct call *call, struct err *err)
{
    auto_free char *path = copy_path(copy, what, to, more);
    const struct call_request request = {
        .method = "PUT", .path = path, .type = type, .streams = true
    };

    *call = CALL_NONE;
    return path ? call_open(call, copy->remote, &request, err)
                : err_set(err, ERR_NO_MEMORY, "no memory for a request");
}

/* What the server says of the whole; r: of the sending so far. */
static int close_call(struct call *call, int r, struct err *err)
{
    if (r == 0)
        r = call_sent(call, err) < 0 || call_answer(call, err) < 0 ? -1 : ask_check(call, err);
    call_close(call);
    return r;
}

/* ---- one file ---- */

static int send_all(struct copy *copy, struct call *call, int fd, const char *to, struct err *err)
{
    auto_free char *data = malloc(PIECE);
    ssize_t n;

    if (!data)
        return err_set(err, ERR_NO_MEMORY, "no memory for a copy");
    while ((n = read(fd, data, PIECE)) != 0 && !call->dead) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, errno, "read for %s", to);
        if (call_send(call, data, (size_t) n, err) < 0)
            return -1;
        copy_progress(copy, (uint64_t) n, 0);
    }
    copy_progress(copy, 0, 1);
    return 0;
}

/* Whole or not at all: a copy that fails leaves the file that was there. */
static int file_in(struct copy *copy, int fd, const char *to, const char *more, struct err *err)
{
    struct call call;

    if (open_call(copy, "", to, more, "application/octet-stream", &call, err) < 0)
        return -1;
    return close_call(&call, send_all(copy, &call, fd, to, err), err);
}

/* ---- a tree ---- */

struct tree {
    struct copy *copy;
    struct call *call;
    char head[TAR_HEAD_MAX], data[PIECE];
};

static int put_head(struct tree *t, struct tar_entry *entry, const struct stat *st, struct err *err)
{
    ssize_t n;

    entry->mode = st->st_mode & 0777;
    entry->mtime = st->st_mtime;
    n = tar_put_head(t->head, sizeof t->head, entry, err);
    return n < 0 ? -1 : call_send(t->call, t->head, (size_t) n, err);
}

static int put_zeros(struct tree *t, size_t len, struct err *err)
{
    memset(t->data, 0, len);
    return call_send(t->call, t->data, len, err);
}

static int put_content(struct tree *t, int fd, const struct tar_entry *entry, struct err *err)
{
    uint64_t left = entry->size;

    while (left > 0 && !t->call->dead) {
        ssize_t n = read(fd, t->data, left < PIECE ? left : PIECE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0
                       ? err_sys(err, errno, "read %s", entry->path)
                       : err_set(err, ERR_STATE, "%s: it changed while it was copied", entry->path);
        if (call_send(t->call, t->data, (size_t) n, err) < 0)
            return -1;
        left -= (uint64_t) n;
        copy_progress(t->copy, (uint64_t) n, 0);
    }
    return put_zeros(t, tar_padding(entry->size), err);
}

static int put_link(struct tree *t, int dir_fd, const char *name, const char *path,
                    const struct stat *st, struct err *err)
{
    auto_free struct tar_entry *entry = calloc(1, sizeof *entry);
    ssize_t n;

    if (!entry)
        return err_set(err, ERR_NO_MEMORY, "no memory for a copy");
    n = readlinkat(dir_fd, name, entry->target, sizeof entry->target - 1);
    if (n < 0)
        return err_sys(err, errno, "%s", name);
    entry->type = TAR_LINK;
    (void) snprintf(entry->path, sizeof entry->path, "%s", path);
    copy_progress(t->copy, 0, 1);
    return put_head(t, entry, st, err);
}

static int put_entry(struct tree *t, int dir_fd, const char *name, const char *path, unsigned depth,
                     struct err *err);

static int put_entries(struct tree *t, int fd, const char *path, unsigned depth, struct err *err)
{
    int again = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    auto_dir DIR *dir = again < 0 ? NULL : fdopendir(again);

    if (!dir)
        return err_sys(err, errno, "list %s", path);
    if (depth > COPY_DEPTH_MAX)
        return err_set(err, ERR_TOO_BIG, "deeper than %d levels: %.100s", COPY_DEPTH_MAX, path);
    for (;;) {
        char below[COPY_PATH_MAX];
        struct dirent *entry;

        errno = 0;
        entry = readdir(dir);
        if (!entry || t->call->dead)
            return errno ? err_sys(err, errno, "list %s", path) : 0;
        if (!copy_name_ok(entry->d_name))
            continue;
        if (copy_join(below, path, entry->d_name, err) < 0 ||
            put_entry(t, dirfd(dir), entry->d_name, below, depth + 1, err) < 0)
            return -1;
    }
}

static int put_opened(struct tree *t, int fd, const char *path, const struct stat *st,
                      unsigned depth, struct err *err)
{
    auto_free struct tar_entry *entry = calloc(1, sizeof *entry);

    if (!entry)
        return err_set(err, ERR_NO_MEMORY, "no memory for a copy");
    (void) snprintf(entry->path, sizeof entry->path, "%s", path);
    entry->type = S_ISDIR(st->st_mode) ? TAR_DIR : TAR_FILE;
    entry->size = S_ISDIR(st->st_mode) ? 0 : (uint64_t) st->st_size;
    if (put_head(t, entry, st, err) < 0)
        return -1;
    if (S_ISDIR(st->st_mode))
        return put_entries(t, fd, path, depth, err);
    copy_progress(t->copy, 0, 1);
    return put_content(t, fd, entry, err);
}

static int put_entry(struct tree *t, int dir_fd, const char *name, const char *path, unsigned depth,
                     struct err *err)
{
    auto_close int fd = -1;
    struct stat st;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "%s", name);
    if (S_ISLNK(st.st_mode))
        return put_link(t, dir_fd, name, path, &st, err);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        copy_skip(t->copy, path, "neither a file, a directory nor a link");
        return 0;
    }
    fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "%s", name);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(err, ERR_NOT_FILE, "%s: it changed while it was copied", name);
    return put_opened(t, fd, path, &st, depth, err);
}

/* An archive into the directory `to`: what is in fd, or the one entry `name` of dir_fd as `as`. */
static int archive_in(struct copy *copy, const char *to, int fd, const char *name, const char *as,
                      struct err *err)
{
    auto_free struct tree *t = malloc(sizeof *t);
    struct call call;
    int r;

    if (!t)
        return err_set(err, ERR_NO_MEMORY, "no memory for a copy");
    if (open_call(copy, "/tar", to, "&parents=false", "application/x-tar", &call, err) < 0)
        return -1;
    t->copy = copy;
    t->call = &call;
    r = name ? put_entry(t, fd, name, as, 0, err) : put_entries(t, fd, "", 0, err);
    if (r == 0)
        r = put_zeros(t, TAR_END_SIZE, err);
    return close_call(&call, r, err);
}

/* A directory that is there already is filled, as cp does; anything else in its place is not. */
static int make_dir(const struct copy *copy, const char *to, bool *ret_existed, struct err *err)
{
    auto_free char *path = ask_path("/v1/sandboxes/%s/files/mkdir", copy->sandbox);
    json_t *answer = NULL, *entry = NULL;
    struct err why;
    int r = ask(copy->remote, "POST", path,
                json_pack("{s:s, s:s, s:b, s:s*}", "path", to, "mode", "700", "parents", 0, "user",
                          copy->user),
                &answer, err);

    *ret_existed = r == 0 && json_is_true(json_object_get(answer, "existed"));
    if (r < 0 && err->kind == ERR_EXISTS && copy_stat(copy, to, true, &entry, &why) == 0) {
        *ret_existed = copy_is(entry, "directory");
        r = *ret_existed ? 0 : err_set(err, ERR_NOT_DIR, "%s: exists and is not a directory", to);
    }
    json_decref(answer);
    json_decref(entry);
    return r;
}

static int set_mode(const struct copy *copy, const char *to, unsigned mode, struct err *err)
{
    auto_free char *path = ask_path("/v1/sandboxes/%s/files/chmod", copy->sandbox);
    char text[8];

    (void) snprintf(text, sizeof text, "%03o", mode & 0777);
    return ask(copy->remote, "POST", path,
               json_pack("{s:s, s:s, s:s*}", "path", to, "mode", text, "user", copy->user), NULL,
               err);
}

static int dir_in(struct copy *copy, int fd, const char *to, unsigned mode, struct err *err)
{
    bool existed;

    if (make_dir(copy, to, &existed, err) < 0 || archive_in(copy, to, fd, NULL, NULL, err) < 0)
        return -1;
    return existed ? 0 : set_mode(copy, to, mode, err);
}

/* A link is an archive of one entry, in the directory that it goes to. */
static int link_in(struct copy *copy, const char *from, const char *to, struct err *err)
{
    const char *slash = strrchr(to, '/'), *name = slash ? slash + 1 : to;
    char parent[COPY_PATH_MAX];

    (void) snprintf(parent, sizeof parent, "%.*s", slash ? (int) (slash - to + 1) : 1,
                    slash ? to : ".");
    return copy_name_ok(name) ? archive_in(copy, parent, AT_FDCWD, from, name, err)
                              : err_set(err, ERR_INVALID, "'%.60s' is not a name for a link", to);
}

int copy_in(struct copy *copy, const char *from, const char *to, struct err *err)
{
    auto_close int fd = -1;
    struct stat st;
    char more[64];

    if (fstatat(AT_FDCWD, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "%s", from);
    if (S_ISLNK(st.st_mode))
        return link_in(copy, from, to, err);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        copy_skip(copy, from, "neither a file, a directory nor a link");
        return 0;
    }
    fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "%s", from);
    if (S_ISDIR(st.st_mode))
        return dir_in(copy, fd, to, st.st_mode & 0777, err);
    (void) snprintf(more, sizeof more, "&parents=false&mode=%03o", (unsigned) st.st_mode & 0777);
    return file_in(copy, fd, to, more, err);
}

int copy_in_stdin(struct copy *copy, const char *to, struct err *err)
{
    return file_in(copy, STDIN_FILENO, to, "&parents=false", err);
}
