#include "driver/jail/unmount.h"

#include "base/io.h"
#include "base/own.h"
#include "disk/loop.h"
#include "driver/jail/jail.h"
#include "driver/worker.h"
#include "keeper/life.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define DYING_MS      600000 /* a bound; a sandbox that was killed is dead within two seconds */
#define MUCH_MEMORY   (64ull << 20)            /* less is taken apart in no time */
#define EXT4_SHUTDOWN _IOR('X', 125, uint32_t) /* EXT4_IOC_SHUTDOWN, which no header has */

static bool is_alive(int pidfd)
{
    return pidfd >= 0 && syscall(__NR_pidfd_send_signal, pidfd, 0, NULL, 0) == 0;
}

/* What a disk has in memory would be written, although the file goes as well: seconds, for a sandbox that wrote as much as it could. So the
 * file system forgets it; without a journal, that writes nothing. */
static void forget_writes(int fd)
{
    const uint32_t no_flush = 2; /* EXT4_GOING_FLAGS_NOLOGFLUSH */

    (void) ioctl(fd, EXT4_SHUTDOWN, &no_flush);
}

/* Where /dev/shm is a directory of the disk: no layers are below it. Before the signal: processes that end write, too. */
static void forget_through_shm(const struct sandbox *s)
{
    auto_close int fd = jail_open_disk(s->info.pid);

    if (fd >= 0 && is_alive(s->pid.fd)) /* or the number may be another process's by now */
        forget_writes(fd);
}

/* A disk over layers has no name of its own in the sandbox. Its device, mounted once more, is the same file system. */
static void forget_by_device(const struct keeper *k, uint64_t number)
{
    auto_close int image = -1, dev = -1, loop = -1, mount_fd = -1, root = -1;
    char name[DISK_FILE_NAME];
    struct stat st;
    struct err ignored;

    disk_file_name(number, name);
    image = openat(k->host->disks.dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (image < 0 || fstat(image, &st) < 0 || setns(k->host->disks.host_mnt_fd, CLONE_NEWNS) < 0)
        return;
    dev = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    loop = dev < 0 ? -1 : loop_find(dev, &st);
    mount_fd = loop < 0 ? -1 : disk_maker_mount(loop, false, &ignored);
    root = mount_fd < 0 ? -1 : openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0)
        forget_writes(root);
}

/* The namespace goes with our descriptor, at our end. */
static _Noreturn void hold(struct keeper *k, const struct sandbox *s, int namespace)
{
    struct pollfd dead = { .fd = s->pid.fd, .events = POLLIN };
    int keep[] = { s->pid.fd, namespace, k->host->disks.host_mnt_fd, k->host->disks.dir_fd };

    (void) prctl(PR_SET_NAME, "cove-unmount");
    io_keep_only(keep, ARRAY_LEN(keep));
    if (s->info.disk_kind == DISK_IMAGE && s->layers.count > 1)
        forget_by_device(k, s->layers.number[0]);
    (void) poll(&dead, 1, DYING_MS);
    _exit(0);
}

void unmount_apart(struct keeper *k, const struct sandbox *s)
{
    auto_close int namespace = -1;
    struct sandbox copy = *s; /* the table is not inherited */
    char path[40];

    if (cgroup_memory(&k->host->cgroups, s->cgroup) < MUCH_MEMORY)
        return;
    if (s->info.disk_kind == DISK_IMAGE && s->layers.count == 1 && s->layers.number[0])
        forget_through_shm(s);
    (void) snprintf(path, sizeof path, "/proc/%d/ns/mnt", s->info.pid);
    namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (namespace >= 0 && is_alive(s->pid.fd) && worker_fork_apart())
        hold(k, &copy, namespace);
}
