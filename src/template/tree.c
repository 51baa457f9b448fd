#include "template/tree.h"

#include "base/io.h"
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#define TREE_DEPTH_MAX 200 /* each level holds a descriptor */

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *open_dir(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !dir)
        (void) close(fd);
    return dir;
}

static int measure(int dir_fd, const char *name, unsigned depth, struct tree_size *size,
                   struct err *err)
{
    auto_dir DIR *dir = NULL;
    struct dirent *entry;
    struct stat st;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "look at %s", name);
    size->files++;
    size->bytes += (uint64_t) st.st_blocks * 512;
    if (!S_ISDIR(st.st_mode)) {
        if (st.st_nlink > 1)
            size->bytes -= (uint64_t) st.st_blocks * 512 / st.st_nlink * (st.st_nlink - 1);
        return 0;
    }
    if (depth == TREE_DEPTH_MAX)
        return err_set(err, ERR_TOO_BIG, "more than %d levels deep", TREE_DEPTH_MAX);
    dir = open_dir(dir_fd, name);
    if (!dir)
        return err_sys(err, errno, "open %s", name);
    while ((entry = readdir(dir)))
        if (!is_dots(entry->d_name) && measure(dirfd(dir), entry->d_name, depth + 1, size, err) < 0)
            return -1;
    return 0;
}

int tree_measure(int dir_fd, const char *name, struct tree_size *ret, struct err *err)
{
    struct tree_size size = { 0 };

    if (measure(dir_fd, name, 0, &size, err) < 0)
        return err_wrap(err, "measure %s", name);
    *ret = size;
    return 0;
}

static int remove_tree(int dir_fd, const char *name, unsigned depth, struct err *err)
{
    auto_dir DIR *dir = NULL;
    struct dirent *entry;

    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return err_sys(err, errno, "remove %s", name);
    if (depth == TREE_DEPTH_MAX)
        return err_set(err, ERR_TOO_BIG, "more than %d levels deep", TREE_DEPTH_MAX);
    dir = open_dir(dir_fd, name);
    if (!dir)
        return err_sys(err, errno, "open %s", name);
    while ((entry = readdir(dir)))
        if (!is_dots(entry->d_name) && remove_tree(dirfd(dir), entry->d_name, depth + 1, err) < 0)
            return -1;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
        return err_sys(err, errno, "remove %s", name);
    return 0;
}

int tree_remove(int dir_fd, const char *name, struct err *err)
{
    return remove_tree(dir_fd, name, 0, err);
}

static int create(int dir_fd, const char *name)
{
    return openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int set_owner(int fd, mode_t mode, uid_t uid)
{
    return fchown(fd, uid, uid) < 0 ? -1 : fchmod(fd, mode);
}

bool tree_holds(int dir_fd, const char *name, const char *text)
{
    auto_close int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    size_t len = strlen(text);
    auto_free char *have = malloc(len + 1);

    return fd >= 0 && have && pread(fd, have, len + 1, 0) == (ssize_t) len &&
           memcmp(have, text, len) == 0;
}

int tree_put(int dir_fd, const char *name, const void *data, size_t len, mode_t mode, uid_t uid,
             struct err *err)
{
    auto_close int fd = create(dir_fd, name);

    if (fd < 0 || io_write_all(fd, data, len) < 0 || set_owner(fd, mode, uid) < 0)
        return err_sys(err, errno, "write %s", name);
    return 0;
}

int tree_copy(int from_fd, int dir_fd, const char *name, mode_t mode, uint64_t most,
              struct err *err)
{
    auto_close int fd = create(dir_fd, name);
    uint64_t copied = 0;
    struct stat st;

    if (fd < 0)
        return err_sys(err, errno, "make %s", name);
    for (;;) {
        ssize_t n = sendfile(fd, from_fd, NULL, 1 << 20);

        if (n < 0)
            return err_sys(err, errno, "copy %s", name);
        if (n == 0)
            break;
        copied += (uint64_t) n;
        if (copied > most)
            return err_set(err, ERR_TOO_BIG, "copy %s: it grew past its limit", name);
    }
    if (set_owner(fd, mode, 0) < 0 || fstat(from_fd, &st) < 0 ||
        futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim }) < 0)
        return err_sys(err, errno, "copy %s", name);
    return 0;
}

int tree_mkdir(int dir_fd, const char *name, mode_t mode, uid_t uid, struct err *err)
{
    auto_close int fd = -1;

    if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make directory %s", name);
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || set_owner(fd, mode, uid) < 0)
        return err_sys(err, errno, "make directory %s", name);
    return 0;
}
