/* Three mounts, or more, become one. The template's tree is cloned, id-mapped so that its files, owned by 0…65535 on
 * disk, belong to the sandbox's ids, and read-only; of an image that is several files, each of them. The disk's upper/ takes the writes. A sandbox
 * that was made from an image has the disks of the image in between, read-only. The overlay joins them.
 *
 * overlayfs works on its layers with the credentials of the process that mounts it, and on an id-mapped layer
 * host root is `nobody`: it cannot even make work/index. So the mount is made with the sandbox root's ids as
 * file system ids, with capabilities raised again, because setfsuid drops those about files.
 *
 * "volatile": no fsync reaches the disk, which dies with the sandbox or is synced when that is saved. "index" and
 * "nfs_export" give files handles that a checkpoint can store. No redirects and no files of which only the attributes were
 * copied, whatever the host's default is: layers are merged one day (disk/merge.c). */
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

/* Disks below, the template, and what is below that. The kernel takes 255 bytes of names: so they are short ones, by a link of home.c. */
#define LOWER_COUNT (LAYERS_MAX + 1 + LAYERS_BELOW_MAX)
#define LOWER_EACH  20 /* /fd/12345/upper: */
#define LOWER_MAX   256
_Static_assert((LAYERS_MAX - 1) * LOWER_EACH + (1 + LAYERS_BELOW_MAX) * (LOWER_EACH - 6) <
                   LOWER_MAX,
               "all names fit");

/* The overlay's layers, as options: in the root, or in /dev/shm. */
struct stack {
    char lower[LOWER_MAX];
    char upper[40], work[40];
};

static void add_lower(struct stack *stack, int fd, const char *dir)
{
    size_t len = strlen(stack->lower);

    (void) snprintf(stack->lower + len, sizeof stack->lower - len, "%s/fd/%d%s", len ? ":" : "", fd,
                    dir);
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

/* Until Linux 6.15 a layer must be attached somewhere in our own mount namespace, both to be cloned and to be
 * part of an overlay. */
static bool detached_works = true; /* root_learn() */

void root_stage_layers(void)
{
    detached_works = false;
}

/* Asked with an empty file system: an overlay that is refused leaves a line in the kernel's log. */
int root_learn(struct err *err)
{
    auto_close int fd = -1, clone = -1;

    if (!detached_works)
        return 0;
    fd = mountfd_new("tmpfs", (const char *const[]){ "source", "cove", "size", "4k", NULL },
                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
    if (fd < 0)
        return -1;
    clone = mountfd_clone(fd, "", AT_EMPTY_PATH);
    detached_works = clone >= 0;
    return 0;
}

/* ---- the disks below ---- */

static void base_path(char path[24], size_t place)
{
    (void) snprintf(path, 24, "/bases/%zu", place);
}

int root_base_open(int mount_fd, size_t place, struct err *err)
{
    char path[24];

    base_path(path, place);
    if (!detached_works && mountfd_attach(mount_fd, AT_FDCWD, path) < 0)
        return err_sys(err, errno, "attach a layer");
    return 0;
}

void root_base_close(int *mount_fd, size_t place)
{
    char path[24];

    if (*mount_fd < 0)
        return;
    own_close(mount_fd);
    base_path(path, place);
    if (!detached_works)
        (void) umount2(path, MNT_DETACH);
}

int root_own_bases(int *base_fd, size_t count, struct err *err)
{
    int own[LAYERS_MAX];

    for (size_t i = 0; i < count; i++) {
        own[i] = mountfd_clone(base_fd[i], "", AT_EMPTY_PATH);
        if (own[i] >= 0)
            continue;
        err_sys(err, errno, "clone a layer");
        while (i-- > 0)
            own_close(&own[i]);
        return -1;
    }
    memcpy(base_fd, own, count * sizeof own[0]);
    return 0;
}

/* ---- the stage ---- */

/* Attaches all layers for as long as the mount calls take. A mount that was attached and is no more cannot be attached again,
 * so the sandbox gets a clone of the disk's, behind the same descriptor. */
#define STAGE_DISK LOWER_COUNT /* behind the places of those below */

static void stage_path(char path[24], size_t place)
{
    (void) snprintf(path, 24, "/stage/%zu", place);
}

static void stage_clear(size_t lower_count)
{
    char path[24];

    stage_path(path, STAGE_DISK);
    (void) umount2(path, MNT_DETACH);
    for (size_t i = 0; i < lower_count; i++) {
        stage_path(path, i);
        (void) umount2(path, MNT_DETACH);
    }
}

static int stage_set(const int *lower_fd, size_t lower_count, int disk_fd, struct err *err)
{
    char path[24];

    for (size_t i = 0; i < lower_count; i++) {
        stage_path(path, i);
        if (mountfd_attach(lower_fd[i], AT_FDCWD, path) < 0)
            return err_sys(err, errno, "stage a layer");
    }
    stage_path(path, STAGE_DISK);
    return mountfd_attach(disk_fd, AT_FDCWD, path) < 0 ? err_sys(err, errno, "stage the disk") : 0;
}

static int stage_take_disk(int disk_fd, struct err *err)
{
    auto_close int clone = -1;
    char path[24];

    stage_path(path, STAGE_DISK);
    clone = mountfd_clone(AT_FDCWD, path, 0);
    if (clone < 0 || dup3(clone, disk_fd, O_CLOEXEC) < 0)
        return err_sys(err, errno, "take the disk off the stage");
    return 0;
}

/* ---- layers ---- */

/* Layers below, their files belonging to the sandbox's ids, and read-only. */
static int map_lowers(const int *lower_fd, size_t count, int userns_fd, struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (mountfd_set(lower_fd[i],
                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_IDMAP,
                        (uint64_t) userns_fd) < 0)
            return err_sys(err, errno, "map the ids of a layer");
    return 0;
}

/* The template's own first, then what is below that, the lowest last. -1: there are no clones. */
static int clone_template(const struct template *t, int *ret_fd, struct err *err)
{
    for (size_t i = 0; i <= t->below_count; i++) {
        ret_fd[i] =
            mountfd_clone(i == 0 ? t->root_fd : t->below_fd[t->below_count - i], "", AT_EMPTY_PATH);
        if (ret_fd[i] >= 0)
            continue;
        err_sys(err, errno, "clone a layer");
        while (i-- > 0)
            own_close(&ret_fd[i]);
        return -1;
    }
    return 0;
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

/* The root, and /dev/shm where there is something below it. */
static int join_layers(const struct root_layers *layers, const int *lower_fd, size_t lower_count,
                       uint32_t uid_base, int *ret_root_fd, int *ret_shm_fd, struct err *err)
{
    struct stack stack = { .lower = "" };
    auto_close int fd = -1;

    for (size_t i = 0; i < lower_count; i++)
        add_lower(&stack, lower_fd[i], i < layers->base_count ? "/upper" : "");
    set_upper(&stack, layers->disk_fd, "upper", "work");
    fd = mount_overlay(&stack, false, uid_base, err);
    if (fd < 0)
        return -1;
    if (layers->base_count > 0) {
        *ret_shm_fd = join_shm(layers, lower_fd, uid_base, err);
        if (*ret_shm_fd < 0)
            return -1;
    }
    *ret_root_fd = take_fd(&fd);
    return 0;
}

static int join_layers_staged(const struct root_layers *layers, const int *lower_fd,
                              size_t lower_count, uint32_t uid_base, int *ret_root_fd,
                              int *ret_shm_fd, struct err *err)
{
    int rc = stage_set(lower_fd, lower_count, layers->disk_fd, err);

    if (rc == 0)
        rc = join_layers(layers, lower_fd, lower_count, uid_base, ret_root_fd, ret_shm_fd, err);
    if (rc == 0 && stage_take_disk(layers->disk_fd, err) < 0) {
        own_close(ret_root_fd);
        own_close(ret_shm_fd);
        rc = -1;
    }
    stage_clear(lower_count);
    return rc;
}

int root_assemble(const struct template *t, struct root_layers *layers, int userns_fd,
                  uint32_t uid_base, int *ret_root_fd, int *ret_shm_fd, struct err *err)
{
    int lower_fd[LOWER_COUNT];
    size_t count = layers->base_count + 1 + t->below_count;

    if (clone_template(t, layers->template_fd, err) < 0)
        return -1;
    layers->template_count = 1 + t->below_count;
    memcpy(lower_fd, layers->base_fd, layers->base_count * sizeof lower_fd[0]);
    memcpy(lower_fd + layers->base_count, layers->template_fd,
           layers->template_count * sizeof lower_fd[0]);
    if (layers->kind == DISK_IMAGE &&
        mountfd_set(layers->disk_fd, MOUNT_ATTR_IDMAP, (uint64_t) userns_fd) < 0)
        return err_sys(err, errno, "map the ids of the disk");
    if (map_lowers(lower_fd, count, userns_fd, err) < 0)
        return -1;
    return (detached_works ? join_layers : join_layers_staged)(layers, lower_fd, count, uid_base,
                                                               ret_root_fd, ret_shm_fd, err);
}

void root_close_template(struct root_layers *layers)
{
    while (layers->template_count > 0)
        own_close(&layers->template_fd[--layers->template_count]);
}
