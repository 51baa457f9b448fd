/* Images are taken while others resume, delete, compress and merge them. None of that is locked out: a copy counts only if the
 * image's meta is the same afterwards, and again at the end of the backup. A meta names its disks and the hashes of its memory, so the
 * same meta is the same image. */
#include "base/io.h"
#include "base/own.h"
#include "cli/copy/backup_own.h"
#include "template/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <string.h>
#include <sys/stat.h>

#define TRIES     3
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int by_number(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) a, y = (uintptr_t) b;

    return x < y ? -1 : x > y;
}

static struct backup_image *find(const struct backup *b, const char *id)
{
    for (size_t i = 0; i < b->taken_count; i++)
        if (strcmp(b->taken[i].id, id) == 0)
            return &b->taken[i];
    return NULL;
}

/* 0, 1: there is none that can be read, and *err says why. */
static int read_meta(struct backup *b, const char *id, struct image_meta *ret,
                     unsigned char hash[SHA256_LEN], struct err *err)
{
    if (image_read(&b->images, id, ret, err) < 0)
        return 1;
    sha256_of(ret, sizeof *ret, hash);
    return 0;
}

static bool is_same(struct backup *b, const struct backup_image *image)
{
    unsigned char hash[SHA256_LEN];
    struct image_meta meta;
    struct err ignored;

    return read_meta(b, image->id, &meta, hash, &ignored) == 0 &&
           memcmp(hash, image->meta, sizeof hash) == 0;
}

/* ---- the files of one ---- */

static void disk_path(char out[64], uint64_t number)
{
    (void) snprintf(out, 64, "disks/d%016" PRIx64, number);
}

static int take_disks(struct backup *b, const struct layers *layers, struct err *err)
{
    for (uint32_t i = 0; i < layers->count && i < LAYERS_MAX; i++) {
        void *key = (void *) (uintptr_t) layers->number[i];
        char path[64];
        int r;

        if (layers->number[i] == 0 || tfind(key, &b->disks, by_number))
            continue;
        disk_path(path, layers->number[i]);
        r = backup_take(b, b->state_fd, path, path, err);
        if (r != 0)
            return r;
        if (!tsearch(key, &b->disks, by_number))
            return err_set(err, ERR_NO_MEMORY, "no memory for a list of disks");
    }
    return 0;
}

static int take_memory(struct backup *b, int dir_fd, const char *id, struct err *err)
{
    int fd = openat(dir_fd, "memory", DIR_FLAGS), r = 0;
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir && fd >= 0)
        (void) close(fd);
    while (dir && r == 0 && (entry = readdir(dir))) {
        char path[BACKUP_PATH_MAX];

        if (entry->d_name[0] == '.')
            continue;
        (void) snprintf(path, sizeof path, "images/%s/memory/%.64s", id, entry->d_name);
        r = backup_take(b, fd, entry->d_name, path, err);
    }
    return r;
}

/* 1: it changed, or went, while it was copied. */
static int take_files(struct backup *b, const struct backup_image *image,
                      const struct image_meta *meta, struct err *err)
{
    char path[BACKUP_PATH_MAX];
    auto_close int dir = openat(b->images.dir_fd, image->id, DIR_FLAGS);
    int r = dir < 0 ? 1 : take_memory(b, dir, image->id, err);

    if (r == 0)
        r = take_disks(b, &meta->layers, err);
    (void) snprintf(path, sizeof path, "images/%s/meta", image->id);
    if (r == 0)
        r = backup_take(b, dir, "meta", path, err);
    return r != 0 ? r : !is_same(b, image);
}

/* Its files are not to be restored. Disks below its own are others', too, and never change. */
static void drop(struct backup *b, const struct backup_image *image)
{
    char prefix[BACKUP_PATH_MAX], disk[64];

    (void) snprintf(prefix, sizeof prefix, "images/%s/", image->id);
    disk_path(disk, image->own_disk);
    for (size_t i = b->manifest.file_count; i-- > 0;) {
        const char *path = b->manifest.files[i].path;

        if (strncmp(path, prefix, strlen(prefix)) != 0 && strcmp(path, disk) != 0)
            continue;
        sink_drop(b->sink, path);
        b->manifest.files[i] = b->manifest.files[--b->manifest.file_count];
    }
    (void) tdelete((void *) (uintptr_t) image->own_disk, &b->disks, by_number);
}

/* ---- one image ---- */

static bool writes_to_volume(const struct image_meta *meta)
{
    for (size_t i = 0; i < VOLUMES_MAX; i++)
        if (meta->volumes[i].volume[0] && !(meta->volumes[i].flags & VOLUME_READ_ONLY))
            return true;
    return false;
}

static int add(struct backup *b, const struct backup_image *image, struct err *err)
{
    if (b->taken_count == b->taken_room) {
        size_t room = b->taken_room ? b->taken_room * 2 : 64;
        void *more = reallocarray(b->taken, room, sizeof *b->taken);

        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for a list of images");
        b->taken = more;
        b->taken_room = room;
    }
    b->taken[b->taken_count++] = *image;
    return 0;
}

/* 1: not this time. */
static int try_image(struct backup *b, const char *id, bool late, struct err *err)
{
    struct backup_image image = { .template_inode = 0 };
    struct image_meta meta;
    int r = read_meta(b, id, &meta, image.meta, err);

    if (r != 0)
        return r;
    if (late && meta.image.flags & KEEPER_IMAGE_PAUSED && writes_to_volume(&meta)) {
        backup_left_out(b, id, "it was paused while its volume was copied");
        return 0;
    }
    (void) snprintf(image.id, sizeof image.id, "%s", id);
    (void) snprintf(image.template, sizeof image.template, "%s", meta.image.sandbox.template);
    image.template_inode = meta.template_inode;
    if (meta.image.flags & KEEPER_IMAGE_PAUSED) /* of a snapshot, sandboxes may stand on it */
        image.own_disk = meta.layers.number[0];
    r = take_files(b, &image, &meta, err);
    if (r == 0)
        return add(b, &image, err);
    drop(b, &image);
    return r;
}

static int take_image(struct backup *b, const char *id, bool late, struct err *err)
{
    int r = 1;

    for (int i = 0; r == 1 && i < TRIES; i++) {
        if (faccessat(b->images.dir_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            return 0; /* resumed, or deleted */
        r = try_image(b, id, late, err);
    }
    if (r == 1 && faccessat(b->images.dir_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        backup_left_out(b, id, err->kind != ERR_NONE ? err->msg : "it changes all the time");
    return r < 0 ? -1 : 0;
}

static DIR *list(const struct backup *b)
{
    int fd = openat(b->images.dir_fd, ".", DIR_FLAGS);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir && fd >= 0)
        (void) close(fd);
    return dir;
}

int backup_images(struct backup *b, bool late, struct err *err)
{
    auto_dir DIR *dir = list(b);
    const struct dirent *entry;

    if (!dir)
        return err_sys(err, errno, "list the images");
    while ((entry = readdir(dir))) {
        if (!id_ok(entry->d_name) || find(b, entry->d_name))
            continue;
        *err = (struct err){ .kind = ERR_NONE };
        if (take_image(b, entry->d_name, late, err) < 0)
            return -1;
    }
    return 0;
}

int backup_images_check(struct backup *b, struct err *err)
{
    for (size_t i = b->taken_count; i-- > 0;) {
        if (child_interrupted())
            return err_set(err, ERR_STATE, "interrupted");
        if (is_same(b, &b->taken[i]))
            continue;
        drop(b, &b->taken[i]);
        b->taken[i] = b->taken[--b->taken_count];
    }
    return 0;
}

/* ---- sizes ---- */

static uint64_t bytes_of(int at, const char *path)
{
    struct stat st;

    return fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
               ? (uint64_t) st.st_blocks * 512
               : 0;
}

static uint64_t disk_bytes_of(struct backup *b, const struct layers *layers, void **seen)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < layers->count && i < LAYERS_MAX; i++) {
        void *key = (void *) (uintptr_t) layers->number[i];
        char path[64];

        disk_path(path, layers->number[i]);
        if (!key || tfind(key, seen, by_number) || !tsearch(key, seen, by_number))
            continue;
        sum += bytes_of(b->state_fd, path);
    }
    return sum;
}

static uint64_t memory_bytes_of(struct backup *b, const char *id)
{
    char path[64];
    uint64_t sum = 0;
    int fd;
    auto_dir DIR *dir = NULL;
    const struct dirent *entry;

    (void) snprintf(path, sizeof path, "%s/memory", id);
    fd = openat(b->images.dir_fd, path, DIR_FLAGS);
    dir = fd < 0 ? NULL : fdopendir(fd);
    while (dir && (entry = readdir(dir)))
        sum += bytes_of(fd, entry->d_name);
    return sum;
}

static void ignore_node(void *node)
{
    (void) node;
}

uint64_t backup_images_bytes(struct backup *b)
{
    auto_dir DIR *dir = list(b);
    const struct dirent *entry;
    uint64_t sum = 0;
    void *seen = NULL;

    while (dir && (entry = readdir(dir))) {
        unsigned char hash[SHA256_LEN];
        struct image_meta meta;
        struct err ignored;

        if (!id_ok(entry->d_name) || read_meta(b, entry->d_name, &meta, hash, &ignored) != 0)
            continue;
        sum += disk_bytes_of(b, &meta.layers, &seen) + memory_bytes_of(b, entry->d_name);
    }
    tdestroy(seen, ignore_node);
    return sum;
}
