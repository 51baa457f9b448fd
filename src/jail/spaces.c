#include "jail/spaces.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "jail/mountfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOUNTS "sys/user/max_mnt_namespaces"

/* fanotify is no namespace, but no program inside needs it either: its calls are refused. */
static const char *const counts[] = {
    "sys/user/max_user_namespaces", "sys/user/max_pid_namespaces",
    "sys/user/max_net_namespaces",  "sys/user/max_ipc_namespaces",
    "sys/user/max_uts_namespaces",  "sys/user/max_cgroup_namespaces",
    "sys/user/max_time_namespaces", "sys/user/max_fanotify_groups",
};

#define GUEST_COUNT "32"

#define RETURN_TRIES 200
#define RETURN_US    1000

static int write_counts(int proc_fd, const char *text, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        if (io_write_text(proc_fd, counts[i], text) < 0 && errno != ENOENT) /* not in this kernel */
            return err_sys(err, errno, "write %s", counts[i]);
    return 0;
}

int spaces_bound(int proc_fd, struct err *err)
{
    if (write_counts(proc_fd, GUEST_COUNT, err) < 0)
        return -1;
    return io_write_text(proc_fd, MOUNTS, GUEST_COUNT) < 0 && errno != ENOENT
               ? err_sys(err, errno, "write " MOUNTS)
               : 0;
}

int spaces_forbid(int proc_fd, int *ret_mounts_fd, struct err *err)
{
    if (write_counts(proc_fd, "0", err) < 0)
        return -1;
    *ret_mounts_fd = openat(proc_fd, MOUNTS, O_WRONLY | O_CLOEXEC);
    if (*ret_mounts_fd < 0 && errno != ENOENT)
        return err_sys(err, errno, "open " MOUNTS);
    return 0;
}

int spaces_forbid_mounts(int *mounts_fd, struct err *err)
{
    int rc = 0;

    if (*mounts_fd >= 0 && write(*mounts_fd, "0", 1) != 1)
        rc = err_sys(err, errno, "write " MOUNTS);
    own_close(mounts_fd);
    return rc;
}

void spaces_return(int fd, int type, const char *name)
{
    /* It needs a little memory, which may be there in a moment. */
    for (int tries = 0; tries < RETURN_TRIES; tries++) {
        if (setns(fd, type) == 0)
            return;
        (void) usleep(RETURN_US);
    }
    log_line(LOG_ERROR, "cannot come back to our %s namespace: %s", name, strerror(errno));
    _exit(1);
}

/* Who enters a user namespace cannot come back. */
static int forbid_all(int pidfd, struct err *err)
{
    auto_close int proc = mountfd_proc(err);
    int fd = -1;

    if (proc < 0)
        return -1;
    if (setns(pidfd, CLONE_NEWUSER) < 0)
        return err_sys(err, errno, "enter the user namespace");
    return spaces_forbid(proc, &fd, err) < 0 ? -1 : spaces_forbid_mounts(&fd, err);
}

int spaces_forbid_in(int pidfd, struct err *err)
{
    struct err why = { .kind = ERR_NONE };
    auto_close int from = -1, to = -1;
    int pair[2], status = -1;
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    from = pair[0];
    to = pair[1];
    pid = fork();
    if (pid == 0) {
        (void) forbid_all(pidfd, &why);
        _exit(io_write_all(to, &why, sizeof why) < 0);
    }
    own_close(&to);
    if (pid < 0)
        return err_sys(err, errno, "fork");
    if (io_read_all(from, &why, sizeof why) < 0)
        err_set(&why, ERR_INTERNAL, "the process that limits namespaces died");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (why.kind == ERR_NONE)
        return 0;
    *err = why;
    return -1;
}
