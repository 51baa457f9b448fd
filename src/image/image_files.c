/* What is in an image: files, and no more than that. */
#include "image/image_own.h"

#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define FULL (1u << 20) /* bytes that are free: fewer are none */

/* Nothing but files is there, one directory apart. */
int image_each_file(int dir_fd, const char *skip, image_file_fn *fn, void *arg, struct err *err)
{
    int own = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;
    struct stat st;

    if (!dir)
        return err_sys(err, errno, "list an image");
    while ((entry = readdir(dir))) {
        auto_close int fd = -1;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            (skip && strcmp(entry->d_name, skip) == 0))
            continue;
        fd = openat(own, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 && errno != ELOOP)
            return err_sys(err, errno, "open %s of an image", entry->d_name);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
            return err_set(err, ERR_DENIED, "an image contains something other than files");
        if (fn(fd, entry->d_name, arg, err) < 0)
            return -1;
    }
    return 0;
}

struct hashing {
    const struct images *images;
    enum image_part part;
    unsigned char sum[SHA256_LEN];
};

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static bool is_of(enum image_part part, const char *name)
{
    if (begins(name, "pages-"))
        return false;
    /* What is there instead of pages: compress.c compares it. */
    if (part == IMAGE_PARSED_BESIDE_PACK &&
        (strcmp(name, PACK_LIST) == 0 || strcmp(name, PACK_DATA) == 0))
        return false;
    return true;
}

/* Names are of one directory, and so differ: the codes of all of them can be joined in any order. */
int image_hash_join(const struct images *images, const char *name,
                    const unsigned char hash[SHA256_LEN], unsigned char sum[SHA256_LEN],
                    struct err *err)
{
    struct {
        char name[IMAGE_FILE_MAX];
        unsigned char hash[SHA256_LEN];
    } part = { .name = "" };
    unsigned char code[SHA256_LEN];

    if (strlen(name) >= sizeof part.name)
        return err_set(err, ERR_DENIED, "a file of the image has an invalid name");
    memcpy(part.name, name, strlen(name));
    memcpy(part.hash, hash, sizeof part.hash);
    sha256_hmac(images->key, IMAGE_KEY_LEN, &part, sizeof part, code);
    for (size_t i = 0; i < sizeof code; i++)
        sum[i] ^= code[i];
    return 0;
}

static int hash_file(int fd, const char *name, void *arg, struct err *err)
{
    struct hashing *h = arg;
    unsigned char result[SHA256_LEN];
    static char block[1 << 18];
    struct sha256 hash;
    ssize_t n;

    if (!is_of(h->part, name))
        return 0;
    sha256_init(&hash);
    while ((n = read(fd, block, sizeof block)) > 0)
        sha256_add(&hash, block, (size_t) n);
    if (n < 0)
        return err_sys(err, errno, "read %s of an image", name);
    sha256_done(&hash, result);
    return image_hash_join(h->images, name, result, h->sum, err);
}

int image_hash(const struct images *images, int memory_fd, enum image_part part,
               unsigned char ret[SHA256_LEN], struct err *err)
{
    struct hashing h = { .images = images, .part = part };

    if (image_each_file(memory_fd, NULL, hash_file, &h, err) < 0)
        return -1;
    memcpy(ret, h.sum, sizeof h.sum);
    return 0;
}

int image_hash_pages(const struct images *images, const struct chunks *chunks,
                     unsigned char ret[SHA256_LEN], struct err *err)
{
    unsigned char sum[SHA256_LEN] = { 0 }, tree[SHA256_LEN];

    for (uint32_t i = 0; i < chunks->files; i++) {
        chunks_tree_of(chunks, &chunks->file[i], tree);
        if (image_hash_join(images, chunks->file[i].name, tree, sum, err) < 0)
            return -1;
    }
    memcpy(ret, sum, sizeof sum);
    return 0;
}

bool image_disk_full(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && ((uint64_t) fs.f_bfree * (uint64_t) fs.f_bsize < FULL ||
                                     (fs.f_files > 0 && fs.f_ffree == 0));
}

static int begin_write(int fd, const char *name, void *arg, struct err *err)
{
    (void) name, (void) arg, (void) err;
    (void) sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    return 0;
}

static int end_write(int fd, const char *name, void *arg, struct err *err)
{
    (void) arg;
    return fdatasync(fd) < 0 ? err_sys(err, errno, "save %s of an image", name) : 0;
}

int image_sync(int dir_fd, struct err *err)
{
    auto_close int memory = openat(dir_fd, "memory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (memory < 0)
        return err_sys(err, errno, "open an image's memory");
    /* All are begun before the first is waited for. */
    if (image_each_file(memory, NULL, begin_write, NULL, err) < 0 ||
        image_each_file(memory, NULL, end_write, NULL, err) < 0 ||
        image_each_file(dir_fd, "memory", end_write, NULL, err) < 0)
        return -1;
    if (fsync(memory) < 0 || fsync(dir_fd) < 0)
        return err_sys(err, errno, "save an image");
    return 0;
}
