/* <state>/images/<sandbox>.fill, read by those who wait for pages, or for the end of those who bring them. fill.c writes it. */
#include "image/fill.h"

#include "base/io.h"
#include "base/own.h"
#include "image/image_own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 60000

int fill_wait(const struct images *images, const char *id, struct err *err)
{
    const struct timespec moment = { .tv_nsec = 1000000 };
    uint64_t until = io_now_ms() + WAIT_MS;
    char name[NAME_ROOM], word;
    auto_close int fd = -1;

    (void) snprintf(name, sizeof name, "%s" FILL, id);
    fd = openat(images->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0) {
        if (io_now_ms() > until)
            return err_set(err, ERR_TIMEOUT, "its memory is still being brought back");
        (void) nanosleep(&moment, NULL);
    }
    if (fd >= 0 && read(fd, &word, 1) == 1)
        return err_set(err, ERR_UNAVAILABLE, "%s", FILL_LOST);
    if (fd >= 0)
        (void) unlinkat(images->dir_fd, name, 0);
    return 0;
}

/* Of a number in a note: the process may have ended, or the number have become another's. */
static int open_helper(int pid)
{
    static const char *const names[] = { "cove-hold\n", "cove-filler\n", "cove-pages\n" };
    auto_close int pidfd = pid > 0 ? (int) syscall(__NR_pidfd_open, pid, 0) : -1;
    char path[32], name[32];

    (void) snprintf(path, sizeof path, "/proc/%d/comm", pid);
    if (pidfd < 0 || poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, 0) != 0 ||
        io_read_text(AT_FDCWD, path, name, sizeof name) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return take_fd(&pidfd);
    return -1;
}

int fill_watch(const struct images *images, const char *id, bool *ret_lost)
{
    char name[NAME_ROOM], text[FILL_REASON_MAX + 1] = "";
    int pid[3] = { 0 }, helper = -1;
    auto_close int fd = -1;
    bool held;

    *ret_lost = false;
    (void) snprintf(name, sizeof name, "%s" FILL, id);
    fd = openat(images->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    held = flock(fd, LOCK_SH | LOCK_NB) < 0;
    if (read(fd, text, sizeof text - 1) < 0 || text[0] == '!')
        return -1; /* another process kills it */
    *ret_lost = !held && text[0];
    if (!held && !text[0])
        (void) unlinkat(images->dir_fd, name, 0);
    if (!held || sscanf(text, "%d %d %d", &pid[0], &pid[1], &pid[2]) < 2)
        return -1;
    for (size_t i = ARRAY_LEN(pid); helper < 0 && i > 0; i--)
        helper = open_helper(pid[i - 1]);
    return helper;
}

void fill_forget(const struct images *images, const char *id)
{
    char name[NAME_ROOM];

    (void) snprintf(name, sizeof name, "%s" FILL, id);
    (void) unlinkat(images->dir_fd, name, 0);
}

bool fill_reason(const struct images *images, const char *id, char ret[FILL_REASON_MAX])
{
    char name[NAME_ROOM], text[FILL_REASON_MAX + 1];

    (void) snprintf(name, sizeof name, "%s" FILL, id);
    if (io_read_text(images->dir_fd, name, text, sizeof text) < 1 || text[0] != '!')
        return false;
    (void) unlinkat(images->dir_fd, name, 0);
    (void) snprintf(ret, FILL_REASON_MAX, "%s", text + 1);
    return true;
}
