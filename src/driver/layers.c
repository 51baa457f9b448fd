#include "driver/layers.h"

#include "base/own.h"
#include "disk/disk_maker.h"
#include "jail/home.h"
#include "jail/mountfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(LAYERS_PLACES == HOME_LAYERS, "a place for each layer");

static void place_path(char path[24], const struct host *host, const struct layer_mount *layer)
{
    (void) snprintf(path, 24, "/layers/%zu", (size_t) (layer - host->layers));
}

static void let_go(struct host *host, struct layer_mount *layer)
{
    char path[24];

    place_path(path, host, layer);
    (void) umount2(path, MNT_DETACH);
    own_close(&layer->file_fd);
    *layer = (struct layer_mount){ .file_fd = -1 };
}

/* A free place, or that of the one which was not used for longest. */
static struct layer_mount *place_for(struct host *host)
{
    struct layer_mount *oldest = &host->layers[0];

    for (size_t i = 0; i < LAYERS_PLACES; i++)
        if (host->layers[i].used < oldest->used)
            oldest = &host->layers[i];
    if (oldest->inode)
        let_go(host, oldest);
    return oldest;
}

static int mount_source(int fd, struct err *err)
{
    char source[32];

    (void) snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
    return mountfd_new("erofs", (const char *const[]){ "source", source, "ro", "", NULL },
                       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

/* The device clears itself with the mount. */
static int mount_by_loop(const struct host *host, int file_fd, struct err *err)
{
    auto_close int control = openat(host->dev_fd, "loop-control", O_RDWR | O_CLOEXEC), loop = -1;

    if (control < 0)
        return err_sys(err, errno, "open loop-control");
    loop = disk_maker_loop(host->dev_fd, control, file_fd, true, err);
    return loop < 0 ? -1 : mount_source(loop, err);
}

static bool kernel_knows(void)
{
    auto_close int fs = (int) syscall(__NR_fsopen, "erofs", FSOPEN_CLOEXEC);

    return fs >= 0 || errno != ENODEV;
}

/* Linux mounts a file itself since 6.12; before, and where that is not built in, by a loop device. */
static int mount_file(const struct host *host, int file_fd, struct err *err)
{
    int fd;

    if (!kernel_knows())
        return err_set(err, ERR_UNSUPPORTED,
                       "this kernel has no EROFS, which templates from images need");
    fd = host->layers_by_loop ? -1 : mount_source(file_fd, err);
    return fd < 0 ? mount_by_loop(host, file_fd, err) : fd;
}

static int add_layer(struct host *host, int file_fd, const struct stat *st,
                     struct layer_mount **ret, struct err *err)
{
    struct layer_mount *layer = place_for(host);
    auto_close int mount = mount_file(host, file_fd, err), own = -1;
    char path[24];

    if (mount < 0)
        return -1;
    own = fcntl(file_fd, F_DUPFD_CLOEXEC, 3);
    place_path(path, host, layer);
    if (own < 0 || mountfd_attach(mount, AT_FDCWD, path) < 0)
        return err_sys(err, errno, "attach the image of a template");
    *layer = (struct layer_mount){ .device = (uint64_t) st->st_dev,
                                   .inode = (uint64_t) st->st_ino,
                                   .file_fd = take_fd(&own) };
    *ret = layer;
    return 0;
}

static struct layer_mount *find_layer(struct host *host, const struct stat *st)
{
    for (size_t i = 0; i < LAYERS_PLACES; i++)
        if (host->layers[i].inode == (uint64_t) st->st_ino &&
            host->layers[i].device == (uint64_t) st->st_dev)
            return &host->layers[i];
    return NULL;
}

/* The descriptor of a file becomes that of its mounted root. */
static int mount_one(struct host *host, int *file_fd, struct err *err)
{
    struct layer_mount *layer;
    struct stat st;
    char path[24];
    int fd;

    if (fstat(*file_fd, &st) < 0)
        return err_sys(err, errno, "look at the image of a template");
    layer = find_layer(host, &st);
    if (!layer && add_layer(host, *file_fd, &st, &layer, err) < 0)
        return -1;
    layer->used = ++host->layers_used;
    place_path(path, host, layer);
    /* By name: a worker sees its own copy of the keeper's mounts. */
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, errno, "open the image of a template");
    own_close(file_fd);
    *file_fd = fd;
    return 0;
}

int layers_mount(struct host *host, struct template *t, struct err *err)
{
    for (size_t i = 0; t->image && i < t->below_count; i++)
        if (mount_one(host, &t->below_fd[i], err) < 0)
            return -1;
    return t->image ? mount_one(host, &t->root_fd, err) : 0;
}

void layers_release(struct host *host)
{
    for (size_t i = 0; i < LAYERS_PLACES; i++) {
        struct stat st;

        if (host->layers[i].inode && fstat(host->layers[i].file_fd, &st) == 0 && st.st_nlink == 0)
            let_go(host, &host->layers[i]);
    }
}
