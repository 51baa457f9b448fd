#include "image/compress.h"

#include "base/io.h"
#include "base/own.h"
#include "image/image_own.h"
#include "jail/mountfd.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CHANGED "image '%s' was changed by another process"
#define LIST_MAX                                                                                   \
    (sizeof(struct pack_head) + PACK_FILES_MAX * sizeof(struct pack_file) +                        \
     PACK_CHUNKS_MAX * sizeof(struct pack_chunk))

/* ---- smaller ---- */

struct compressing {
    const struct images *images;
    int old_fd, new_fd; /* memory/ of both */
    struct pack_file file[PACK_FILES_MAX];
    int from[PACK_FILES_MAX];
    uint32_t files;
};

/* What criu parses is in both; of pages there is an empty file, for the plain ones to be attached over. */
static int take_file(int fd, const char *name, void *arg, struct err *err)
{
    struct compressing *c = arg;
    auto_close int empty = -1;
    struct stat st;

    if (strncmp(name, "pages-", 6) != 0)
        return linkat(c->old_fd, name, c->new_fd, name, 0) < 0
                   ? err_sys(err, errno, "link %s", name)
                   : 0;
    if (c->files == PACK_FILES_MAX || strlen(name) >= PACK_NAME_MAX)
        return err_set(err, ERR_TOO_BIG, "more than %d processes", PACK_FILES_MAX);
    empty = openat(c->new_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (empty < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "make %s", name);
    (void) strcpy(c->file[c->files].name, name);
    c->file[c->files].size = (uint64_t) st.st_size;
    c->from[c->files] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (c->from[c->files] < 0)
        return err_sys(err, errno, "open %s", name);
    c->files++;
    return 0;
}

/* The list is taken from the child, not from a file that may change before it is signed. */
static int close_pages(struct compressing *c, struct pack *pack, int to, struct err *err)
{
    size_t len = pack->head->chunks * sizeof *pack->chunk;
    struct err why;
    int pair[2], rc;
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    pid = pack_close_start(pack, c->from, to, pair[1], err);
    (void) close(pair[1]);
    rc = pid < 0 ? -1 : io_read_all(pair[0], pack->chunk, len);
    if (pid > 0 && rc < 0)
        err_sys(err, errno, "hear of chunks");
    (void) close(pair[0]);
    if (pid > 0 && pack_wait(pid, &why) < 0) { /* why it ended is why we heard no more */
        *err = why;
        rc = -1;
    }
    return rc;
}

static int hash_pages(const struct images *images, const struct pack *pack, int from,
                      unsigned char sum[SHA256_LEN], struct err *err)
{
    static char block[1 << 16];

    for (uint32_t i = 0; i < pack->head->files; i++) {
        unsigned char result[SHA256_LEN];
        struct chunk_tree tree;

        chunks_tree_init(&tree);
        for (uint64_t left = pack->file[i].size; left > 0;) {
            ssize_t n = read(from, block, left < sizeof block ? (size_t) left : sizeof block);

            if (n <= 0)
                return err_set(err, ERR_DENIED, "pages that were compressed do not open");
            chunks_tree_add(&tree, block, (size_t) n);
            left -= (uint64_t) n;
        }
        chunks_tree_done(&tree, result);
        if (image_hash_join(images, pack->file[i].name, result, sum, err) < 0)
            return -1;
    }
    return 0;
}

/* What was compressed is opened again before the plain pages go, and is to be what was signed. */
static int check_pages(const struct images *images, struct pack *pack, int packed,
                       const struct image_meta *meta, struct err *err)
{
    unsigned char sum[SHA256_LEN] = { 0 };
    struct err why;
    int pair[2], rc;
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    pid = pack_open_start(pack, packed, &pair[1], true, 0, 1, err);
    (void) close(pair[1]);
    rc = pid < 0 ? -1 : hash_pages(images, pack, pair[0], sum, err);
    (void) close(pair[0]);
    if (pid > 0 && pack_wait(pid, &why) < 0) {
        *err = why;
        rc = -1;
    }
    if (rc == 0 && !same_secret(sum, meta->pages, sizeof sum))
        return err_set(err, ERR_DENIED, CHANGED, meta->image.id);
    return rc;
}

static int write_pack(struct compressing *c, struct image_meta *meta, struct err *err)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    auto_close int data = openat(c->new_fd, PACK_DATA, flags, 0600);
    auto_close int list = openat(c->new_fd, PACK_LIST, flags, 0600);
    struct pack pack = { .data = NULL };
    unsigned char hash[SHA256_LEN];
    int rc = -1;

    if (data < 0 || list < 0)
        return err_sys(err, errno, "make the files of a compressed image");
    if (pack_new(c->file, c->files, &pack, err) == 0 && close_pages(c, &pack, data, err) == 0 &&
        check_pages(c->images, &pack, data, meta, err) == 0)
        rc = io_write_all(list, pack.data, pack.len) < 0 ? err_sys(err, errno, "write a list") : 0;
    if (rc == 0) {
        sha256_of(pack.data, pack.len, hash);
        memset(meta->pages, 0, sizeof meta->pages);
        rc = image_hash_join(c->images, PACK_LIST, hash, meta->pages, err);
    }
    free(pack.data);
    return rc;
}

/* As files on the host's disk, those that are linked, too. */
static int add_bytes(int fd, const char *name, void *arg, struct err *err)
{
    uint64_t *bytes = arg;
    struct stat st;

    (void) name;
    if (fstat(fd, &st) < 0)
        return err_sys(err, errno, "look at a file of an image");
    *bytes += (uint64_t) st.st_blocks * 512u;
    return 0;
}

static int finish(struct compressing *c, int old_dir, int new_dir, struct image_meta *meta,
                  struct err *err)
{
    uint64_t before = 0, after = 0;
    struct timespec times[2] = { { .tv_nsec = UTIME_NOW } };
    struct stat st;

    /* On disk before they are counted: blocks are given late. */
    if (image_sync(new_dir, err) < 0 ||
        image_each_file(c->old_fd, NULL, add_bytes, &before, err) < 0 ||
        image_each_file(c->new_fd, NULL, add_bytes, &after, err) < 0)
        return -1;
    meta->image.bytes -= before < meta->image.bytes ? before : meta->image.bytes;
    meta->image.bytes += after;
    meta->image.flags |= KEEPER_IMAGE_COMPRESSED;
    if (image_write_meta(c->images, new_dir, META, meta, err) < 0)
        return -1;
    if (fstatat(old_dir, META, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "look at an image");
    times[1] = st.st_mtim; /* when it was used last */
    if (utimensat(new_dir, META, times, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "finish a compressed image");
    return image_sync(new_dir, err);
}

static int make(struct compressing *c, const char *id, struct image_meta *meta, struct err *err)
{
    auto_close int old_dir = image_open_dir(c->images, id, "");
    int new_dir; /* not closed: with it its lock would go */
    char name[NAME_ROOM];

    (void) snprintf(name, sizeof name, "%s" PACK, id);
    if (mkdirat(c->images->dir_fd, name, 0700) < 0)
        return err_sys(err, errno, "make a compressed image");
    new_dir = image_open_dir(c->images, id, PACK);
    /* Locked until we end, so that a sweep leaves it alone. */
    if (old_dir < 0 || new_dir < 0 || flock(new_dir, LOCK_EX | LOCK_NB) < 0 ||
        mkdirat(new_dir, "memory", 0755) < 0)
        return err_sys(err, errno, "make a compressed image");
    c->old_fd = openat(old_dir, "memory", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    c->new_fd = openat(new_dir, "memory", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (c->old_fd < 0 || c->new_fd < 0)
        return err_sys(err, errno, "open an image's memory");
    if (image_each_file(c->old_fd, NULL, take_file, c, err) < 0 || write_pack(c, meta, err) < 0)
        return -1;
    return finish(c, old_dir, new_dir, meta, err);
}

int compress_image(const struct images *images, const char *id, struct image_meta *ret,
                   struct err *err)
{
    auto_free struct compressing *c = calloc(1, sizeof *c);
    struct image_meta meta;
    int rc;

    if (!c)
        return err_set(err, ERR_NO_MEMORY, "no memory to compress an image");
    if (image_read(images, id, &meta, err) < 0)
        return -1;
    if (!(meta.image.flags & KEEPER_IMAGE_MEMORY) || meta.image.flags & KEEPER_IMAGE_COMPRESSED)
        return err_set(err, ERR_STATE, "image '%s' has no memory, or it is compressed", id);
    c->images = images;
    c->old_fd = c->new_fd = -1;
    compress_undo(images, id);
    rc = make(c, id, &meta, err);
    if (rc < 0)
        compress_undo(images, id);
    for (uint32_t i = 0; i < c->files; i++)
        (void) close(c->from[i]);
    own_close(&c->old_fd);
    own_close(&c->new_fd);
    if (rc == 0)
        *ret = meta;
    return rc;
}

int compress_commit(const struct images *images, const char *id, struct err *err)
{
    auto_close int lock = -1;
    struct image_meta now, meta;
    char name[NAME_ROOM];

    (void) snprintf(name, sizeof name, "%s" PACK, id);
    if (image_lock(images, id, true, &lock, err) < 0 || image_read(images, id, &now, err) < 0 ||
        image_read_meta(images, id, PACK, &meta, err) < 0)
        return -1;
    if (memcmp(&now.layers, &meta.layers, sizeof now.layers) != 0)
        return err_set(err, ERR_STATE, "image '%s' got other disks in the meantime", id);
    if (renameat2(images->dir_fd, name, images->dir_fd, id, RENAME_EXCHANGE) < 0)
        return err_sys(err, errno, "put a compressed image in its place");
    (void) fsync(images->dir_fd); /* or the plain one may be gone before the other has its name */
    compress_undo(images, id);
    return 0;
}

void compress_undo(const struct images *images, const char *id)
{
    image_remove(images, id, PACK);
}

/* ---- plain again ---- */

/* Read once, into memory: what is compared is what is then believed. */
static int read_list(struct decompress *d, const struct images *images,
                     const struct image_meta *meta, int memory_fd, struct err *err)
{
    auto_close int fd =
        openat(memory_fd, PACK_LIST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    unsigned char hash[SHA256_LEN], sum[SHA256_LEN] = { 0 };
    auto_free void *data = NULL;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t) LIST_MAX ||
        !(data = malloc((size_t) st.st_size + 1)) || io_read_all(fd, data, (size_t) st.st_size) < 0)
        return err_set(err, ERR_DENIED, CHANGED, meta->image.id);
    sha256_of(data, (size_t) st.st_size, hash);
    if (image_hash_join(images, PACK_LIST, hash, sum, err) < 0)
        return -1;
    if (!same_secret(sum, meta->pages, sizeof sum))
        return err_set(err, ERR_DENIED, CHANGED, meta->image.id);
    if (pack_parse(data, (size_t) st.st_size, &d->pack, err) < 0)
        return -1;
    d->pack.data = take_ptr(&data);
    return 0;
}

/* Attached while it still has a name, by which alone it can be; the name goes before anything is in it. */
static int attach(int dir_fd, const char *name, const struct decompress_place *place,
                  const char *file, struct err *err)
{
    auto_close int tree = -1;
    char path[128];
    int rc;

    (void) snprintf(path, sizeof path, "%s/%s", place->dir, name);
    tree = mountfd_clone(AT_FDCWD, path, 0);
    (void) snprintf(path, sizeof path, "%s/%s", place->at, file);
    rc = tree < 0 || mountfd_attach(tree, AT_FDCWD, path) < 0
             ? err_sys(err, errno, "attach %s", file)
             : 0;
    if (unlinkat(dir_fd, name, 0) < 0 && rc == 0)
        rc = err_sys(err, errno, "take the name of %s", file);
    return rc;
}

static int make_plain(int dir_fd, const struct decompress_place *place, const char *criu_name,
                      uint64_t size, struct err *err)
{
    auto_close int fd = -1;
    char name[32];

    (void) snprintf(name, sizeof name, "plain.%d", (int) getpid());
    (void) unlinkat(dir_fd, name, 0); /* of one that was killed right here, and had this number */
    fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys(err, errno, "make a file for pages");
    if (place ? attach(dir_fd, name, place, criu_name, err) < 0
              : unlinkat(dir_fd, name, 0) < 0 && err_sys(err, errno, "take the name of pages") < 0)
        return -1;
    if (size > 0 && fallocate(fd, 0, 0, (off_t) size) < 0 && errno != EOPNOTSUPP)
        return err_sys(err, errno, "make room for pages");
    return take_fd(&fd);
}

int decompress_room(int dir_fd, uint64_t size, struct err *err)
{
    return make_plain(dir_fd, NULL, NULL, size, err);
}

static int make_all_plain(struct decompress *d, int dir_fd, const struct decompress_place *place,
                          struct err *err)
{
    uint32_t files = d->pack.head->files;

    d->to_fd = malloc((files + 1) * sizeof *d->to_fd);
    if (!d->to_fd)
        return err_set(err, ERR_NO_MEMORY, "no memory for pages");
    for (uint32_t i = 0; i < files; i++)
        d->to_fd[i] = -1;
    for (uint32_t i = 0; i < files; i++) {
        d->to_fd[i] = make_plain(dir_fd, place, d->pack.file[i].name, d->pack.file[i].size, err);
        if (d->to_fd[i] < 0)
            return -1;
    }
    return 0;
}

/* For the caller. */
static int say_no_room(int rc, struct err *err)
{
    if (rc < 0 && err->kind == ERR_DISK_FULL)
        err_set(err, ERR_DISK_FULL, "the host's disk has no room to decompress the image");
    return rc;
}

int decompress_begin(struct decompress *d, const struct images *images,
                     const struct image_meta *meta, int dir_fd,
                     const struct decompress_place *place, struct err *err)
{
    auto_close int memory =
        openat(dir_fd, "memory", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t ways = cores < 1 ? 1 : cores < DECOMPRESS_WAYS ? (uint32_t) cores : DECOMPRESS_WAYS;

    d->from_fd = openat(memory, PACK_DATA, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (d->from_fd < 0)
        return err_set(err, ERR_DENIED, CHANGED, meta->image.id);
    if (read_list(d, images, meta, memory, err) < 0 || make_all_plain(d, dir_fd, place, err) < 0)
        return say_no_room(-1, err);
    for (uint32_t i = 0; i < ways; i++) {
        d->child[i] = pack_open_start(&d->pack, d->from_fd, d->to_fd, false, i, ways, err);
        if (d->child[i] < 0)
            return -1;
    }
    return 0;
}

int decompress_wait(struct decompress *d, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < DECOMPRESS_WAYS; i++) {
        if (rc == 0 && d->child[i] > 0) {
            rc = pack_wait(d->child[i], err);
            d->child[i] = 0;
        }
    }
    return say_no_room(rc, err);
}

void decompress_done(struct decompress *d)
{
    for (size_t i = 0; i < DECOMPRESS_WAYS; i++)
        if (d->child[i] > 0) {
            (void) kill(d->child[i], SIGKILL);
            (void) waitpid(d->child[i], NULL, 0);
        }
    for (uint32_t i = 0; d->to_fd && i < d->pack.head->files; i++)
        own_close(&d->to_fd[i]);
    own_close(&d->from_fd);
    free(d->to_fd);
    free(d->pack.data);
    *d = (struct decompress){ .from_fd = -1 };
}
