/* A volume is ext4 with a journal in a sparse file <id>.img. While it is made it is <id>.new, while it is removed
 * <id>.gone; neither is ever mounted for a sandbox, and both are swept away at the next start.
 *
 * What must always hold: an image has at most one loop device, because two would be two file systems that write over
 * each other. A process that wants the image locks the file (flock) before it is bound to a device. The device keeps that very
 * open file, and with it the lock, until the kernel takes the device apart behind the last mount. So the lock is
 * free if and only if no device has the image, whatever was killed when; who does not get it looks for the device, and
 * mounts that: the kernel gives the same file system again. Nothing of this is remembered anywhere, so there is nothing to
 * be wrong after a restart.
 *
 * The file system is always mounted for writing, and read-only is a property of each sandbox's own mount. Barriers are on,
 * and a flush of the file system is an fsync of the image. "discard": what is deleted inside
 * is given back to the host. */
#include "disk/volume_maker.h"

#include "base/io.h"
#include "base/own.h"
#include "disk/loop.h"
#include "jail/mountfd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define ATTACH_MS 10000 /* for a device that is being taken apart, or bound, by others */
#define LOOK_MS   2
#define NAME      (VOLUME_ID_MAX + 8)

static void file_name(char out[NAME], const char *volume, const char *ending)
{
    (void) snprintf(out, NAME, "%s%s", volume, ending);
}

/* The journal's share of a small volume is small; lazily: the file reads as zeros already. */
static const char *journal_option(uint64_t bytes)
{
    return bytes < 128 * VOLUME_MIB ? "size=4" : bytes < 2048 * VOLUME_MIB ? "size=16" : "size=64";
}

static int format(const char *file, const struct disk_order *order, struct err *err)
{
    char inodes[32];
    /* clang-format off */
    const char *const argv[] = { DISK_MKFS, "-N", inodes, "-O", "has_journal,^resize_inode", "-J", journal_option(order->bytes), "-E",
                                 "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0", file, NULL };
    /* clang-format on */

    (void) snprintf(inodes, sizeof inodes, "%" PRIu64, order->inodes);
    return disk_maker_mkfs(argv, err);
}

static int open_loop(const struct volume_place *p, const char *file, struct err *err)
{
    uint64_t until = io_now_ms() + ATTACH_MS;

    for (;;) {
        auto_close int image = openat(p->dir_fd, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;
        int loop;

        if (image < 0 && errno == ENOENT)
            return err_set(err, ERR_NO_VOLUME, "there is no such volume");
        if (image < 0 || fstat(image, &st) < 0)
            return err_sys(err, errno, "open the volume");
        if (flock(image, LOCK_EX | LOCK_NB) == 0)
            return disk_maker_loop(p->dev_fd, p->control_fd, image, false, err);
        if (errno != EWOULDBLOCK)
            return err_sys(err, errno, "lock the volume");
        loop = loop_find(p->dev_fd, &st);
        if (loop >= 0)
            return loop;
        if (io_now_ms() > until)
            return err_set(err, ERR_UNAVAILABLE, "the volume is in use");
        (void) poll(NULL, 0, LOOK_MS);
    }
}

static int attach(const struct volume_place *p, const char *file, struct err *err)
{
    auto_close int loop = open_loop(p, file, err);
    char source[32];

    if (loop < 0)
        return -1;
    (void) snprintf(source, sizeof source, "/proc/self/fd/%d", loop);
    return mountfd_new("ext4",
                       (const char *const[]){ "source", source, "noinit_itable", "", "discard", "",
                                              "errors", "remount-ro", NULL },
                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

/* A directory that every user of the sandbox can use: templates have users of different ids. */
static int furnish(const struct volume_place *p, const char *file, struct err *err)
{
    auto_close int mount_fd = attach(p, file, err), root = -1;

    if (mount_fd < 0)
        return -1;
    root = openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || (unlinkat(root, "lost+found", AT_REMOVEDIR) < 0 && errno != ENOENT) ||
        fchmod(root, 0777) < 0 || syncfs(root) < 0)
        return err_sys(err, errno, "write the volume's first files");
    return 0;
}

static int make(const struct volume_place *p, const struct disk_order *order, struct err *err)
{
    char fresh[NAME], final[NAME];
    auto_close int fd = -1;

    file_name(fresh, order->volume, ".new");
    file_name(final, order->volume, ".img");
    fd = openat(p->dir_fd, fresh, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, errno, "make the volume's file");
    if (ftruncate(fd, (off_t) order->bytes) < 0 || fchdir(p->dir_fd) < 0) {
        err_sys(err, errno, "size the volume");
        goto undo;
    }
    if (format(fresh, order, err) < 0 || furnish(p, fresh, err) < 0)
        goto undo;
    if (fsync(fd) < 0 ||
        syscall(__NR_renameat2, p->dir_fd, fresh, p->dir_fd, final, RENAME_NOREPLACE) < 0) {
        err_sys(err, errno, "save the volume");
        goto undo;
    }
    if (fsync(p->dir_fd) < 0)
        return err_sys(err, errno, "save the volume's name");
    return 0;

undo:
    (void) unlinkat(p->dir_fd, fresh, 0);
    return -1;
}

/* The keeper took its name away already; to free what it held can take a while. */
static int drop(const struct volume_place *p, const struct disk_order *order, struct err *err)
{
    char gone[NAME];

    file_name(gone, order->volume, ".gone");
    if ((unlinkat(p->dir_fd, gone, 0) < 0 && errno != ENOENT) || fsync(p->dir_fd) < 0)
        return err_sys(err, errno, "remove the volume");
    return 0;
}

int volume_maker_serve(const struct volume_place *p, const struct disk_order *order,
                       int *ret_mount_fd, struct err *err)
{
    char file[NAME];
    int rc = -1;

    switch ((enum disk_job) order->job) {
    case DISK_NEW:
    case DISK_OLD:
    case DISK_BASE:
    case DISK_MERGE:
        return err_set(err, ERR_INTERNAL, "not a job about a volume");
    case DISK_VOLUME_MAKE:
        rc = make(p, order, err);
        break;
    case DISK_VOLUME_DROP:
        rc = drop(p, order, err);
        break;
    case DISK_VOLUME_ATTACH:
        file_name(file, order->volume, ".img");
        *ret_mount_fd = attach(p, file, err);
        rc = *ret_mount_fd < 0 ? -1 : 0;
        break;
    }
    return rc < 0 ? err_wrap(err, "volume '%s'", order->volume) : 0;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t len = strlen(text), tail = strlen(ending);

    return len > tail && strcmp(text + len - tail, ending) == 0;
}

void volume_maker_sweep(const struct volume_place *p)
{
    int fd = openat(p->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (ends_with(entry->d_name, ".new") || ends_with(entry->d_name, ".gone"))
            (void) unlinkat(p->dir_fd, entry->d_name, 0);
}
