#include "cli/api/contexts.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_NAME "servers.json"
#define FILE_MOST (1024 * 1024)

static int directory(char *out, size_t size, struct err *err)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = config && config[0] == '/' ? snprintf(out, size, "%s/cove", config)
            : home && home[0] == '/'   ? snprintf(out, size, "%s/.config/cove", home)
                                       : -1;

    return n > 0 && (size_t) n < size
               ? 0
               : err_set(err, ERR_UNAVAILABLE, "HOME is not set: no place for servers");
}

static json_t *empty(void)
{
    return json_pack("{s:n, s:{}}", "current", "servers");
}

static int check_file(int fd, const char *path, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(err, errno, "look at %s", path);
    if (!S_ISREG(st.st_mode) || (st.st_mode & 077) || st.st_uid != geteuid() ||
        st.st_size > FILE_MOST)
        return err_set(err, ERR_DENIED, "%s must be a file of yours with mode 0600: keys are in it",
                       path);
    return 0;
}

int contexts_read(json_t **ret, struct err *err)
{
    char dir[PATH_MAX], path[PATH_MAX + 32];
    auto_close int fd = -1;
    json_t *json;

    *ret = NULL;
    if (directory(dir, sizeof dir, err) < 0)
        return (*ret = empty()) ? 0 : -1;
    (void) snprintf(path, sizeof path, "%s/" FILE_NAME, dir);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return (*ret = empty()) ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for servers");
    if (fd < 0)
        return err_sys(err, errno, "read %s", path);
    if (check_file(fd, path, err) < 0)
        return -1;
    json = json_loadfd(fd, 0, NULL);
    if (!json_is_object(json) || !json_is_object(json_object_get(json, "servers"))) {
        json_decref(json);
        return err_set(err, ERR_INVALID, "%s is damaged; remove it and log in again", path);
    }
    *ret = json;
    return 0;
}

static int make_directory(char *dir, struct err *err)
{
    for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void) mkdir(dir, 0755);
        *slash = '/';
    }
    return mkdir(dir, 0700) < 0 && errno != EEXIST ? err_sys(err, errno, "make %s", dir) : 0;
}

/* Under another name first: a crash leaves the old file or the new one. */
int contexts_write(json_t *contexts, struct err *err)
{
    char dir[PATH_MAX], path[PATH_MAX + 32], fresh[PATH_MAX + 48];
    auto_free char *text = json_dumps(contexts, JSON_INDENT(2));
    auto_close int fd = -1;

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for servers");
    if (directory(dir, sizeof dir, err) < 0 || make_directory(dir, err) < 0)
        return -1;
    (void) snprintf(path, sizeof path, "%s/" FILE_NAME, dir);
    (void) snprintf(fresh, sizeof fresh, "%s/" FILE_NAME ".%ld", dir, (long) getpid());
    (void) unlink(fresh);
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || io_write_all(fd, text, strlen(text)) < 0 || io_write_all(fd, "\n", 1) < 0 ||
        fsync(fd) < 0 || rename(fresh, path) < 0) {
        err_sys(err, errno, "write %s", path);
        (void) unlink(fresh);
        return -1;
    }
    return 0;
}
