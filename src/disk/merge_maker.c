#include "disk/merge_maker.h"

#include "base/io.h"
#include "base/own.h"
#include "disk/merge.h"
#include "disk/rights.h"
#include "wire/layers.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define MiB    (1024u * 1024u)
#define LINKS  "links"
#define SPARE  50 /* one in so many blocks of the host's disk stays free, as for a create */
#define SLACK  (32u * MiB) /* of a file system, for itself */
#define SPARES 256         /* inodes; also of files that have more names than one can have here */

struct sizes {
    uint64_t bytes, inodes;
};

static_assert(LAYERS_MAX <= MERGE_MAX, "all layers of an image can be merged at once");

static int open_layer(const struct merge_place *p, uint64_t number, struct sizes *sizes,
                      struct err *err)
{
    auto_close int image = -1, loop = -1, fd = -1;
    char name[DISK_FILE_NAME];
    struct statfs fs;

    disk_file_name(number, name);
    image = openat(p->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (image < 0)
        return err_sys(err, errno, "open a layer");
    loop = disk_maker_loop(p->dev_fd, p->control_fd, image, true, err);
    if (loop < 0)
        return -1;
    fd = disk_maker_mount(loop, true, err);
    if (fd < 0)
        return -1;
    if (fstatfs(fd, &fs) < 0)
        return err_sys(err, errno, "measure a layer");
    sizes->bytes += (uint64_t) (fs.f_blocks - fs.f_bfree) * (uint64_t) fs.f_bsize;
    sizes->inodes += (uint64_t) (fs.f_files - fs.f_ffree);
    return take_fd(&fd);
}

/* The new one is a sparse file: what counts is what will be written to it. */
static int check_room(const struct merge_place *p, const struct sizes *sizes, struct err *err)
{
    struct statfs host;

    if (fstatfs(p->dir_fd, &host) < 0)
        return err_sys(err, errno, "measure the host's disk");
    if ((uint64_t) host.f_bavail * (uint64_t) host.f_bsize <
        sizes->bytes + (uint64_t) host.f_blocks / SPARE * (uint64_t) host.f_bsize)
        return err_set(err, ERR_DISK_FULL, "the host's disk has no room to merge layers");
    return 0;
}

static int open_new(const struct merge_place *p, uint64_t number, const struct sizes *sizes,
                    int *ret_image, struct err *err)
{
    uint64_t bytes = sizes->bytes + sizes->bytes / 8 + sizes->inodes * 512 + SLACK;
    uint64_t inodes = sizes->inodes + sizes->inodes / 64 + SPARES;
    auto_close int image = -1, loop = -1;
    char name[DISK_FILE_NAME];
    int fd;

    disk_file_name(number, name);
    image = disk_maker_format(p->dir_fd, name, bytes / MiB * MiB, inodes, err);
    if (image < 0)
        return -1;
    loop = disk_maker_loop(p->dev_fd, p->control_fd, image, false, err);
    fd = loop < 0 ? -1 : disk_maker_mount(loop, false, err);
    *ret_image = take_fd(&image);
    return fd;
}

/* "upper", or "shm": of every layer, into the new one. */
static int merge_part(const int *from, size_t count, int to, int links, const char *part,
                      struct err *err)
{
    auto_close int target = openat(to, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd[MERGE_MAX];
    int rc = target < 0 ? err_sys(err, errno, "open the new %s", part) : 0;

    for (size_t i = 0; i < count; i++) {
        fd[i] = openat(from[i], part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd[i] < 0 && rc == 0)
            rc = err_sys(err, errno, "open a layer's %s", part);
    }
    if (rc == 0)
        rc = merge_trees(fd, count, target, links, err);
    for (size_t i = 0; i < count; i++)
        own_close(&fd[i]);
    return rc;
}

static int drop_links(int disk_fd, struct err *err)
{
    int fd = openat(disk_fd, LINKS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && unlinkat(fd, entry->d_name, 0) < 0)
            return err_sys(err, errno, "remove a note");
    if (!dir || unlinkat(disk_fd, LINKS, AT_REMOVEDIR) < 0)
        return err_sys(err, errno, "remove the notes");
    return 0;
}

static int fill(const int *from, size_t count, int to, struct err *err)
{
    static const char *const parts[] = { "upper", "shm" };
    auto_close int root =
        openat(to, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* hears of errors from now on */

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        auto_close int links = -1;

        if (mkdirat(to, LINKS, 0700) < 0 ||
            (links = openat(to, LINKS, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
            return err_sys(err, errno, "make a place for notes");
        if (merge_part(from, count, to, links, parts[i], err) < 0 || drop_links(to, err) < 0)
            return -1;
    }
    /* A host that is full says so here. */
    return root < 0 || syncfs(root) < 0 ? err_sys(err, errno, "write the merged layers") : 0;
}

/* As deep as a directory may be, with one descriptor for each layer. */
static void many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int merge_maker_serve(const struct merge_place *p, const struct disk_order *order, struct err *err)
{
    size_t count = order->layers.count, opened = 0;
    int from[MERGE_MAX], to = -1, rc = -1;
    struct sizes sizes = { 0 };
    auto_close int image = -1;
    char name[DISK_FILE_NAME];

    if (count == 0 || count > LAYERS_MAX)
        return err_set(err, ERR_INTERNAL, "cannot merge %zu layers", count);
    many_files();
    for (; opened < count; opened++) {
        from[opened] = open_layer(p, order->layers.number[opened], &sizes, err);
        if (from[opened] < 0)
            break;
    }
    if (opened == count && check_room(p, &sizes, err) == 0) {
        to = open_new(p, order->number, &sizes, &image, err);
        if (to >= 0 && rights_of_merger(from, count, to, p->dir_fd, err) == 0)
            rc = fill(from, count, to, err);
    }
    for (size_t i = 0; i < opened; i++)
        own_close(&from[i]);
    own_close(&to); /* the last one of that file system: what it has goes to the file */
    /* All of the host's: the keeper wrote what speaks of this disk, and names it next. */
    if (rc == 0 && (fsync(image) < 0 || syncfs(p->dir_fd) < 0))
        rc = err_sys(err, errno, "save the merged layers");
    if (rc < 0) {
        disk_file_name(order->number, name);
        (void) unlinkat(p->dir_fd, name, 0);
        return err_wrap(err, "merge");
    }
    return 0;
}
