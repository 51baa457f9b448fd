#include "keeper/disk.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "keeper/disk_maker.h"
#include "keeper/mountfd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define POOL_PAUSE_MS  1000
#define MAKER_PAUSE_MS 50

enum keeper_disk disk_kind(const struct limits *limits)
{
    return limits->disk_bytes <= limits->memory_bytes / 2 ? DISK_MEMORY : DISK_IMAGE;
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
        disk_maker_run(pair[1], disks->host_mnt_fd, disks->dir_fd);
    }
    (void) close(pair[1]);
    disks->sock = take_fd(&ours);
    disks->maker = pid;
    disks->pool_asked = 0;
    return 0;
}

int disks_start(struct disks *disks, int state_fd, struct err *err)
{
    *disks = (struct disks){ .sock = -1, .host_mnt_fd = -1, .dir_fd = -1 };
    if (mkdirat(state_fd, "disks", 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make disks");
    disks->dir_fd = openat(state_fd, "disks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    disks->host_mnt_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (disks->dir_fd < 0 || disks->host_mnt_fd < 0)
        return err_sys(err, errno, "open disks");
    return start_maker(disks, err);
}

void disks_stop(struct disks *disks)
{
    own_close(&disks->sock); /* the maker sees the end and goes */
    if (disks->maker > 0)
        (void) waitpid(disks->maker, NULL, 0);
    while (disks->pool_count > 0)
        (void) close(disks->pool[--disks->pool_count]);
    own_close(&disks->dir_fd);
    own_close(&disks->host_mnt_fd);
}

static int place_order(struct disks *disks, const struct limits *limits, uint32_t tag,
                       struct err *err)
{
    struct disk_order order = { .bytes = limits->disk_bytes,
                                .inodes = limits->disk_inodes,
                                .tag = tag };

    if (disks->sock < 0)
        return err_set(err, ERR_UNAVAILABLE, "there is no disk maker");
    if (send(disks->sock, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t) sizeof order)
        return err_sys(err, errno, "order a disk");
    return 0;
}

void disks_refill(struct disks *disks)
{
    struct limits preset;
    struct err err;

    if (disks->pool_count + disks->pool_asked >= DISK_POOL || io_now_ms() < disks->pool_pause_ms)
        return;
    limits_preset(&preset);
    while (disks->pool_count + disks->pool_asked < DISK_POOL) {
        if (place_order(disks, &preset, 0, &err) < 0) {
            log_line(LOG_WARNING, "pool of disks stays short: %s", err.msg);
            disks->pool_pause_ms = io_now_ms() + POOL_PAUSE_MS;
            return;
        }
        disks->pool_asked++;
    }
}

int disks_take(struct disks *disks, const struct limits *limits, uint32_t tag, int *ret_mount_fd,
               struct err *err)
{
    struct limits preset;

    limits_preset(&preset);
    if (disks->pool_count > 0 && limits->disk_bytes == preset.disk_bytes &&
        limits->disk_inodes == preset.disk_inodes) {
        *ret_mount_fd = disks->pool[--disks->pool_count];
        return 1;
    }
    return place_order(disks, limits, tag, err);
}

/* Killed at any point it leaves nothing, so it need not be asked to go. */
static void drop_maker(struct disks *disks)
{
    if (disks->maker <= 0)
        return;
    (void) kill(disks->maker, SIGKILL);
    (void) waitpid(disks->maker, NULL, 0);
    disks->maker = 0;
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

int disks_receive(struct disks *disks, uint32_t *ret_tag, int *ret_mount_fd, struct err *ret_why,
                  struct err *err)
{
    struct disk_answer answer;
    int fd = -1;
    size_t fds = 0;
    ssize_t n = io_recv_fds(disks->sock, &answer, sizeof answer, &fd, 1, &fds);

    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n != (ssize_t) sizeof answer) {
        own_close(&fd);
        own_close(&disks->sock);
        drop_maker(disks);
        log_line(LOG_WARNING, "the disk maker is gone");
        return err_set(err, ERR_UNAVAILABLE, "the disk maker is gone");
    }
    if (!fds && answer.err.kind == ERR_NONE) /* the kernel drops what does not fit */
        err_sys(&answer.err, EMFILE, "receive an image disk");
    if (answer.tag != 0) {
        *ret_tag = answer.tag;
        *ret_mount_fd = fds ? fd : -1;
        *ret_why = answer.err;
        return 1;
    }
    disks->pool_asked -= disks->pool_asked > 0;
    if (fds && disks->pool_count < DISK_POOL)
        disks->pool[disks->pool_count++] = fd;
    else
        own_close(&fd);
    if (!fds) {
        log_line(LOG_WARNING, "no image disk for the pool: %s", answer.err.msg);
        disks->pool_pause_ms = io_now_ms() + POOL_PAUSE_MS;
    }
    return 0;
}
