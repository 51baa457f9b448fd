#include "agent/worker/file.h"

#include "agent/worker/answer.h"
#include "agent/worker/entry.h"
#include "agent/worker/path.h"
#include "agent/worker/place.h"
#include "agent/worker/receive.h"
#include "agent/worker/xattr.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

int file_reply_entry(struct worker *w, const char *path, uint32_t extra, uint64_t count,
                     struct err *err)
{
    struct agent_reply reply = { .flags = extra, .count = count };
    struct stat st;

    if (stat(path, &st) < 0)
        return path_err(err, errno, path);
    entry_fill(&reply, path, &st);
    return answer_record(w, FRAME_REPLY, &reply, err);
}

int file_stat(struct worker *w, struct err *err)
{
    static struct entry_room room;
    char path[PATH_TEXT_MAX], target[AGENT_PATH_MAX];
    struct agent_reply reply = { 0 };
    struct stat st;

    if (path_resolve(w->user->home, w->request->path, path, err) < 0)
        return -1;
    if (!(w->request->flags & AGENT_NOFOLLOW))
        return file_reply_entry(w, path, 0, 0, err);
    if (lstat(path, &st) < 0)
        return path_err(err, errno, path);
    entry_fill(&reply, path, &st);
    if (S_ISLNK(st.st_mode))
        entry_target(&reply, AT_FDCWD, path, target, sizeof target);
    entry_detail(&reply, w->request, &room);
    return answer_record(w, FRAME_REPLY, &reply, err);
}

/* What is wrong with a thing that is no regular file. */
static int refuse_type(mode_t mode, const char *path, struct err *err)
{
    if (S_ISDIR(mode))
        return path_err(err, EISDIR, path);
    return path_fail(err, ERR_NOT_FILE, path, "not a regular file");
}

int file_open_regular(int dirfd, const char *name, int flags, const char *path, struct err *err)
{
    auto_close int fd = -1;
    struct stat st;

    /* Looked at before it is opened: opening is an act for some devices and for a FIFO's other end.
     * The look behind it is the one that counts. */
    if (fstatat(dirfd, name, &st, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) == 0 &&
        !S_ISREG(st.st_mode))
        return flags & O_EXCL ? path_err(err, EEXIST, path) : refuse_type(st.st_mode, path, err);
    /* O_NONBLOCK stays: a regular file does not know it, and a file of procfs that would wait for
     * ever says EAGAIN instead. */
    fd = openat(dirfd, name, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, (mode_t) 0666);
    if (fd < 0 && errno == ENXIO) /* a FIFO without a reader, or a socket */
        return path_fail(err, ERR_NOT_FILE, path, "not a regular file");
    if (fd < 0)
        return path_err(err, errno, path);
    if (fstat(fd, &st) < 0)
        return path_err(err, errno, path);
    if (!S_ISREG(st.st_mode))
        return refuse_type(st.st_mode, path, err);
    return take_fd(&fd);
}

/* Whether the file says that it has a whole frame's bytes from here on. */
static bool has_frame(int fd)
{
    off_t at = lseek(fd, 0, SEEK_CUR);
    struct stat st;

    return at >= 0 && fstat(fd, &st) == 0 && st.st_size >= at + (off_t) FRAME_DATA_MAX;
}

static int read_to_caller(struct worker *w, int fd, const char *path, struct err *err)
{
    uint64_t left = w->request->length ? w->request->length : UINT64_MAX;

    /* To the end of what read gives, not of st_size: that is 0 for files of procfs. */
    while (left > 0) {
        size_t want = left < FRAME_DATA_MAX ? (size_t) left : FRAME_DATA_MAX;
        ssize_t n;

        if (want == FRAME_DATA_MAX && has_frame(fd)) {
            if (answer_data_from(w, fd, want, err) < 0)
                return -1;
            left -= want;
            continue;
        }
        n = read(fd, answer_data_room(), want);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return path_err(err, errno, path);
        if (n == 0)
            break;
        if (answer_data(w, (size_t) n, err) < 0)
            return -1;
        left -= (uint64_t) n;
    }
    return 0;
}

int file_read(struct worker *w, struct err *err)
{
    char path[PATH_TEXT_MAX];
    auto_close int fd = -1;
    struct agent_reply reply = { 0 };
    uint64_t offset = w->request->offset;
    struct stat st;
    bool beyond;

    if (path_resolve(w->user->home, w->request->path, path, err) < 0)
        return -1;
    fd = file_open_regular(AT_FDCWD, path, O_RDONLY, path, err);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return path_err(err, errno, path);
    /* An offset that no file can have is past the end of this one. */
    beyond = offset > INT64_MAX || (offset > 0 && lseek(fd, (off_t) offset, SEEK_SET) < 0);
    entry_fill(&reply, path, &st);
    if (answer_record(w, FRAME_REPLY, &reply, err) < 0)
        return -1;
    if (!beyond && read_to_caller(w, fd, path, err) < 0)
        return -1;
    return answer_data_end(w, err);
}

static int write_stream(struct worker *w, struct place *place, struct err *err)
{
    struct agent_reply ready = { 0 }, reply = { 0 };
    struct stat st;
    uint64_t bytes;

    if (answer_record(w, FRAME_REPLY, &ready, err) < 0)
        return -1;
    if (receive_file(w, place->fd, place->path, &bytes, err) < 0)
        return -1;
    if (place_finish(place, &st, err) < 0)
        return -1;
    entry_fill(&reply, place->path, &st);
    return answer_record(w, FRAME_END, &reply, err);
}

/* What was another user's becomes the user's when root's rights were lent for this; attributes as asked for. */
static int own_and_mark(struct worker *w, struct place *place, struct err *err)
{
    if (w->lent && fchown(place->fd, w->user->uid, w->user->gid) < 0)
        return path_err(err, errno, place->path);
    if (w->request->name)
        return xattr_replace(place->fd, place->path, w->request->name, &w->request->attrs, err);
    return 0;
}

int file_write(struct worker *w, struct err *err)
{
    const struct agent_request *r = w->request;
    struct place place = PLACE_INIT;
    size_t len = strlen(r->path);
    int rc;

    if (r->path[len - 1] == '/')
        return path_fail(err, ERR_IS_DIR, r->path, "a file cannot end with '/'");
    if ((r->flags & AGENT_ATOMIC) && (r->flags & AGENT_APPEND))
        return err_set(err, ERR_INVALID, "write: atomic and append exclude each other");
    if (path_resolve(w->user->home, r->path, place.path, err) < 0)
        return -1;
    if (path_is_special(place.path))
        return path_err(err, EISDIR, place.path);
    if ((r->flags & AGENT_PARENTS) && path_parents(place.path, err) < 0)
        return -1;
    if (place_open(&place, r->flags, r->mode, err) < 0)
        return -1;
    rc = own_and_mark(w, &place, err);
    if (rc == 0)
        rc = write_stream(w, &place, err);
    place_done(&place);
    return rc;
}

int file_mkdir(struct worker *w, struct err *err)
{
    const struct agent_request *r = w->request;
    char path[PATH_TEXT_MAX];
    struct stat st;

    if (path_resolve(w->user->home, r->path, path, err) < 0)
        return -1;
    if ((r->flags & AGENT_PARENTS) && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return file_reply_entry(w, path, AGENT_EXISTED, 0, err);
    if ((r->flags & AGENT_PARENTS) && path_parents(path, err) < 0)
        return -1;
    if (mkdir(path, 0777) < 0) {
        int why = errno;

        /* Another process may have made it between the look and the call. */
        if (why == EEXIST && (r->flags & AGENT_PARENTS) && stat(path, &st) == 0 &&
            S_ISDIR(st.st_mode))
            return file_reply_entry(w, path, AGENT_EXISTED, 0, err);
        return path_err(err, why, path);
    }
    /* Not as mkdir's argument: the mode asked for is the mode it has, whatever the umask. */
    if ((r->mode & AGENT_MODE_SET) && chmod(path, r->mode & 07777) < 0)
        return path_err(err, errno, path);
    return file_reply_entry(w, path, 0, 0, err);
}
