/* A volume must be copied as it is at one moment. Three ways, the first that works:
 *
 *   a clone of the file (xfs, btrfs, bcachefs): at once, no sandbox waits. It is as after a power cut: what was synced is there, and the journal repairs the rest.
 *   no sandbox has the volume: a copy of the file, which must not have changed meanwhile.
 *   it is in use: its file system is frozen, and writes to it wait, while the file is copied within the host's disk. A guard process holds the
 *   freeze and ends it when the copy is done, when this process dies however it dies, and after hold_ms in any case.
 *
 * A freeze that outlived its guard (both were killed) is ended by the next backup. */
#include "base/io.h"
#include "base/own.h"
#include "cli/copy/backup_own.h"
#include "jail/mountfd.h"
#include "template/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define PIECE     (1u << 20)
#define TRIES     3

/* ---- the guard ---- */

/* The loop device that has this file, open; -1: none has. */
static int find_loop(const struct stat *image)
{
    auto_dir DIR *dir = opendir("/dev");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        auto_close int fd = -1;
        struct loop_info64 info;

        if (strncmp(entry->d_name, "loop", 4) != 0 || entry->d_name[4] < '0' ||
            entry->d_name[4] > '9')
            continue;
        fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == image->st_ino &&
            info.lo_device == image->st_dev)
            return take_fd(&fd);
    }
    return -1;
}

/* The root of the file system on that device, which is mounted already: the kernel gives the same one again. */
static int open_mounted(int loop, struct err *err)
{
    auto_close int mount_fd = -1;
    char source[32];

    (void) snprintf(source, sizeof source, "/proc/self/fd/%d", loop);
    mount_fd = mountfd_new("ext4",
                           (const char *const[]){ "source", source, "noinit_itable", "", "discard",
                                                  "", "errors", "remount-ro", NULL },
                           MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
    return mount_fd < 0 ? -1 : openat(mount_fd, ".", DIR_FLAGS);
}

/* EBUSY: frozen already, by a guard that was killed: backups of one state exclude each other. */
static int freeze(int root)
{
    if (ioctl(root, FIFREEZE, 0) == 0)
        return 0;
    return errno == EBUSY && ioctl(root, FITHAW, 0) == 0 ? ioctl(root, FIFREEZE, 0) : -1;
}

__attribute__((noreturn)) static void be_guard(int root, int go, int said, uint64_t hold_ms)
{
    int keep[] = { root, go, said };
    char byte = freeze(root) == 0 ? 'f' : '-';
    bool frozen = byte == 'f';

    (void) setsid();
    io_keep_only(keep, ARRAY_LEN(keep));
    IGNORE(write(said, &byte, 1) < 0);
    if (!frozen)
        _exit(1);
    /* The other end closes when the copy is done, or its process is gone. */
    frozen = !io_wait_until(go, POLLIN, io_now_ms() + hold_ms);
    (void) ioctl(root, FITHAW, 0);
    _exit(frozen ? 2 : 0);
}

struct guard {
    pid_t pid;
    int go; /* closed: the freeze ends */
};

static int guard_start(struct guard *guard, int root, uint64_t hold_ms, struct err *err)
{
    int go[2] = { -1, -1 }, said[2] = { -1, -1 };
    char byte = '-';

    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(said, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    guard->pid = fork();
    if (guard->pid == 0) {
        (void) close(go[1]);
        be_guard(root, go[0], said[1], hold_ms);
    }
    guard->go = go[1];
    (void) close(go[0]);
    (void) close(said[1]);
    if (guard->pid < 0 || io_read_all(said[0], &byte, 1) < 0 || byte != 'f') {
        own_close(&guard->go);
        if (guard->pid > 0)
            (void) waitpid(guard->pid, NULL, 0);
        err_set(err, ERR_UNAVAILABLE, "the volume's file system cannot be frozen");
    }
    (void) close(said[0]);
    return guard->go < 0 ? -1 : 0;
}

/* 1: it ended the freeze before the copy was done. */
static int guard_end(struct guard *guard)
{
    int status = 0;

    own_close(&guard->go);
    while (waitpid(guard->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* ---- still copies ---- */

static int copy_part(int from, int to, off_t at, off_t end, char *piece, struct err *err)
{
    while (at < end) {
        size_t want = end - at < (off_t) PIECE ? (size_t) (end - at) : PIECE;
        ssize_t n = pread(from, piece, want, at), put = 0;

        if (child_interrupted())
            return err_set(err, ERR_STATE, "interrupted");
        if (n <= 0)
            return err_sys(err, n < 0 ? errno : EIO, "read a volume");
        for (ssize_t w; put < n; put += w)
            if ((w = pwrite(to, piece + put, (size_t) (n - put), at + put)) < 0)
                return err_sys(err, errno, "copy a volume");
        at += n;
    }
    return 0;
}

static int copy_sparse(int from, int to, off_t size, struct err *err)
{
    auto_free char *piece = malloc(PIECE);

    if (!piece || ftruncate(to, size) < 0)
        return err_sys(err, errno, "copy a volume");
    for (off_t at = 0; at < size;) {
        off_t data = lseek(from, at, SEEK_DATA), end;

        if (data < 0 || data >= size)
            break;
        end = lseek(from, data, SEEK_HOLE);
        end = end < 0 || end > size ? size : end;
        if (copy_part(from, to, data, end, piece, err) < 0)
            return -1;
        at = end;
    }
    return 0;
}

/* 1: it took longer than it may. */
static int copy_frozen(struct backup *b, int loop, int from, int to, struct err *err)
{
    auto_close int root = open_mounted(loop, err);
    struct guard guard = { .pid = -1, .go = -1 };
    uint64_t began = io_now_ms();
    struct stat st;
    int r;

    if (root < 0 || guard_start(&guard, root, b->hold_ms, err) < 0)
        return -1;
    r = fstat(from, &st) < 0 ? err_sys(err, errno, "look at a volume")
                             : copy_sparse(from, to, st.st_size, err);
    if (r == 0 && io_now_ms() - began >= b->hold_ms)
        r = 1;
    return guard_end(&guard) && r == 0 ? 1 : r;
}

static bool is_unchanged(int fd, const struct stat *before)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           st.st_mtim.tv_nsec == before->st_mtim.tv_nsec && st.st_size == before->st_size &&
           st.st_blocks == before->st_blocks;
}

/* ---- one volume ---- */

static int take_still(struct backup *b, int fd, const char *id, struct err *err)
{
    char path[BACKUP_PATH_MAX];

    (void) snprintf(path, sizeof path, "volumes/%s.img", id);
    return backup_take_fd(b, fd, path, 0600, err);
}

/* 1: it was used meanwhile. */
static int take_idle(struct backup *b, int fd, const char *id, const struct stat *st,
                     struct err *err)
{
    auto_close int loop = -1;
    char path[BACKUP_PATH_MAX];
    int r = take_still(b, fd, id, err);

    if (r != 0)
        return r;
    loop = find_loop(st);
    if (loop < 0 && is_unchanged(fd, st))
        return 0;
    (void) snprintf(path, sizeof path, "volumes/%s.img", id);
    sink_drop(b->sink, path);
    backup_manifest_drop_file(&b->manifest, path);
    return 1;
}

static int take_frozen(struct backup *b, int dir_fd, int loop, int fd, const char *id,
                       struct err *err)
{
    auto_close int copy = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int r = copy < 0 ? err_sys(err, errno, "make a copy of a volume")
                     : copy_frozen(b, loop, fd, copy, err);

    if (r < 0 && child_interrupted())
        return -1;
    if (r != 0)
        backup_left_out(b, id,
                        r < 0 ? err->msg
                              : "its writers would have had to wait longer than --hold allows");
    return r != 0 ? 0 : take_still(b, copy, id, err);
}

/* 1: once more. */
static int try_volume(struct backup *b, int dir_fd, const char *file, const char *id,
                      struct err *err)
{
    auto_close int fd = openat(dir_fd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    auto_close int clone = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), loop = -1;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(err, errno, "open a volume");
    if (clone >= 0 && ioctl(clone, FICLONE, fd) == 0)
        return take_still(b, clone, id, err);
    loop = find_loop(&st);
    return loop < 0 ? take_idle(b, fd, id, &st, err) : take_frozen(b, dir_fd, loop, fd, id, err);
}

static int take_volume(struct backup *b, int dir_fd, const char *file, struct err *err)
{
    char id[VOLUME_ID_MAX];
    int r = 1;

    (void) snprintf(id, sizeof id, "%.*s", (int) VOLUME_ID_LEN, file);
    for (int i = 0; r == 1 && i < TRIES; i++)
        r = try_volume(b, dir_fd, file, id, err);
    if (r == 1)
        backup_left_out(b, id, "it was taken into use again and again while it was copied");
    return r < 0 ? -1 : 0;
}

/* ---- all of them ---- */

static bool is_volume(const char *name)
{
    char path[BACKUP_PATH_MAX];

    (void) snprintf(path, sizeof path, "volumes/%.100s", name);
    return backup_manifest_path_ok(path);
}

static DIR *open_volumes(const struct backup *b)
{
    int fd = openat(b->state_fd, "volumes", DIR_FLAGS);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir && fd >= 0)
        (void) close(fd);
    return dir;
}

int backup_volumes(struct backup *b, struct err *err)
{
    auto_dir DIR *dir = open_volumes(b);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (is_volume(entry->d_name) && take_volume(b, dirfd(dir), entry->d_name, err) < 0)
            return -1;
    return 0;
}

uint64_t backup_volumes_bytes(struct backup *b)
{
    auto_dir DIR *dir = open_volumes(b);
    const struct dirent *entry;
    uint64_t sum = 0;
    struct stat st;

    while (dir && (entry = readdir(dir)))
        if (is_volume(entry->d_name) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            sum += (uint64_t) st.st_blocks * 512;
    return sum;
}
