/* Three mounts become one. The template's tree is cloned, id-mapped so that its files, owned by 0…65535 on
 * disk, belong to the sandbox's ids, and read-only. The disk's upper/ takes the writes. The overlay
 * joins them.
 *
 * overlayfs works on its layers with the credentials of whoever mounts it, and on an id-mapped layer
 * host root is nobody: it cannot even make work/index. So the mount is made with the sandbox root's ids as
 * file system ids, with capabilities raised again, because setfsuid drops those about files.
 *
 * "volatile": no fsync reaches the disk, since the disk dies with the sandbox. "index" and
 * "nfs_export" give files handles that a checkpoint can store. */
#include "keeper/root.h"

#include "base/own.h"
#include "keeper/creds.h"
#include "keeper/mountfd.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>

static int mount_overlay(int lower_fd, int disk_fd, uint32_t uid_base, struct err *err)
{
    char lower[40], upper[40], work[40];
    int fd;

    (void) snprintf(lower, sizeof lower, "/proc/self/fd/%d", lower_fd);
    (void) snprintf(upper, sizeof upper, "/proc/self/fd/%d/upper", disk_fd);
    (void) snprintf(work, sizeof work, "/proc/self/fd/%d/work", disk_fd);
    creds_files(uid_base);
    fd = mountfd_new("overlay",
                     (const char *const[]){ "source", "cove", "lowerdir", lower, "upperdir", upper,
                                            "workdir", work, "index", "on", "nfs_export", "on",
                                            "volatile", "", NULL },
                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
    creds_files(0);
    return fd;
}

/* Until Linux 6.15 a layer must be attached somewhere in our own mount namespace: then they are, for as long as
 * the mount call takes. A mount that was attached and is no more cannot be attached again, so the
 * sandbox gets a clone of the disk's, behind the same descriptor. */
static int mount_overlay_staged(int lower_fd, int disk_fd, uint32_t uid_base, struct err *err)
{
    auto_close int clone = -1;
    int fd = -1;

    if (mountfd_attach(lower_fd, AT_FDCWD, "/stage/lower") < 0)
        return err_sys(err, errno, "stage the template");
    if (mountfd_attach(disk_fd, AT_FDCWD, "/stage/disk") < 0)
        err_sys(err, errno, "stage the disk");
    else
        fd = mount_overlay(lower_fd, disk_fd, uid_base, err);
    if (fd >= 0)
        clone = mountfd_clone(AT_FDCWD, "/stage/disk", 0);
    if (fd >= 0 && (clone < 0 || dup3(clone, disk_fd, O_CLOEXEC) < 0)) {
        err_sys(err, errno, "take the disk off the stage");
        own_close(&fd);
    }
    (void) umount2("/stage/disk", MNT_DETACH);
    (void) umount2("/stage/lower", MNT_DETACH);
    return fd;
}

static bool detached_works = true; /* learned once per run */

void root_stage_layers(void)
{
    detached_works = false;
}

int root_assemble(const struct template *t, int disk_fd, enum keeper_disk kind, int userns_fd,
                  uint32_t uid_base, int *ret_root_fd, struct err *err)
{
    auto_close int lower_fd = mountfd_clone(t->root_fd, "", AT_EMPTY_PATH);
    int fd = -1;

    if (lower_fd < 0)
        return err_sys(err, errno, "clone the template's tree");
    if (mountfd_set(lower_fd,
                    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_IDMAP,
                    (uint64_t) userns_fd) < 0)
        return err_sys(err, errno, "map the ids of the template");
    if (kind == DISK_IMAGE && mountfd_set(disk_fd, MOUNT_ATTR_IDMAP, (uint64_t) userns_fd) < 0)
        return err_sys(err, errno, "map the ids of the disk");
    if (detached_works) {
        fd = mount_overlay(lower_fd, disk_fd, uid_base, err);
        detached_works = fd >= 0 || err->kind != ERR_INVALID;
    }
    if (!detached_works)
        fd = mount_overlay_staged(lower_fd, disk_fd, uid_base, err);
    if (fd < 0)
        return -1;
    *ret_root_fd = fd;
    return 0;
}
