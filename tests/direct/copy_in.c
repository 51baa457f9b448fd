#include "base/own.h"
#include "direct/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Host to sandbox. The host's tree is walked by descriptors; the paths inside are the sandbox's own
 * business: its agent resolves them with the user's rights. */

static int write_from(struct copy *copy, int fd, const char *to, uint32_t mode, struct err *err)
{
    static const size_t piece = FRAME_DATA_MAX;
    auto_free char *data = malloc(piece);
    struct stream stream;
    ssize_t n;

    if (!data)
        return err_set(err, ERR_NO_MEMORY, "no memory for a copy");
    /* Whole or not at all: a copy that fails leaves the file that was there. */
    if (files_write_open(&copy->at, to, mode, AGENT_ATOMIC, &stream, err) < 0)
        return -1;
    while ((n = read(fd, data, piece)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || files_write_next(&stream, data, (size_t) n, err) < 0) {
            if (n < 0)
                (void) err_sys(err, errno, "read for %s", to);
            stream_close(&stream);
            return -1;
        }
        copy_progress(copy, (uint64_t) n, 0);
    }
    if (files_write_end(&stream, NULL, err) < 0) {
        stream_close(&stream);
        return -1;
    }
    stream_close(&stream);
    copy_progress(copy, 0, 1);
    return 0;
}

static int link_in(struct copy *copy, int dir_fd, const char *name, const char *to, struct err *err)
{
    char target[AGENT_PATH_MAX];
    ssize_t n = readlinkat(dir_fd, name, target, sizeof target - 1);

    if (n < 0)
        return err_sys(err, errno, "%s", name);
    target[n] = '\0';
    if (files_symlink(&copy->at, target, to, err) < 0)
        return err_wrap(err, "%s", to);
    copy_progress(copy, 0, 1);
    return 0;
}

static int entry_in(struct copy *copy, int dir_fd, const char *name, const char *to, unsigned depth,
                    struct err *err);

static int entries_in(struct copy *copy, DIR *dir, const char *to, unsigned depth, struct err *err)
{
    for (;;) {
        char path[AGENT_PATH_MAX];
        struct dirent *entry;

        errno = 0;
        entry = readdir(dir);
        if (!entry)
            return errno ? err_sys(err, errno, "list for %s", to) : 0;
        if (!copy_name_ok(entry->d_name))
            continue;
        if (copy_join(path, to, entry->d_name, err) < 0 ||
            entry_in(copy, dirfd(dir), entry->d_name, path, depth + 1, err) < 0)
            return -1;
    }
}

/* A directory that is there already is filled, as cp does; anything else in its place is not. */
static int make_dir(struct copy *copy, const char *to, uint32_t mode, bool *ret_existed,
                    struct err *err)
{
    struct file_info info;
    struct err why;

    if (files_mkdir(&copy->at, to, mode, 0, ret_existed, err) == 0)
        return 0;
    if (err->kind != ERR_EXISTS || files_stat(&copy->at, to, 0, &info, &why) < 0)
        return -1;
    if (info.type != ENTRY_DIR)
        return err_set(err, ERR_NOT_DIR, "%s: exists and is not a directory", to);
    *ret_existed = true;
    return 0;
}

static int dir_in(struct copy *copy, int fd, const char *to, uint32_t mode, unsigned depth,
                  struct err *err)
{
    auto_dir DIR *dir = NULL;
    bool existed;
    int again;

    if (depth > COPY_DEPTH_MAX)
        return err_set(err, ERR_TOO_BIG, "deeper than %d levels: %s", COPY_DEPTH_MAX, to);
    again = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    dir = again < 0 ? NULL : fdopendir(again);
    if (!dir)
        return err_sys(err, errno, "list for %s", to);
    /* Writable while it is filled, as on the host afterwards. */
    if (make_dir(copy, to, mode | 0700, &existed, err) < 0 ||
        entries_in(copy, dir, to, depth, err) < 0)
        return -1;
    if (existed || (mode & 0700) == 0700)
        return 0;
    return files_chmod(&copy->at, to, mode, 0, err);
}

static int entry_in(struct copy *copy, int dir_fd, const char *name, const char *to, unsigned depth,
                    struct err *err)
{
    auto_close int fd = -1;
    struct stat st;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "%s", name);
    if (S_ISLNK(st.st_mode))
        return link_in(copy, dir_fd, name, to, err);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        copy_skip(copy, name, "neither a file, a directory nor a link");
        return 0;
    }
    fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "%s", name);
    if (S_ISDIR(st.st_mode))
        return dir_in(copy, fd, to, st.st_mode & 0777, depth, err);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_NOT_FILE, "%s: it changed while it was copied", name);
    return write_from(copy, fd, to, st.st_mode & 0777, err);
}

int copy_in(struct copy *copy, const char *from, const char *to, struct err *err)
{
    return entry_in(copy, AT_FDCWD, from, to, 0, err);
}

int copy_in_stdin(struct copy *copy, const char *to, struct err *err)
{
    return write_from(copy, STDIN_FILENO, to, UINT32_MAX, err);
}
