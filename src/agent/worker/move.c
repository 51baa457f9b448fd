#include "agent/worker/move.h"

#include "agent/worker/answer.h"
#include "agent/worker/entry.h"
#include "agent/worker/file.h"
#include "agent/worker/path.h"
#include "agent/worker/place.h"
#include "agent/worker/subtree.h"
#include "agent/worker/walk.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define COPY_SIZE 65536u

/* Where the copy is being made. Like the walk it holds only one directory open and climbs by "..",
 * which must lead back to where it came from. */
struct copy {
    struct worker *w;
    int base; /* borrowed: where the copy as a whole goes */
    int dir;  /* the directory that entries go into */
    struct {
        dev_t dev;
        ino_t ino;
    } * above; /* the directories that were left for one below them */
    size_t depth, room;
    uint8_t *buffer; /* COPY_SIZE */
    uint64_t steps;
};

/* Owner where we may, mode and times. The owner first: changing it clears bits of the mode. */
static int copy_meta(int fd, const struct stat *st)
{
    const struct timespec times[2] = { st->st_atim, st->st_mtim };
    mode_t bits = fchown(fd, st->st_uid, st->st_gid) == 0 ? 07777 : 0777;

    if (fchmod(fd, st->st_mode & bits) < 0)
        return -1;
    return futimens(fd, times);
}

static int copy_bytes(struct copy *copy, int from, int to, const char *path, struct err *err)
{
    for (;;) {
        ssize_t n = read(from, copy->buffer, COPY_SIZE);
        size_t done = 0;

        if (n < 0)
            return path_err(err, errno, path);
        if (n == 0)
            return 0;
        if (answer_wanted(copy->w, copy->steps++, err) < 0)
            return -1;
        while (done < (size_t) n) {
            ssize_t put = write(to, copy->buffer + done, (size_t) n - done);

            if (put < 0)
                return path_err(err, errno, path);
            done += (size_t) put;
        }
    }
}

static int copy_file(struct copy *copy, int dirfd, const char *name, const char *to,
                     const char *path, struct err *err)
{
    auto_close int from = file_open_regular(dirfd, name, O_RDONLY | O_NOFOLLOW, path, err);
    auto_close int fd = -1;
    struct stat st;

    if (from < 0)
        return -1;
    fd = openat(copy->dir, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return path_err(err, errno, path);
    if (copy_bytes(copy, from, fd, path, err) < 0)
        return -1;
    if (fstat(from, &st) < 0 || copy_meta(fd, &st) < 0 || close(take_fd(&fd)) < 0)
        return path_err(err, errno, path);
    return 0;
}

static int copy_link(struct copy *copy, int dirfd, const char *name, const char *to,
                     const char *path, struct err *err)
{
    char target[AGENT_PATH_MAX];
    ssize_t n = readlinkat(dirfd, name, target, sizeof target);

    if (n < 0 || (size_t) n == sizeof target)
        return path_err(err, n < 0 ? errno : ENAMETOOLONG, path);
    target[n] = '\0';
    return symlinkat(target, copy->dir, to) < 0 ? path_err(err, errno, path) : 0;
}

/* Anything but a directory. */
static int copy_one(struct copy *copy, int dirfd, const char *name, const struct stat *st,
                    const char *to, const char *path, struct err *err)
{
    if (S_ISREG(st->st_mode))
        return copy_file(copy, dirfd, name, to, path, err);
    if (!S_ISLNK(st->st_mode) && !S_ISFIFO(st->st_mode))
        return path_fail(err, ERR_NOT_FILE, path, "cannot be moved to another file system");
    if (S_ISLNK(st->st_mode) && copy_link(copy, dirfd, name, to, path, err) < 0)
        return -1;
    if (S_ISFIFO(st->st_mode) && mkfifoat(copy->dir, to, st->st_mode & 0777) < 0)
        return path_err(err, errno, path);
    IGNORE(fchownat(copy->dir, to, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0);
    return 0;
}

/* Makes a directory and goes into it. */
static int copy_down(struct copy *copy, const char *to, const char *path, struct err *err)
{
    struct stat st;
    int fd;

    if (copy->depth == copy->room) {
        size_t room = copy->room ? 2 * copy->room : 64;
        void *above = realloc(copy->above, room * sizeof *copy->above);

        if (!above)
            return path_err(err, ENOMEM, path);
        copy->above = above;
        copy->room = room;
    }
    if (fstat(copy->dir, &st) < 0 || mkdirat(copy->dir, to, 0700) < 0)
        return path_err(err, errno, path);
    fd = walk_open_dir(copy->dir, to, 0);
    if (fd < 0)
        return path_err(err, errno, path);
    copy->above[copy->depth].dev = st.st_dev;
    copy->above[copy->depth++].ino = st.st_ino;
    own_close(&copy->dir);
    copy->dir = fd;
    return 0;
}

/* The directory is whole: it gets its mode and times, and the one above is next. */
static int copy_up(struct copy *copy, int from, const char *path, struct err *err)
{
    /* The first one may be a directory that we may write but not read. */
    auto_close int above = copy->depth == 1 ? fcntl(copy->base, F_DUPFD_CLOEXEC, 3)
                                            : walk_open_dir(copy->dir, "..", 0);
    struct stat st;

    if (above < 0 || fstat(above, &st) < 0)
        return path_err(err, errno, path);
    copy->depth--;
    if (st.st_dev != copy->above[copy->depth].dev || st.st_ino != copy->above[copy->depth].ino)
        return path_fail(err, ERR_STATE, path, "the copy was moved while it was made");
    if (fstat(from, &st) < 0 || copy_meta(copy->dir, &st) < 0)
        return path_err(err, errno, path);
    own_close(&copy->dir);
    copy->dir = take_fd(&above);
    return 0;
}

static int copy_step(struct copy *copy, struct walk *walk, struct err *err)
{
    struct stat st;

    if (fstatat(walk->dirfd, walk->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return path_err(err, errno, walk->path);
    if (!S_ISDIR(st.st_mode))
        return copy_one(copy, walk->dirfd, walk->name, &st, walk->name, walk->path, err);
    if (copy_down(copy, walk->name, walk->path, err) < 0)
        return -1;
    return walk_enter(walk, false, err);
}

/* The tree at fd (taken over) as `to` in copy->dir. */
static int copy_tree(struct copy *copy, int fd, const char *to, const char *path, struct err *err)
{
    auto_close int root = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    struct walk walk = WALK_INIT;
    int step = walk_open(&walk, fd, path, WALK_ONE_FS, err);

    if (step == 0)
        step = copy_down(copy, to, path, err);
    while (step == 0 && (step = walk_next(&walk, err)) > 0) {
        if (answer_wanted(copy->w, copy->steps++, err) < 0)
            step = -1;
        else if (step == WALK_ENTRY)
            step = copy_step(copy, &walk, err);
        else
            step = copy_up(copy, walk.left, walk.path, err);
        if (step < 0)
            break;
        step = 0;
    }
    walk_close(&walk);
    return step < 0 ? -1 : copy_up(copy, root, path, err);
}

struct ends {
    char from[PATH_TEXT_MAX], to[PATH_TEXT_MAX];
    int from_dir, to_dir;
};

/* The copy under a temporary name, then its own, then the old tree goes. */
static int move_by_copy(struct copy *copy, struct ends *ends, struct err *err)
{
    const char *name = path_base(ends->from);
    uint64_t count = 0;
    struct err undo;
    struct stat st;
    char temp[32];
    int fd, rc;

    place_temp_name(temp);
    if (fstatat(ends->from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return path_err(err, errno, ends->from);
    if (S_ISDIR(st.st_mode)) {
        fd = walk_open_dir(ends->from_dir, name, WALK_ONE_FS);
        if (fd < 0 && errno == EXDEV)
            return path_fail(err, ERR_STATE, ends->from, "is a mount point");
        if (fd < 0)
            return path_err(err, errno, ends->from);
        rc = copy_tree(copy, fd, temp, ends->from, err);
    } else {
        rc = copy_one(copy, ends->from_dir, name, &st, temp, ends->from, err);
    }
    if (rc == 0 && renameat(ends->to_dir, temp, ends->to_dir, path_base(ends->to)) < 0)
        rc = path_err(err, errno, ends->to);
    if (rc < 0) {
        (void) subtree_remove_at(NULL, ends->to_dir, temp, ends->to, &count, &undo);
        return -1;
    }
    if (subtree_remove_at(NULL, ends->from_dir, name, ends->from, &count, err) < 0)
        return err_wrap(err, "copied, but the old one stays");
    return 0;
}

static int move_between(struct worker *w, struct ends *ends, struct err *err)
{
    struct copy copy = { .w = w, .base = ends->to_dir, .dir = -1 };
    int rc;

    if (renameat(ends->from_dir, path_base(ends->from), ends->to_dir, path_base(ends->to)) == 0)
        return 0;
    if (errno == EBUSY)
        return path_fail(err, ERR_STATE, ends->from, "is a mount point");
    if (errno == EINVAL)
        return path_fail(err, ERR_INVALID, ends->to, "a directory cannot move into itself");
    if (errno != EXDEV)
        return path_err(err, errno, errno == ENOENT || errno == EACCES ? ends->from : ends->to);
    copy.buffer = malloc(COPY_SIZE);
    copy.dir = fcntl(ends->to_dir, F_DUPFD_CLOEXEC, 3);
    rc = copy.buffer && copy.dir >= 0 ? move_by_copy(&copy, ends, err)
                                      : path_err(err, ENOMEM, ends->from);
    own_close(&copy.dir);
    free(copy.above);
    free(copy.buffer);
    return rc;
}

static int reply_entry(struct worker *w, const char *path, struct err *err)
{
    char target[AGENT_PATH_MAX];
    struct agent_reply reply = { 0 };
    struct stat st;

    if (lstat(path, &st) < 0)
        return path_err(err, errno, path);
    entry_fill(&reply, path, &st);
    if (S_ISLNK(st.st_mode))
        entry_target(&reply, AT_FDCWD, path, target, sizeof target);
    return answer_record(w, FRAME_REPLY, &reply, err);
}

int move_run(struct worker *w, struct err *err)
{
    struct ends ends = { .from_dir = -1, .to_dir = -1 };
    int rc = -1;

    if (path_resolve(w->user->home, w->request->path, ends.from, err) < 0 ||
        path_resolve(w->user->home, w->request->to, ends.to, err) < 0)
        return -1;
    if (path_is_special(ends.from) || path_is_special(ends.to))
        return path_fail(err, ERR_INVALID, path_is_special(ends.from) ? ends.from : ends.to,
                         "cannot be moved by this name");
    ends.from_dir = path_open_parent(ends.from, err);
    if (ends.from_dir < 0)
        return -1;
    if (!(w->request->flags & AGENT_PARENTS) || path_parents(ends.to, err) == 0)
        ends.to_dir = path_open_parent(ends.to, err);
    if (ends.to_dir >= 0)
        rc = move_between(w, &ends, err);
    own_close(&ends.from_dir);
    own_close(&ends.to_dir);
    return rc < 0 ? -1 : reply_entry(w, ends.to, err);
}
