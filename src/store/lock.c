/* The lock is one of fcntl(): the kernel lets go when the process ends, however it ends, and no child inherits it. A process may take
 * it twice, and loses it when it closes either descriptor. */
#include "base/own.h"
#include "store/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int server_directory(const char *state, int *ret_fd, struct stat *ret, struct err *err)
{
    auto_close int dir = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC), server = -1;

    if (dir < 0)
        return err_sys(err, errno, "state directory %s", state);
    if (mkdirat(dir, "server", 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make %s/server", state);
    server = openat(dir, "server", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (server < 0 || fstat(server, ret) < 0)
        return err_sys(err, errno, "open %s/server", state);
    *ret_fd = take_fd(&server);
    return 0;
}

int server_hand_over(int fd, const struct stat *directory)
{
    return geteuid() == 0 && directory->st_uid != 0
               ? fchown(fd, directory->st_uid, directory->st_gid)
               : 0;
}

static int already_served(int fd, const char *state, struct err *err)
{
    char pid[32];
    ssize_t len = pread(fd, pid, sizeof pid - 1, 0);

    pid[len > 0 ? len : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    return err_set(err, ERR_STATE, "another coved (pid %s) already serves %s",
                   pid[0] ? pid : "unknown", state);
}

int store_lock(const char *state, int *ret_fd, struct err *err)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    auto_close int server = -1, fd = -1;
    struct stat st;
    char pid[32];
    int len;

    if (server_directory(state, &server, &st, err) < 0)
        return -1;
    fd = openat(server, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || server_hand_over(fd, &st) < 0)
        return err_sys(err, errno, "open %s/server/lock", state);
    if (fcntl(fd, F_SETLK, &whole) < 0)
        return errno == EAGAIN || errno == EACCES
                   ? already_served(fd, state, err)
                   : err_sys(err, errno, "lock %s/server/lock", state);
    len = snprintf(pid, sizeof pid, "%ld\n", (long) getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t) len, 0) != len)
        return err_sys(err, errno, "write %s/server/lock", state);
    *ret_fd = take_fd(&fd);
    return 0;
}
