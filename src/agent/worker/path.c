#include "agent/worker/path.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Room for the longest reason behind a path in struct err. */
#define SHOWN_MAX 150

/* Appends the parts of `text` to the absolute path at out, but for "" and ".". */
static int append_parts(char out[PATH_TEXT_MAX], size_t *used, const char *text, struct err *err)
{
    while (*text) {
        size_t len = strcspn(text, "/");

        if (len > 0 && !(len == 1 && text[0] == '.')) {
            if (*used + len + 2 > PATH_TEXT_MAX)
                return err_set(err, ERR_INVALID, "path: longer than %u bytes", PATH_TEXT_MAX);
            out[(*used)++] = '/';
            memcpy(out + *used, text, len);
            *used += len;
        }
        text += len + (text[len] == '/');
    }
    return 0;
}

int path_resolve(const char *home, const char *text, char out[PATH_TEXT_MAX], struct err *err)
{
    size_t used = 0;

    if (text[0] != '/' && append_parts(out, &used, home, err) < 0)
        return -1;
    if (text[0] == '~' && (text[1] == '/' || text[1] == '\0'))
        text++;
    if (append_parts(out, &used, text, err) < 0)
        return -1;
    if (used == 0)
        out[used++] = '/';
    out[used] = '\0';
    return 0;
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool path_is_special(const char *path)
{
    const char *base = path_base(path);

    return base[0] == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0;
}

int path_open_parent(const char *path, struct err *err)
{
    char dir[PATH_TEXT_MAX];
    size_t len = (size_t) (path_base(path) - path);
    int fd;

    memcpy(dir, path, len);
    while (len > 1 && dir[len - 1] == '/')
        len--;
    dir[len] = '\0';
    fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return path_err(err, errno, dir);
    return fd;
}

int path_parents(const char *path, struct err *err)
{
    char dir[PATH_TEXT_MAX];
    size_t len = strlen(path);
    struct stat st;

    if (len >= sizeof dir)
        return path_err(err, ENAMETOOLONG, path);
    memcpy(dir, path, len + 1);
    for (char *at = strchr(dir + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        /* Looked at first: mkdir of a directory on a read-only file system is EROFS, not EEXIST. */
        if (stat(dir, &st) < 0) {
            if (errno != ENOENT)
                return path_err(err, errno, dir);
            if (mkdir(dir, 0777) < 0 && errno != EEXIST)
                return path_err(err, errno, dir);
        } else if (!S_ISDIR(st.st_mode)) {
            return path_err(err, ENOTDIR, dir);
        }
        *at = '/';
    }
    return 0;
}

int path_fail(struct err *err, enum err_kind kind, const char *path, const char *reason)
{
    size_t len = strlen(path);

    if (len > SHOWN_MAX)
        return err_set(err, kind, "...%s: %s", path + len - SHOWN_MAX, reason);
    return err_set(err, kind, "%s: %s", path, reason);
}

int path_err(struct err *err, int errnum, const char *path)
{
    enum err_kind kind = err_kind_of_errno(errnum);

    return path_fail(err, kind, path,
                     kind == ERR_DISK_FULL ? "the disk is full" : strerror(errnum));
}
