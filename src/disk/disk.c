#include "disk/disk.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "disk/disk_maker.h"
#include "jail/mountfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define POOL_PAUSE_MS  1000
#define MAKER_PAUSE_MS 50

enum keeper_disk disk_kind(const struct limits *limits, bool saved)
{
    return !saved && limits_disk_in_memory(limits) ? DISK_MEMORY : DISK_IMAGE;
}

static int make_dirs(int mount_fd, uint32_t uid_base, struct err *err)
{
    static const struct {
        const char *name;
        mode_t mode;
    } dirs[] = { { "upper", 0755 }, { "work", 0700 }, { "shm", 01777 } };

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(mount_fd, dirs[i].name, 0700) < 0 ||
            fchownat(mount_fd, dirs[i].name, uid_base, uid_base, AT_SYMLINK_NOFOLLOW) < 0 ||
            fchmodat(mount_fd, dirs[i].name, dirs[i].mode, 0) < 0)
            return err_sys(err, errno, "make %s", dirs[i].name);
    return 0;
}

int disk_make_memory(const struct limits *limits, uint32_t uid_base, int *ret_mount_fd,
                     struct err *err)
{
    char size[32], inodes[32], id[16];
    auto_close int mount_fd = -1;

    (void) snprintf(size, sizeof size, "%" PRIu64, limits->disk_bytes);
    (void) snprintf(inodes, sizeof inodes, "%" PRIu64, limits->disk_inodes);
    (void) snprintf(id, sizeof id, "%u", uid_base);
    mount_fd =
        mountfd_new("tmpfs",
                    (const char *const[]){ "source", "cove", "size", size, "nr_inodes", inodes,
                                           "mode", "0711", "uid", id, "gid", id, NULL },
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
    if (mount_fd < 0)
        return err_wrap(err, "memory disk");
    if (make_dirs(mount_fd, uid_base, err) < 0)
        return err_wrap(err, "memory disk");
    *ret_mount_fd = take_fd(&mount_fd);
    return 0;
}

/* The maker must not outlive the keeper, nor keep any of its descriptors. */
static int start_maker(struct disks *disks, struct err *err)
{
    auto_close int ours = -1;
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "socketpair");
    ours = pair[0];
    /* Our end only: the keeper never waits for it. */
    if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0) {
        (void) close(pair[1]);
        return err_sys(err, errno, "set up the disk maker's socket");
    }
    pid = fork();
    if (pid < 0) {
        (void) close(pair[1]);
        return err_sys(err, errno, "fork the disk maker");
    }
    if (pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) close(pair[0]);
        disk_maker_run(pair[1], disks->host_mnt_fd, disks->dir_fd, disks->volumes_fd);
    }
    (void) close(pair[1]);
    disks->sock = take_fd(&ours);
    disks->maker = pid;
    return 0;
}

int disks_start(struct disks *disks, int state_fd, struct err *err)
{
    *disks = (struct disks){ .sock = -1, .host_mnt_fd = -1, .dir_fd = -1, .volumes_fd = -1 };
    for (size_t i = 0; i < DISK_POOL; i++)
        disks->pool[i].mount_fd = -1;
    if (mkdirat(state_fd, "disks", 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make disks");
    if (mkdirat(state_fd, "volumes", 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make volumes");
    disks->dir_fd = openat(state_fd, "disks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    disks->host_mnt_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    disks->volumes_fd =
        openat(state_fd, "volumes", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (disks->dir_fd < 0 || disks->host_mnt_fd < 0 || disks->volumes_fd < 0)
        return err_sys(err, errno, "open disks");
    return start_maker(disks, err);
}

void disks_stop(struct disks *disks)
{
    own_close(&disks->sock); /* the maker sees the end and goes */
    if (disks->maker > 0)
        (void) waitpid(disks->maker, NULL, 0);
    for (size_t i = 0; i < DISK_POOL; i++) {
        own_close(&disks->pool[i].mount_fd);
        if (disks->pool[i].number)
            disks_remove(disks, disks->pool[i].number);
    }
    own_close(&disks->dir_fd);
    own_close(&disks->volumes_fd);
    own_close(&disks->host_mnt_fd);
}

int disks_order(struct disks *disks, const struct disk_order *order, struct err *err)
{
    if (disks->sock < 0)
        return err_set(err, ERR_UNAVAILABLE, "there is no disk maker");
    if (send(disks->sock, order, sizeof *order, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t) sizeof *order)
        return err_sys(err, errno, "order a disk");
    return 0;
}

int disk_new_number(uint64_t *ret, struct err *err)
{
    do { /* never one that was: records of the dead may still speak of it */
        if (getrandom(ret, sizeof *ret, 0) != sizeof *ret)
            return err_sys(err, errno, "find a number for a disk");
    } while (*ret == 0);
    return 0;
}

int disk_open_file(const struct disks *disks, uint64_t number, struct err *err)
{
    char name[DISK_FILE_NAME];
    int fd;

    disk_file_name(number, name);
    fd = openat(disks->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(err, errno, "open a disk") : fd;
}

int disk_sync(const struct disks *disks, uint64_t number, struct err *err)
{
    auto_close int fd = disk_open_file(disks, number, err);

    if (fd < 0)
        return -1;
    return fdatasync(fd) < 0 || fsync(disks->dir_fd) < 0 ? err_sys(err, errno, "save a disk") : 0;
}

static int order_new(struct disks *disks, const struct limits *limits, uint32_t tag,
                     uint64_t *ret_number, struct err *err)
{
    struct disk_order order = {
        .bytes = limits->disk_bytes, .inodes = limits->disk_inodes, .tag = tag, .job = DISK_NEW
    };

    if (disk_new_number(&order.number, err) < 0)
        return -1;
    if (disks_order(disks, &order, err) < 0)
        return -1;
    *ret_number = order.number;
    return 0;
}

void disks_refill(struct disks *disks)
{
    struct limits usual;
    struct err err;

    if (io_now_ms() < disks->pool_pause_ms)
        return;
    limits_default(&usual);
    for (uint32_t i = 0; i < DISK_POOL; i++) {
        if (disks->pool[i].number)
            continue;
        if (order_new(disks, &usual, i, &disks->pool[i].number, &err) < 0) {
            log_line(LOG_WARNING, "pool of disks stays short: %s", err.msg);
            disks->pool_pause_ms = io_now_ms() + POOL_PAUSE_MS;
            return;
        }
    }
}

int disks_take(struct disks *disks, const struct limits *limits, uint32_t tag, uint64_t *ret_number,
               int *ret_mount_fd, struct err *err)
{
    struct limits usual;

    limits_default(&usual);
    for (size_t i = 0; limits->disk_bytes == usual.disk_bytes &&
                       limits->disk_inodes == usual.disk_inodes && i < DISK_POOL;
         i++) {
        if (disks->pool[i].mount_fd < 0)
            continue;
        *ret_mount_fd = take_fd(&disks->pool[i].mount_fd);
        *ret_number = disks->pool[i].number;
        disks->pool[i].number = 0;
        return 1;
    }
    return order_new(disks, limits, tag, ret_number, err);
}

int disks_open(struct disks *disks, uint64_t number, bool base, uint32_t tag, struct err *err)
{
    struct disk_order order = { .number = number, .tag = tag, .job = base ? DISK_BASE : DISK_OLD };

    return disks_order(disks, &order, err);
}

uint64_t disk_bytes(const struct disks *disks, uint64_t number)
{
    char name[DISK_FILE_NAME];
    struct stat st;

    disk_file_name(number, name);
    return fstatat(disks->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0
               ? (uint64_t) st.st_blocks * 512u
               : 0;
}

void disks_remove(const struct disks *disks, uint64_t number)
{
    char name[DISK_FILE_NAME];

    disk_file_name(number, name);
    if (unlinkat(disks->dir_fd, name, 0) < 0 && errno != ENOENT)
        log_line(LOG_WARNING, "disk %s stays: %s", name, strerror(errno));
}

void disks_sweep(const struct disks *disks, bool (*used)(const void *arg, uint64_t number),
                 const void *arg)
{
    int fd = openat(disks->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        uint64_t number = 0;
        bool pooled = false;

        if (sscanf(entry->d_name, "d%16" SCNx64, &number) != 1)
            continue;
        for (size_t i = 0; i < DISK_POOL; i++)
            pooled = pooled || disks->pool[i].number == number;
        if (!pooled && !used(arg, number))
            disks_remove(disks, number);
    }
}

/* Killed at any point it leaves a file at most, so it need not be asked to go. */
static void drop_maker(struct disks *disks)
{
    if (disks->maker <= 0)
        return;
    (void) kill(disks->maker, SIGKILL);
    (void) waitpid(disks->maker, NULL, 0);
    disks->maker = 0;
    for (size_t i = 0; i < DISK_POOL; i++) { /* what it had on order will not come */
        if (disks->pool[i].number && disks->pool[i].mount_fd < 0) {
            disks_remove(disks, disks->pool[i].number);
            disks->pool[i].number = 0;
        }
    }
}

int disks_restart(struct disks *disks, struct err *err)
{
    if (io_now_ms() < disks->maker_pause_ms)
        return err_set(err, ERR_UNAVAILABLE, "there is no disk maker");
    drop_maker(disks); /* one that lost its socket to us */
    disks->maker_pause_ms = io_now_ms() + MAKER_PAUSE_MS;
    if (start_maker(disks, err) < 0) {
        log_line(LOG_ERROR, "no disk maker: %s", err->msg);
        return -1;
    }
    log_line(LOG_INFO, "another disk maker pid=%d", (int) disks->maker);
    return 0;
}

int disks_receive(struct disks *disks, struct disk_answer *ret, int *ret_mount_fd, struct err *err)
{
    int fd = -1;
    size_t fds = 0;
    ssize_t n = io_recv_fds(disks->sock, ret, sizeof *ret, &fd, 1, &fds);

    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n != (ssize_t) sizeof *ret) {
        own_close(&fd);
        own_close(&disks->sock);
        drop_maker(disks);
        log_line(LOG_WARNING, "the disk maker is gone");
        return err_set(err, ERR_UNAVAILABLE, "the disk maker is gone");
    }
    if (!fds && ret->err.kind == ERR_NONE &&
        disk_job_mounts(ret->job)) /* the kernel drops what does not fit */
        err_sys(&ret->err, EMFILE, "receive an image disk");
    if (ret->tag >= DISK_POOL) {
        *ret_mount_fd = fd;
        return 1;
    }
    disks->pool[ret->tag].mount_fd = fd;
    if (fd < 0) {
        log_line(LOG_WARNING, "no image disk for the pool: %s", ret->err.msg);
        disks_remove(disks, ret->number);
        disks->pool[ret->tag].number = 0;
        disks->pool_pause_ms = io_now_ms() + POOL_PAUSE_MS;
    }
    return 0;
}
