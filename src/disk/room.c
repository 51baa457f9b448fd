/* Two looks. The cheap one is one statfs and one file of /proc: free bytes, and all that the whole host has in memory to be written. While
 * the first is much more than the second, there is nothing to fear. Else the file systems are asked, one by one, what each of them owes. */
#include "disk/room.h"

#include "base/io.h"
#include "base/lockdown.h"
#include "base/log.h"
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MiB          (UINT64_C(1) << 20)
#define BLOCK        4096u /* of all our file systems: DISK_MKFS */
#define SECTOR       512u
#define NEAR_BYTES   (4096 * MiB) /* memory is filled with 4 GiB of data in a second at most */
#define FAR_MS       1000
#define NEAR_MS      100
#define CALM_LOOKS   5 /* data on its way into a file is neither owed nor written for a moment */
#define EXT4_DIR     "/sys/fs/ext4"
#define DEVICES_DIR  "/sys/devices/virtual/block"
#define KERNEL_SHARE 50u   /* of its blocks, ext4 keeps so many for itself from the beginning … */
#define KERNEL_MOST  4096u /* … and never more */

uint64_t room_reserve(uint64_t total, uint64_t set)
{
    uint64_t reserve = total / 50, least = 64 * MiB < total / 10 ? 64 * MiB : total / 10;

    if (set)
        return set < total / 2 ? set : total / 2;
    return reserve < least ? least : reserve > 4096 * MiB ? 4096 * MiB : reserve;
}

bool room_is_full(bool was, uint64_t free, uint64_t owed, uint64_t reserve)
{
    uint64_t left = free > owed ? free - owed : 0;

    return left < reserve + (was ? reserve / 4 : 0);
}

/* ---- one look ---- */

struct room {
    int say;
    int disks_fd;
    uint64_t set;
    char homes[2][PATH_MAX]; /* of files that are ours */
    bool full;
    unsigned calm; /* looks in a row that found room again */
    bool helpless; /* told that the kernel does not let us */
};

static uint64_t read_number(const char *format, const char *device)
{
    char path[128], text[32];

    (void) snprintf(path, sizeof path, format, device);
    return io_read_text(AT_FDCWD, path, text, sizeof text) > 0 ? strtoull(text, NULL, 10) : 0;
}

/* The name of a file may be anything; nothing is opened by it. */
static bool is_ours(const struct room *r, const char *device)
{
    char path[128], file[PATH_MAX + 64];

    if (strncmp(device, "loop", 4) != 0)
        return false;
    (void) snprintf(path, sizeof path, DEVICES_DIR "/%.32s/loop/backing_file", device);
    if (io_read_text(AT_FDCWD, path, file, sizeof file) <= 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(r->homes); i++) {
        size_t len = strlen(r->homes[i]);

        if (strncmp(file, r->homes[i], len) == 0 && file[len] == '/')
            return true;
    }
    return false;
}

/* Every free block is the kernel's, or as many as ever. */
static int hold(const char *device, bool full)
{
    uint64_t blocks = read_number(DEVICES_DIR "/%.32s/size", device) * SECTOR / BLOCK;
    uint64_t kept = blocks / KERNEL_SHARE < KERNEL_MOST ? blocks / KERNEL_SHARE : KERNEL_MOST;
    char path[128], text[32];

    if (blocks == 0)
        return 0; /* gone meanwhile */
    if (full)
        kept = blocks - 1; /* more is refused */
    if (read_number(EXT4_DIR "/%.32s/reserved_clusters", device) == kept)
        return 0;
    (void) snprintf(path, sizeof path, EXT4_DIR "/%.32s/reserved_clusters", device);
    (void) snprintf(text, sizeof text, "%" PRIu64, kept);
    return io_write_text(AT_FDCWD, path, text) < 0 && errno != ENOENT ? -1 : 0;
}

/* What our file systems owe. change: and each is held, or let go. */
static uint64_t look_at_all(struct room *r, bool change, size_t *ret_count)
{
    auto_dir DIR *dir = opendir(EXT4_DIR);
    const struct dirent *entry;
    uint64_t owed = 0;

    *ret_count = 0;
    while (dir && (entry = readdir(dir))) {
        if (!is_ours(r, entry->d_name))
            continue;
        ++*ret_count;
        owed += BLOCK * read_number(EXT4_DIR "/%.32s/delayed_allocation_blocks", entry->d_name);
        if (change && hold(entry->d_name, r->full) < 0 && !r->helpless) {
            r->helpless = true;
            log_line(LOG_ERROR, "disks cannot be held back: %s of %s: %s", "reserved_clusters",
                     entry->d_name, strerror(errno));
        }
    }
    return owed;
}

/* An upper bound of what our file systems owe, and whatever else is to be written. */
static uint64_t dirty_bytes(void)
{
    static const char *const names[] = { "\nDirty:", "\nWriteback:" };
    char text[4096];
    uint64_t sum = 0;

    if (io_read_text(AT_FDCWD, "/proc/meminfo", text, sizeof text) <= 0)
        return UINT64_MAX;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *at = strstr(text, names[i]);

        if (at)
            sum += strtoull(at + strlen(names[i]), NULL, 10) * 1024;
    }
    return sum;
}

static void change(struct room *r, bool full, uint64_t free, uint64_t reserve)
{
    char word = full ? ROOM_FULL : ROOM_AGAIN;
    size_t count;

    r->full = full;
    (void) look_at_all(r, true, &count);
    if (full)
        log_line(LOG_WARNING,
                 "disk full: free=%" PRIu64 "M reserve=%" PRIu64
                 "M; writes in sandboxes get 'no space left' until there is room, disks=%zu",
                 free / MiB, reserve / MiB, count);
    else
        log_line(LOG_WARNING,
                 "disk has room again: free=%" PRIu64 "M reserve=%" PRIu64 "M disks=%zu",
                 free / MiB, reserve / MiB, count);
    IGNORE(write(r->say, &word, 1) < 0);
}

/* Returns how long it need not be done again, in ms. */
static int look(struct room *r)
{
    uint64_t free, reserve, dirty, owed;
    struct statfs fs;
    size_t count;
    bool full;

    if (fstatfs(r->disks_fd, &fs) < 0)
        return FAR_MS;
    free = (uint64_t) fs.f_bavail * (uint64_t) fs.f_bsize;
    reserve = room_reserve((uint64_t) fs.f_blocks * (uint64_t) fs.f_bsize, r->set);
    dirty = dirty_bytes();
    if (!r->full && !room_is_full(false, free, dirty, reserve))
        return free - dirty > reserve + NEAR_BYTES ? FAR_MS : NEAR_MS;
    owed = look_at_all(r, r->full, &count); /* also those that were mounted since */
    full = room_is_full(r->full, free, owed, reserve);
    r->calm = full ? 0 : r->calm + 1;
    if (full != r->full && (full || r->calm >= CALM_LOOKS))
        change(r, full, free, reserve);
    return NEAR_MS;
}

/* One before us may have held them. A disk that is full stays so: not for a moment may they write. */
static void begin(struct room *r)
{
    uint64_t free, reserve, owed;
    struct statfs fs;
    size_t count;

    if (fstatfs(r->disks_fd, &fs) < 0)
        return;
    free = (uint64_t) fs.f_bavail * (uint64_t) fs.f_bsize;
    reserve = room_reserve((uint64_t) fs.f_blocks * (uint64_t) fs.f_bsize, r->set);
    owed = look_at_all(r, false, &count);
    if (room_is_full(true, free, owed, reserve))
        change(r, true, free, reserve);
    else
        (void) look_at_all(r, true, &count);
}

/* ---- the process ---- */

/* clang-format off */
static const struct lockdown rights = {
    .program = "cove-room",
    .no_tcp = true,
    .alone = true,
    .rows = { &lockdown_runtime, &lockdown_bytes, &lockdown_names, &lockdown_data_only },
};
/* clang-format on */

static const struct lockdown_path paths[] = {
    { LOCKDOWN_CHANGE, -1, EXT4_DIR },
    { LOCKDOWN_READ, -1, DEVICES_DIR },
    { LOCKDOWN_READ, -1, "/proc/meminfo" },
};

static int find_home(int fd, char out[PATH_MAX])
{
    char link[40];
    ssize_t n;

    (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, out, PATH_MAX - 1);
    if (n < 0)
        return -1;
    out[n] = '\0';
    return 0;
}

static _Noreturn void run(int say, const struct disks *disks, uint64_t set)
{
    struct room r = { .say = say, .disks_fd = disks->dir_fd, .set = set };
    int keep[] = { say, disks->dir_fd, disks->volumes_fd, disks->host_mnt_fd };
    struct err err;

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void) prctl(PR_SET_NAME, "cove-room");
    (void) signal(SIGINT, SIG_IGN); /* Ctrl-C is the keeper's to act on */
    (void) setsid();
    io_keep_only(keep, ARRAY_LEN(keep));
    if (setns(disks->host_mnt_fd, CLONE_NEWNS) < 0 || find_home(disks->dir_fd, r.homes[0]) < 0 ||
        find_home(disks->volumes_fd, r.homes[1]) < 0)
        _exit(1);
    (void) close(disks->host_mnt_fd);
    (void) close(disks->volumes_fd);
    while (access(EXT4_DIR, F_OK) <
           0) /* no ext4 yet, so no disk of ours: the first one brings it */
        (void) poll(NULL, 0, FAR_MS);
    if (lockdown_enter(&rights, paths, ARRAY_LEN(paths), &err) < 0) {
        log_line(LOG_ERROR, "%s", err.msg);
        _exit(1);
    }
    begin(&r);
    for (;;)
        (void) poll(NULL, 0, look(&r));
}

int room_start(const struct disks *disks, uint64_t set, int *ret_fd, pid_t *ret_pid,
               struct err *err)
{
    auto_close int hear = -1, say = -1;
    int pair[2];
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(err, errno, "pipe");
    hear = pair[0];
    say = pair[1];
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "fork the watcher of the disk's room");
    if (pid == 0)
        run(say, disks, set);
    *ret_fd = take_fd(&hear);
    *ret_pid = pid;
    return 0;
}
