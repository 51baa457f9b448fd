#include "agent/worker/walk.h"

#include "agent/worker/path.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#define DIR_FLAGS        (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK)
#define PROC_SUPER_MAGIC 0x9fa0
#define SYSFS_MAGIC      0x62656572

static struct walk_level *top(struct walk *walk)
{
    return &walk->levels[walk->depth - 1];
}

static bool is_proc(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && ((unsigned long) fs.f_type == PROC_SUPER_MAGIC ||
                                     (unsigned long) fs.f_type == SYSFS_MAGIC);
}

/* gVisor follows a link in spite of O_NOFOLLOW when O_DIRECTORY is there, too. What was opened must be what has the name. */
static int open_named(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, DIR_FLAGS | O_NOFOLLOW);
    struct stat here, st;

    if (fd < 0 || (fstatat(dirfd, name, &here, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &st) == 0 &&
                   here.st_dev == st.st_dev && here.st_ino == st.st_ino))
        return fd;
    (void) close(fd);
    errno = ENOTDIR;
    return -1;
}

int walk_open_dir(int dirfd, const char *name, unsigned flags)
{
    struct open_how how = { .flags = DIR_FLAGS | O_NOFOLLOW,
                            .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS };
    struct stat above, st;
    int fd;

    if (flags & WALK_ONE_FS) {
        fd = (int) syscall(SYS_openat2, dirfd, name, &how, sizeof how);
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
            return fd;
    }
    fd = open_named(dirfd, name);
    /* Without openat2 a bind mount of the same file system goes unnoticed; others do not. */
    if (fd >= 0 && (flags & WALK_ONE_FS) &&
        (fstat(dirfd, &above) < 0 || fstat(fd, &st) < 0 || above.st_dev != st.st_dev)) {
        (void) close(fd);
        errno = EXDEV;
        return -1;
    }
    return fd;
}

/* Room for one more level and for a name of any length behind the path. */
static int grow(struct walk *walk, struct err *err)
{
    if (walk->depth == walk->room) {
        size_t room = walk->room ? walk->room * 2 : 16;
        void *levels = realloc(walk->levels, room * sizeof *walk->levels);

        if (!levels)
            return err_sys(err, ENOMEM, "walk %zu levels", walk->depth);
        walk->levels = levels;
        walk->room = room;
    }
    if (walk->path_room < walk->path_len + 1024) {
        size_t room = 2 * (walk->path_len + 1024);
        char *path = realloc(walk->path, room);

        if (!path)
            return err_sys(err, ENOMEM, "walk %zu levels", walk->depth);
        walk->path = path;
        walk->path_room = room;
    }
    return 0;
}

/* Closes the directory that is now too far above, but one whose child was entered by a link. */
static void close_far(struct walk *walk)
{
    struct walk_level *far;

    if (walk->depth <= WALK_OPEN_MAX)
        return;
    far = &walk->levels[walk->depth - 1 - WALK_OPEN_MAX];
    if (!far->dir || far[1].linked)
        return;
    far->at = telldir(far->dir);
    (void) closedir(far->dir);
    far->dir = NULL;
}

/* ---- sorted ---- */

/* One directory's names: type and text, one behind the other; `at` has where each begins. */
struct walk_names {
    char *text;
    size_t used, room;
    size_t *at;
    size_t count, at_room, next;
};

static void names_free(struct walk_names *names)
{
    if (!names)
        return;
    free(names->text);
    free(names->at);
    free(names);
}

static bool names_add(struct walk_names *names, const struct dirent *e)
{
    size_t len = strlen(e->d_name) + 1;

    if (names->used + 1 + len > names->room) {
        size_t room = 2 * names->room + 4096;
        char *text = realloc(names->text, room);

        if (!text)
            return false;
        names->text = text;
        names->room = room;
    }
    if (names->count == names->at_room) {
        size_t room = 2 * names->at_room + 256;
        size_t *at = realloc(names->at, room * sizeof *at);

        if (!at)
            return false;
        names->at = at;
        names->at_room = room;
    }
    names->at[names->count++] = names->used;
    names->text[names->used] = (char) e->d_type;
    memcpy(names->text + names->used + 1, e->d_name, len);
    names->used += 1 + len;
    return true;
}

static const char *sorting; /* qsort takes no context; a worker is one thread */

static int compare_names(const void *a, const void *b)
{
    return strcmp(sorting + *(const size_t *) a + 1, sorting + *(const size_t *) b + 1);
}

static const struct dirent *read_entry(DIR *dir)
{
    const struct dirent *e;

    do {
        e = readdir(dir);
    } while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
    return e;
}

static struct walk_names *names_read(DIR *dir)
{
    struct walk_names *names = calloc(1, sizeof *names);
    const struct dirent *e;

    while (names && (e = read_entry(dir)))
        if (!names_add(names, e)) {
            names_free(names);
            return NULL;
        }
    if (names && names->count > 0) {
        sorting = names->text;
        qsort(names->at, names->count, sizeof *names->at, compare_names);
    }
    return names;
}

/* The next name of the top directory, or NULL. */
static const char *next_name(struct walk *walk, unsigned char *ret_type)
{
    struct walk_names *names = top(walk)->names;
    const struct dirent *e;

    if (names) {
        if (names->next == names->count)
            return NULL;
        *ret_type = (unsigned char) names->text[names->at[names->next]];
        return names->text + names->at[names->next++] + 1;
    }
    e = read_entry(top(walk)->dir);
    if (!e)
        return NULL;
    *ret_type = e->d_type;
    return e->d_name;
}

/* Takes fd over. */
static int push(struct walk *walk, int taken, const struct stat *st, bool linked, struct err *err)
{
    auto_close int fd = taken;
    struct walk_level level = {
        .dev = st->st_dev, .ino = st->st_ino, .path_len = walk->path_len, .linked = linked
    };

    if (grow(walk, err) < 0)
        return -1;
    level.dir = fdopendir(fd);
    if (!level.dir)
        return path_err(err, errno, walk->path);
    (void) take_fd(&fd);
    if ((walk->flags & WALK_SORTED) && !(level.names = names_read(level.dir))) {
        (void) closedir(level.dir);
        return err_sys(err, ENOMEM, "walk %zu levels", walk->depth);
    }
    walk->levels[walk->depth++] = level;
    walk->linked += linked;
    close_far(walk);
    return 0;
}

int walk_open(struct walk *walk, int taken, const char *path, unsigned flags, struct err *err)
{
    auto_close int fd = taken;
    size_t len = strcmp(path, "/") == 0 ? 0 : strlen(path); /* names follow behind a slash */
    struct stat st;

    walk->flags = flags;
    walk->path_len = len;
    if (grow(walk, err) < 0)
        return -1;
    memcpy(walk->path, path, len);
    walk->path[len] = '\0';
    if (fstat(fd, &st) < 0)
        return path_err(err, errno, path);
    walk->in_proc = is_proc(fd);
    return push(walk, take_fd(&fd), &st, false, err);
}

/* The directory above the top one is open again: through "..", if it is still the same. */
static int reopen_above(struct walk *walk, struct err *err)
{
    struct walk_level *above = top(walk) - 1;
    auto_close int fd = -1;
    struct stat st;

    if (above->dir)
        return 0;
    fd = openat(dirfd(top(walk)->dir), "..", DIR_FLAGS | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return path_err(err, errno, walk->path);
    if (st.st_dev != above->dev || st.st_ino != above->ino)
        return path_fail(err, ERR_STATE, walk->path, "moved while it was walked");
    above->dir = fdopendir(fd);
    if (!above->dir)
        return path_err(err, errno, walk->path);
    (void) take_fd(&fd);
    seekdir(above->dir, above->at);
    return 0;
}

static void set_current(struct walk *walk, const char *name, unsigned char type)
{
    walk->dirfd = dirfd(top(walk)->dir);
    walk->name = name;
    walk->type = type;
}

/* The top directory is finished: it becomes the current entry of the one above. */
static int leave(struct walk *walk, struct err *err)
{
    struct walk_level done;

    walk->path_len = top(walk)->path_len;
    walk->path[walk->path_len] = '\0';
    if (walk->depth == 1)
        return WALK_END;
    if (reopen_above(walk, err) < 0)
        return -1;
    done = *top(walk);
    walk->left = fcntl(dirfd(done.dir), F_DUPFD_CLOEXEC, 3);
    (void) closedir(done.dir);
    names_free(done.names);
    walk->depth--;
    walk->linked -= done.linked;
    if (walk->left < 0)
        return path_err(err, errno, walk->path);
    set_current(walk, walk->path + top(walk)->path_len + 1, DT_DIR);
    return WALK_LEAVE;
}

int walk_next(struct walk *walk, struct err *err)
{
    const char *name;
    unsigned char type;
    size_t at, len;

    own_close(&walk->left);
    name = next_name(walk, &type);
    if (!name)
        return leave(walk, err);
    at = walk->path_len = top(walk)->path_len;
    if (grow(walk, err) < 0)
        return -1;
    len = strlen(name);
    walk->path[at] = '/';
    memcpy(walk->path + at + 1, name, len + 1);
    walk->path_len = at + 1 + len;
    set_current(walk, walk->path + at + 1, type);
    return WALK_ENTRY;
}

int walk_enter(struct walk *walk, bool follow, struct err *err)
{
    auto_close int fd = -1;
    bool linked = false;
    struct stat st;

    own_close(&walk->left);
    fd = walk_open_dir(walk->dirfd, walk->name, walk->flags);
    if (fd < 0 && follow && (errno == ELOOP || errno == ENOTDIR)) {
        if (walk->linked >= WALK_LINK_MAX)
            return path_err(err, ELOOP, walk->path);
        fd = openat(walk->dirfd, walk->name, DIR_FLAGS);
        linked = true;
    }
    if (fd < 0 && errno == EXDEV)
        return path_fail(err, ERR_STATE, walk->path, "is a mount point");
    if (fd < 0 || fstat(fd, &st) < 0)
        return path_err(err, errno, walk->path);
    if ((walk->flags & WALK_SKIP_PROC) && !walk->in_proc && st.st_dev != top(walk)->dev &&
        is_proc(fd))
        return path_fail(err, ERR_STATE, walk->path, "is not searched");
    return push(walk, take_fd(&fd), &st, linked, err);
}

bool walk_is_dir(const struct walk *walk)
{
    struct stat st;

    if (walk->type != DT_UNKNOWN)
        return walk->type == DT_DIR;
    return fstatat(walk->dirfd, walk->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

void walk_close(struct walk *walk)
{
    own_close(&walk->left);
    for (size_t i = 0; i < walk->depth; i++) {
        own_dir(&walk->levels[i].dir);
        names_free(walk->levels[i].names);
    }
    free(walk->levels);
    free(walk->path);
    *walk = (struct walk) WALK_INIT;
}
