#include "agent/core/halt.h"

#include "base/io.h"
#include "base/own.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 5000
#define MOMENT_NS   200000

/* In the order in which they were stopped. */
static struct {
    pid_t *pid;
    size_t count, room;
} halted;

struct seen {
    pid_t pid, parent;
    char state;
    bool ours; /* we stopped it */
};

static struct {
    struct seen *at;
    size_t count, room;
} seen;

static bool grow(void **list, size_t count, size_t *room, size_t each)
{
    size_t more = *room ? *room * 2 : 64;
    void *grown;

    if (count < *room)
        return true;
    grown = realloc(*list, more * each);
    if (!grown)
        return false;
    *list = grown;
    *room = more;
    return true;
}

/* "pid (name) state parent …", and a name may have any sign in it. */
static bool read_stat(const char *pid, struct seen *ret)
{
    char path[32], text[256];
    const char *at;
    auto_close int fd = -1;
    ssize_t n;
    int parent;

    (void) snprintf(path, sizeof path, "/proc/%.12s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    at = strrchr(text, ')');
    if (!at || sscanf(at, ") %c %d", &ret->state, &parent) != 2)
        return false;
    ret->pid = (pid_t) strtol(pid, NULL, 10);
    ret->parent = parent;
    return true;
}

static bool is_halted(pid_t pid)
{
    for (size_t i = 0; i < halted.count; i++)
        if (halted.pid[i] == pid)
            return true;
    return false;
}

static int look(struct err *err)
{
    auto_dir DIR *dir = opendir("/proc");
    const struct dirent *entry;

    seen.count = 0;
    if (!dir)
        return err_sys(err, errno, "open /proc");
    while ((entry = readdir(dir))) {
        struct seen one;

        if (!isdigit((unsigned char) entry->d_name[0]) || strcmp(entry->d_name, "1") == 0 ||
            !read_stat(entry->d_name, &one))
            continue;
        one.ours = is_halted(one.pid);
        if (!grow((void **) &seen.at, seen.count, &seen.room, sizeof *seen.at))
            return err_set(err, ERR_INTERNAL, "no memory for the list of processes");
        seen.at[seen.count++] = one;
    }
    return 0;
}

/* One that waits for a child of vfork, or has only threads left, stops without saying so. */
static bool is_still(const struct seen *one)
{
    return one->state == 'T' || one->state == 't' || one->state == 'X' ||
           (one->ours && (one->state == 'D' || one->state == 'Z'));
}

static bool parent_is_still(const struct seen *one)
{
    for (size_t i = 0; i < seen.count; i++)
        if (seen.at[i].pid == one->parent)
            return is_still(&seen.at[i]);
    return true; /* the agent */
}

/* How many run still; -1: error. */
static int stop_some(struct err *err)
{
    int running = 0;

    if (look(err) < 0)
        return -1;
    for (size_t i = 0; i < seen.count; i++) {
        const struct seen *one = &seen.at[i];

        if (is_still(one))
            continue;
        running++;
        if (!parent_is_still(one))
            continue;
        if (!one->ours) {
            if (!grow((void **) &halted.pid, halted.count, &halted.room, sizeof *halted.pid))
                return err_set(err, ERR_INTERNAL, "no memory for the list of processes");
            halted.pid[halted.count++] = one->pid;
        }
        (void) kill(one->pid, SIGSTOP);
    }
    return running;
}

int halt_stop(struct err *err)
{
    const struct timespec moment = { .tv_nsec = MOMENT_NS };
    uint64_t until = io_now_ms() + PATIENCE_MS;
    int quiet = 0;

    while (quiet < 2) { /* one that was begun while we looked is found by the second look */
        int running = stop_some(err);

        if (running > 0 && io_now_ms() > until)
            running = err_set(err, ERR_UNAVAILABLE, "%d processes do not stop", running);
        if (running < 0) {
            halt_go();
            return -1;
        }
        quiet = running == 0 ? quiet + 1 : 0;
        if (running > 0)
            (void) nanosleep(&moment, NULL);
    }
    return 0;
}

void halt_go(void)
{
    while (halted.count > 0)
        (void) kill(halted.pid[--halted.count], SIGCONT);
}
