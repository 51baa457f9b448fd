/* Three mounts, or more, become one. The template's tree is cloned, id-mapped so that its files, owned by 0…65535 on
 * disk, belong to the sandbox's ids, and read-only. The disk's upper/ takes the writes. A sandbox
 * that was made from an image has the disks of the image in between, read-only. The overlay joins them.
 *
 * overlayfs works on its layers with the credentials of whoever mounts it, and on an id-mapped layer
 * host root is nobody: it cannot even make work/index. So the mount is made with the sandbox root's ids as
 * file system ids, with capabilities raised again, because setfsuid drops those about files.
 *
 * "volatile": no fsync reaches the disk, which dies with the sandbox or is synced when that is saved. "index" and
 * "nfs_export" give files handles that a checkpoint can store. No redirects and no files of which only the attributes were
 * copied, whatever the host's preset is: layers are merged one day (disk/merge.c). */
#include "jail/root.h"

#include "base/own.h"
#include "jail/creds.h"
#include "jail/mountfd.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define LOWER_MAX ((LAYERS_MAX + 1) * 40)

/* The overlay's layers, as options: in the root, or in /dev/shm. */
struct stack {
    char lower[LOWER_MAX];
    char upper[40], work[40];
};

static void add_lower(struct stack *stack, int fd, const char *dir)
{
    size_t len = strlen(stack->lower);

    (void) snprintf(stack->lower + len, sizeof stack->lower - len, "%s/proc/self/fd/%d%s",
                    len ? ":" : "", fd, dir);
}

static void set_upper(struct stack *stack, int fd, const char *upper, const char *work)
{
    (void) snprintf(stack->upper, sizeof stack->upper, "/proc/self/fd/%d/%s", fd, upper);
    (void) snprintf(stack->work, sizeof stack->work, "/proc/self/fd/%d/%s", fd, work);
}

/* kept: a flush of it is a flush of the disk. */
static int mount_overlay(const struct stack *stack, bool kept, uint32_t uid_base, struct err *err)
{
    int fd;

    creds_files(uid_base);
    fd = mountfd_new("overlay",
                     (const char *const[]){ "source", "cove", "lowerdir", stack->lower, "upperdir",
                                            stack->upper, "workdir", stack->work, "index", "on",
                                            "nfs_export", "on", "redirect_dir", "off", "metacopy",
                                            "off", kept ? NULL : "volatile", "", NULL },
                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
    creds_files(0);
    return fd;
}

/* Until Linux 6.15 a layer must be attached somewhere in our own mount namespace: then they are, for as long as
 * the mount call takes. A mount that was attached and is no more cannot be attached again, so the
 * sandbox gets a clone of the disk's, behind the same descriptor. */
static int mount_overlay_staged(const struct stack *stack, int lower_fd, int disk_fd,
                                uint32_t uid_base, struct err *err)
{
    auto_close int clone = -1;
    int fd = -1;

    if (mountfd_attach(lower_fd, AT_FDCWD, "/stage/lower") < 0)
        return err_sys(err, errno, "stage the template");
    if (mountfd_attach(disk_fd, AT_FDCWD, "/stage/disk") < 0)
        err_sys(err, errno, "stage the disk");
    else
        fd = mount_overlay(stack, false, uid_base, err);
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

/* A layer below, its files belonging to the sandbox's ids, and read-only. */
static int open_lower(int fd, int userns_fd, struct err *err)
{
    auto_close int lower = mountfd_clone(fd, "", AT_EMPTY_PATH);

    if (lower < 0)
        return err_sys(err, errno, "clone a layer");
    if (mountfd_set(lower,
                    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_IDMAP,
                    (uint64_t) userns_fd) < 0)
        return err_sys(err, errno, "map the ids of a layer");
    return take_fd(&lower);
}

/* Shared memory files of those below are seen, too: processes that were saved have them open. */
static int join_shm(const struct root_layers *layers, const int *lower_fd, uint32_t uid_base,
                    struct err *err)
{
    struct stack stack = { .lower = "" };
    int rc;

    for (size_t i = 0; i < layers->base_count; i++)
        add_lower(&stack, lower_fd[i], "/shm");
    set_upper(&stack, layers->disk_fd, "shm", "shm-work");
    creds_files(uid_base);
    rc = mkdirat(layers->disk_fd, "shm-work", 0700);
    creds_files(0);
    if (rc < 0 && errno != EEXIST)
        return err_sys(err, errno, "make shm-work");
    /* Not volatile: with the disk's own shm below this, here is the one place to flush the disk at. */
    return mount_overlay(&stack, true, uid_base, err);
}

static int join_layers(const struct template *t, const struct root_layers *layers, int userns_fd,
                       uint32_t uid_base, int *lower_fd, int *ret_root_fd, int *ret_shm_fd,
                       struct err *err)
{
    size_t count = layers->base_count;
    struct stack stack = { .lower = "" };
    auto_close int fd = -1;

    for (size_t i = 0; i <= count; i++) {
        lower_fd[i] = open_lower(i < count ? layers->base_fd[i] : t->root_fd, userns_fd, err);
        if (lower_fd[i] < 0)
            return -1;
        add_lower(&stack, lower_fd[i], i < count ? "/upper" : "");
    }
    set_upper(&stack, layers->disk_fd, "upper", "work");
    if (detached_works) {
        fd = mount_overlay(&stack, false, uid_base, err);
        detached_works = fd >= 0 || err->kind != ERR_INVALID;
    }
    if (!detached_works && count > 0)
        return err_set(err, ERR_UNSUPPORTED, "forks need Linux 6.15 or later");
    if (!detached_works)
        fd = mount_overlay_staged(&stack, lower_fd[0], layers->disk_fd, uid_base, err);
    if (fd < 0)
        return -1;
    if (count > 0) {
        *ret_shm_fd = join_shm(layers, lower_fd, uid_base, err);
        if (*ret_shm_fd < 0)
            return -1;
    }
    *ret_root_fd = take_fd(&fd);
    return 0;
}

int root_assemble(const struct template *t, const struct root_layers *layers, int userns_fd,
                  uint32_t uid_base, int *ret_root_fd, int *ret_shm_fd, struct err *err)
{
    int lower_fd[LAYERS_MAX + 1];
    int rc;

    for (size_t i = 0; i < ARRAY_LEN(lower_fd); i++)
        lower_fd[i] = -1;
    if (layers->kind == DISK_IMAGE &&
        mountfd_set(layers->disk_fd, MOUNT_ATTR_IDMAP, (uint64_t) userns_fd) < 0)
        return err_sys(err, errno, "map the ids of the disk");
    rc = join_layers(t, layers, userns_fd, uid_base, lower_fd, ret_root_fd, ret_shm_fd, err);
    for (size_t i = 0; i < ARRAY_LEN(lower_fd); i++)
        own_close(&lower_fd[i]);
    return rc;
}
