#include "launch.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_MS 10

extern char **environ;

/* -1 with errno when the program cannot be started. */
static pid_t start(char *const *argv, const posix_spawnattr_t *attr, int stdout_fd, int stderr_fd)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    int rc;

    (void) posix_spawn_file_actions_init(&actions);
    (void) posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (stdout_fd >= 0)
        (void) posix_spawn_file_actions_adddup2(&actions, stdout_fd, 1);
    else
        (void) posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    (void) posix_spawn_file_actions_adddup2(&actions, stderr_fd, 2);
    rc = posix_spawnp(&pid, argv[0], &actions, attr, argv, environ);
    (void) posix_spawn_file_actions_destroy(&actions);
    if (rc == 0)
        return pid;
    errno = rc;
    return -1;
}

/* Readable within the limit? */
static int await(int fd, uint64_t begin_us)
{
    for (;;) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        uint64_t gone = (io_now_us() - begin_us) / 1000;
        int rc;

        if (gone >= LAUNCH_LIMIT_MS)
            return -1;
        rc = poll(&poll_fd, 1, (int) (LAUNCH_LIMIT_MS - gone));
        if (rc > 0)
            return 0;
        if (rc < 0 && errno != EINTR)
            return -1;
    }
}

/* Last line with something in it: that is where programs say why. */
static void last_line(int fd, char *out, size_t size)
{
    char text[4096];
    off_t end = lseek(fd, 0, SEEK_END);
    off_t from = end > (off_t) sizeof text - 1 ? end - (off_t) sizeof text + 1 : 0;
    ssize_t got = pread(fd, text, sizeof text - 1, from);
    char *line;

    out[0] = '\0';
    if (got <= 0)
        return;
    while (got > 0 && (text[got - 1] == '\n' || text[got - 1] == '\r' || text[got - 1] == ' '))
        got--;
    text[got] = '\0';
    line = strrchr(text, '\n');
    (void) snprintf(out, size, "%s", line ? line + 1 : text);
}

/* Waits for the child's end; kills it when it takes too long. */
static int finish(pid_t pid, uint64_t begin_us)
{
    auto_close int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
    bool late = pidfd >= 0 && await(pidfd, begin_us) < 0;
    int status = -1;

    if (late)
        (void) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return late ? -1 : status;
}

int launch_run(char *const *argv, enum launch_stdout out, struct launch_result *ret)
{
    auto_close int said = memfd_create("stderr", MFD_CLOEXEC);
    auto_close int from = -1;
    auto_close int to = -1;
    int pipes[2];
    uint64_t begin;
    pid_t pid;
    char byte;

    *ret = (struct launch_result){ .status = -1 };
    if (said < 0 || (out == LAUNCH_FIRST_BYTE && pipe2(pipes, O_CLOEXEC) < 0))
        return -1;
    if (out == LAUNCH_FIRST_BYTE) {
        from = pipes[0];
        to = pipes[1];
    }
    begin = io_now_us();
    pid = start(argv, NULL, to, said);
    if (pid < 0) {
        (void) snprintf(ret->said, sizeof ret->said, "%s: %s", argv[0], strerror(errno));
        return -1;
    }
    if (out == LAUNCH_FIRST_BYTE) {
        (void) close(take_fd(&to));
        if (await(from, begin) == 0 && read(from, &byte, 1) == 1)
            ret->first_us = io_now_us() - begin;
    }
    ret->status = finish(pid, begin);
    ret->total_us = io_now_us() - begin;
    last_line(said, ret->said, sizeof ret->said);
    return ret->status == 0 && (out == LAUNCH_NULL || ret->first_us) ? 0 : -1;
}

pid_t launch_background(char *const *argv, int stderr_fd)
{
    posix_spawnattr_t attr;
    pid_t pid;

    (void) posix_spawnattr_init(&attr);
    (void) posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    pid = start(argv, &attr, -1, stderr_fd);
    (void) posix_spawnattr_destroy(&attr);
    return pid;
}

void launch_end(pid_t pid)
{
    if (pid <= 0)
        return;
    (void) kill(pid, SIGTERM);
    (void) finish(pid, io_now_us());
}

void launch_settle(void)
{
    const char *text = getenv("BENCH_PAUSE");
    unsigned ms = text ? (unsigned) strtoul(text, NULL, 10) : PAUSE_MS;

    if (ms > 0)
        (void) usleep(ms * 1000);
}
