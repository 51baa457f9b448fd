/* One walk over all layers at once. A name is taken from the uppermost layer that has it. A directory is the
 * directories of that name from there on down, as far as one is opaque, or something else than a directory is in the way: then it
 * hides what is below all layers, and the new one is opaque.
 *
 * A file with several names is written once: links/ has a name for it until the end, made of its layer and number,
 * so that nothing has to be remembered here however many there are. Names in different layers are different files. */
#include "disk/merge.h"

#include "base/io.h"
#include "base/own.h"
#include "disk/disk_maker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OVERLAY "trusted.overlay."
#define OPAQUE  OVERLAY "opaque"
#define ORIGIN  OVERLAY "origin"
#define FD_PATH 32

/* Directories of one name, the uppermost first; which of the layers each is of. */
struct level {
    int fd[MERGE_MAX];
    unsigned layer[MERGE_MAX];
    size_t count;
    bool opaque;
};

struct merge {
    int links;
    char names[XATTR_LIST_MAX], value[XATTR_SIZE_MAX]; /* of what is being copied */
};

static void level_done(struct level *level)
{
    for (size_t i = 0; i < level->count; i++)
        own_close(&level->fd[i]);
}

/* ---- what a file is besides its bytes ---- */

static void fd_path(int fd, char out[FD_PATH])
{
    (void) snprintf(out, FD_PATH, "/proc/self/fd/%d", fd);
}

enum fate { FATE_COPY, FATE_DROP, FATE_REFUSE };

/* What is the overlay's own speaks of other layers, which may be gone. What an overlay within the sandbox
 * noted is the sandbox's: "trusted.overlay.overlay.…". */
static enum fate fate_of(const char *name)
{
    static const struct {
        const char *name;
        enum fate fate;
    } own[] = {
        { "overlay.", FATE_COPY },
        { "protattr", FATE_COPY },
        { "redirect",
          FATE_REFUSE }, /* sandboxes are mounted without: their bytes would be elsewhere */
        { "metacopy", FATE_REFUSE },
    };

    if (strncmp(name, OVERLAY, strlen(OVERLAY)) != 0)
        return FATE_COPY;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strncmp(name + strlen(OVERLAY), own[i].name, strlen(own[i].name)) == 0)
            return own[i].fate;
    return FATE_DROP;
}

static int copy_attributes(struct merge *m, int from, int to, struct err *err)
{
    char from_path[FD_PATH], to_path[FD_PATH];
    ssize_t len;

    fd_path(from, from_path);
    fd_path(to, to_path);
    len = listxattr(from_path, m->names, sizeof m->names);
    if (len < 0)
        return errno == ENOTSUP ? 0 : err_sys(err, errno, "list attributes");
    for (const char *name = m->names; name < m->names + len; name += strlen(name) + 1) {
        enum fate fate = fate_of(name);
        ssize_t size;

        if (fate == FATE_REFUSE)
            return err_set(err, ERR_UNSUPPORTED, "a layer has files whose bytes are elsewhere");
        if (fate == FATE_DROP)
            continue;
        size = getxattr(from_path, name, m->value, sizeof m->value);
        if (size < 0 || setxattr(to_path, name, m->value, (size_t) size, 0) < 0)
            return err_sys(err, errno, "copy an attribute");
    }
    return 0;
}

/* Owner first: a change of it clears the set-id bits. Times last. Either may be a descriptor for its place only; the
 * kernel's link to it leads to the file itself, also where that is a link. */
static int copy_look(struct merge *m, int from, int to, const struct stat *st, struct err *err)
{
    const struct timespec times[2] = { st->st_atim, st->st_mtim };
    char path[FD_PATH];

    fd_path(to, path);
    if (fchownat(to, "", st->st_uid, st->st_gid, AT_EMPTY_PATH) < 0)
        return err_sys(err, errno, "give a file to its owner");
    if (!S_ISLNK(st->st_mode) && chmod(path, st->st_mode & 07777) < 0)
        return err_sys(err, errno, "set a file's mode");
    if (copy_attributes(m, from, to, err) < 0)
        return -1;
    if (utimensat(AT_FDCWD, path, times, 0) < 0)
        return err_sys(err, errno, "set a file's times");
    return 0;
}

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static bool is_opaque(int fd)
{
    char path[FD_PATH], value = 0;

    fd_path(fd, path);
    return getxattr(path, OPAQUE, &value, 1) == 1 && value == 'y';
}

/* ---- files ---- */

static int copy_bytes(int dir, const char *name, const struct stat *st, int to_dir, struct err *err)
{
    auto_close int from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    auto_close int to =
        openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (from < 0 || to < 0 || ftruncate(to, st->st_size) < 0 || disk_copy_data(from, to) < 0)
        return err_sys(err, errno, "copy a file");
    return 0;
}

static int copy_symlink(int dir, const char *name, int to_dir, struct err *err)
{
    char target[4096 + 1];
    ssize_t len = readlinkat(dir, name, target, sizeof target - 1);

    if (len < 0)
        return err_sys(err, errno, "read a link");
    target[len] = '\0';
    return symlinkat(target, to_dir, name) < 0 ? err_sys(err, errno, "make a link") : 0;
}

static int copy_entry(struct merge *m, int dir, const char *name, const struct stat *st, int to_dir,
                      struct err *err)
{
    auto_close int from = -1, to = -1;
    int rc;

    if (S_ISREG(st->st_mode))
        rc = copy_bytes(dir, name, st, to_dir, err);
    else if (S_ISLNK(st->st_mode))
        rc = copy_symlink(dir, name, to_dir, err);
    else
        rc = mknodat(to_dir, name, st->st_mode & (S_IFMT | 0600), st->st_rdev) < 0
                 ? err_sys(err, errno, "make a special file")
                 : 0;
    if (rc < 0)
        return -1;
    from = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    to = openat(to_dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0 || to < 0)
        return err_sys(err, errno, "open a copy");
    return copy_look(m, from, to, st, err);
}

/* 1: it was there under another name already. */
static int link_known(struct merge *m, const char *known, int to_dir, const char *name,
                      struct err *err)
{
    if (linkat(m->links, known, to_dir, name, 0) == 0)
        return 1;
    return errno == ENOENT || errno == EMLINK ? 0 : err_sys(err, errno, "link a file");
}

static int take_file(struct merge *m, unsigned layer, int dir, const char *name,
                     const struct stat *st, int to_dir, struct err *err)
{
    char known[48];
    int rc;

    if (st->st_nlink < 2)
        return copy_entry(m, dir, name, st, to_dir, err);
    (void) snprintf(known, sizeof known, "%u-%ju", layer, (uintmax_t) st->st_ino);
    rc = link_known(m, known, to_dir, name, err);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    if (copy_entry(m, dir, name, st, to_dir, err) < 0)
        return -1;
    /* EEXIST: it has as many names as can be, and this is the beginning of another. */
    (void) unlinkat(m->links, known, 0);
    return linkat(to_dir, name, m->links, known, 0) < 0 ? err_sys(err, errno, "note a file") : 0;
}

/* ---- directories ---- */

static int merge_level(struct merge *m, const struct level *level, int to, unsigned depth,
                       struct err *err);

/* All of that name from `first` on down that belong together. */
static int open_level(const struct level *above, size_t first, const char *name, struct level *ret,
                      struct err *err)
{
    for (size_t i = first; i < above->count && !ret->opaque; i++) {
        int fd = openat(above->fd[i], name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0 && errno != ENOTDIR && errno != ELOOP)
            return err_sys(err, errno, "open a directory");
        ret->opaque = fd < 0 || is_opaque(fd);
        if (fd < 0)
            break;
        ret->fd[ret->count] = fd;
        ret->layer[ret->count++] = above->layer[i];
    }
    return 0;
}

static int take_directory(struct merge *m, const struct level *above, size_t first,
                          const char *name, const struct stat *st, int to_dir, unsigned depth,
                          struct err *err)
{
    struct level level = { .count = 0 };
    auto_close int to = -1;
    char path[FD_PATH];
    int rc = -1;

    if (depth == MERGE_DEPTH_MAX)
        return err_set(err, ERR_UNSUPPORTED, "directories are more than %d deep", MERGE_DEPTH_MAX);
    if (mkdirat(to_dir, name, 0700) < 0)
        return err_sys(err, errno, "make a directory");
    to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    fd_path(to, path);
    if (to < 0)
        err_sys(err, errno, "open a directory");
    else if (open_level(above, first, name, &level, err) == 0)
        rc = merge_level(m, &level, to, depth + 1, err);
    if (rc == 0 && level.opaque && setxattr(path, OPAQUE, "y", 1, 0) < 0)
        rc = err_sys(err, errno, "mark a directory");
    if (rc == 0)
        rc = copy_look(m, level.fd[0], to, st, err);
    level_done(&level);
    return rc;
}

static bool shown_above(const struct level *level, size_t upto, const char *name)
{
    struct stat st;

    for (size_t i = 0; i < upto; i++)
        if (fstatat(level->fd[i], name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

/* Where there is no such directory below, the kernel would show whiteouts in its listing, unless the directory says that
 * it is a copy of one: empty, "of an unknown one". */
static int take_whiteout(struct merge *m, const struct level *level, size_t i, const char *name,
                         const struct stat *st, int to, struct err *err)
{
    char path[FD_PATH];

    if (level->opaque) /* nothing is there for it to hide */
        return 0;
    fd_path(to, path);
    if (setxattr(path, ORIGIN, "", 0, 0) < 0)
        return err_sys(err, errno, "mark a directory");
    return take_file(m, level->layer[i], level->fd[i], name, st, to, err);
}

static int take(struct merge *m, const struct level *level, size_t i, const char *name, int to,
                unsigned depth, struct err *err)
{
    struct stat st;

    if (shown_above(level, i, name))
        return 0;
    if (fstatat(level->fd[i], name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "look at a file");
    if (S_ISDIR(st.st_mode))
        return take_directory(m, level, i, name, &st, to, depth, err);
    if (is_whiteout(&st))
        return take_whiteout(m, level, i, name, &st, to, err);
    return take_file(m, level->layer[i], level->fd[i], name, &st, to, err);
}

static int merge_level(struct merge *m, const struct level *level, int to, unsigned depth,
                       struct err *err)
{
    for (size_t i = 0; i < level->count; i++) {
        int own = openat(level->fd[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_dir DIR *dir = own < 0 ? NULL : fdopendir(own);
        const struct dirent *entry;

        if (!dir) {
            err_sys(err, errno, "list a directory");
            own_close(&own);
            return -1;
        }
        while (errno = 0, (entry = readdir(dir))) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            if (take(m, level, i, entry->d_name, to, depth, err) < 0)
                return -1;
        }
        if (errno != 0)
            return err_sys(err, errno, "list a directory");
    }
    return 0;
}

int merge_trees(const int *from, size_t count, int to, int links, struct err *err)
{
    auto_free struct merge *m = malloc(sizeof *m);
    struct level level = { .count = count };
    struct stat st;

    if (!m || count == 0 || count > MERGE_MAX)
        return err_set(err, ERR_INTERNAL, "cannot merge %zu layers", count);
    m->links = links;
    for (size_t i = 0; i < count; i++) { /* borrowed */
        level.fd[i] = from[i];
        level.layer[i] = (unsigned) i;
    }
    if (fstat(from[0], &st) < 0)
        return err_sys(err, errno, "look at a layer");
    return merge_level(m, &level, to, 0, err) < 0 ? -1 : copy_look(m, from[0], to, &st, err);
}
