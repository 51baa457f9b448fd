#include "agent/core/halt.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A /proc of ours, in a mount namespace of ours, in which one process runs whatever it is sent. */
static bool make_proc(pid_t pid)
{
    char path[32], text[64];
    int fd, len;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/proc", "tmpfs", 0, NULL) < 0)
        return false;
    (void) snprintf(path, sizeof path, "/proc/%d", (int) pid);
    if (mkdir(path, 0755) < 0)
        return false;
    (void) snprintf(path, sizeof path, "/proc/%d/stat", (int) pid);
    len = snprintf(text, sizeof text, "%d (does not stop) R 1 0\n", (int) pid);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, (size_t) len) != len)
        return false;
    return close(fd) == 0;
}

static void of_processes_that_do_not_stop_the_number_is_told_and_all_continue(void)
{
    struct err err;
    int status = 0;
    pid_t pid;

    if (geteuid() != 0)
        return;
    pid = fork();
    if (pid == 0)
        for (;;)
            (void) pause();
    CHECK(pid > 0 && make_proc(pid));
    CHECK_INT(halt_stop(&err), -1);
    CHECK_INT(err.kind, ERR_UNAVAILABLE);
    CHECK_STR(err.msg, "1 processes do not stop");
    /* It was stopped again and again; what is left of that is that it runs. */
    CHECK_INT(waitpid(pid, &status, WCONTINUED), pid);
    CHECK(WIFCONTINUED(status));
    CHECK_INT(waitpid(pid, &status, WUNTRACED | WNOHANG), 0);
    (void) kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
    (void) umount2("/proc", MNT_DETACH);
}

CHECK_MAIN(T(of_processes_that_do_not_stop_the_number_is_told_and_all_continue))
