#include "cli/copy/restore_disk.h"

#include "base/own.h"
#include "jail/mountfd.h"
#include "template/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/loop.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

#define NOTE  "trusted.overlay.origin"
#define TRIES 64 /* for a free device that another program is faster to take */

/* A device that goes with its last user. */
static int bind_loop(int disk_fd, struct err *err)
{
    auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    struct loop_config config = { .fd = (unsigned) disk_fd, .info.lo_flags = LO_FLAGS_AUTOCLEAR };

    for (int i = 0; control >= 0 && i < TRIES; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE), fd;
        char path[32];

        (void) snprintf(path, sizeof path, "/dev/loop%d", number);
        fd = number < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            break;
        if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
            return fd;
        (void) close(fd);
        if (errno != EBUSY)
            break;
    }
    return err_sys(err, errno, "bind a disk to a loop device");
}

static int mount_disk(int disk_fd, struct err *err)
{
    auto_close int loop = bind_loop(disk_fd, err);
    char source[32];

    if (loop < 0)
        return -1;
    (void) snprintf(source, sizeof source, "/proc/self/fd/%d", loop);
    return mountfd_new("ext4", (const char *const[]){ "source", source, NULL },
                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
}

/* fts changes into each directory by itself, so that no path is too long and none is resolved from above. */
static int clear_notes(struct err *err)
{
    char *const paths[] = { (char *) "upper", NULL };
    FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_XDEV, NULL);
    FTSENT *entry;
    int failed = fts ? 0 : errno;

    while (fts && !failed && (entry = fts_read(fts))) {
        if (entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR)
            failed = entry->fts_errno;
        else if (entry->fts_info != FTS_DP && lremovexattr(entry->fts_accpath, NOTE) < 0 &&
                 errno != ENODATA && errno != EPERM) /* a link has none, and may have none */
            failed = errno;
        errno = 0;
    }
    if (fts)
        (void) fts_close(fts);
    return failed ? err_sys(err, failed, "prepare a sandbox's disk") : 0;
}

int restore_disk(int disk_fd, struct err *err)
{
    auto_close int mount_fd = mount_disk(disk_fd, err), root = -1, before = -1, work = -1;
    int r;

    if (mount_fd < 0)
        return -1;
    before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    root = openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    work = openat(root, "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (before < 0 || root < 0 || work < 0 || fchdir(root) < 0)
        return err_sys(err, errno, "open a sandbox's disk");
    r = clear_notes(err);
    /* Files by the handles of those below: the next mount makes an empty one. */
    if (r == 0)
        r = tree_remove(work, "index", err);
    if (fchdir(before) < 0 || (r == 0 && syncfs(root) < 0))
        return err_sys(err, errno, "save a sandbox's disk");
    return r;
}
