#include "template/image_store.h"

#include "base/own.h"
#include "base/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define DIR_FLAGS   (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define LAYERS      ".layers"
#define PIECE       (256u * 1024)
#define NEW         "new."
#define IMAGE_END   ".erofs"
#define TEXT_END    ".manifest"
#define STORED_NAME (IMAGE_KEY_MAX + sizeof TEXT_END)
#define NEW_NAME    40

static void name_of(char out[STORED_NAME], const char *key, const char *end)
{
    (void) snprintf(out, STORED_NAME, "%.64s%s", key, end);
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name);

    return len > strlen(end) && strcmp(name + len - strlen(end), end) == 0;
}

static void new_name(char out[NEW_NAME], size_t file)
{
    (void) snprintf(out, NEW_NAME, NEW "%d.%zu", (int) getpid(), file);
}

static DIR *list(int dir_fd)
{
    int fd = openat(dir_fd, ".", DIR_FLAGS);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir && fd >= 0)
        (void) close(fd);
    return dir;
}

/* A maker holds a lock on its file for as long as it lives. The directory is locked for a moment, here and by image_store_begin(): no file
 * that another import has just made is found before its maker has locked it. */
static void sweep(int dir_fd)
{
    auto_dir DIR *dir = list(dir_fd);
    const struct dirent *entry;

    if (dir && flock(dirfd(dir), LOCK_EX) < 0)
        return;
    while (dir && (entry = readdir(dir))) {
        auto_close int fd = -1;

        if (strncmp(entry->d_name, NEW, strlen(NEW)) != 0)
            continue;
        fd = openat(dir_fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void) unlinkat(dir_fd, entry->d_name, 0);
    }
}

static int open_locked(int templates_fd, int how, int *ret_dir, int *ret_lock, struct err *err)
{
    auto_close int dir = -1, lock = -1;

    if (mkdirat(templates_fd, LAYERS, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make " LAYERS);
    dir = openat(templates_fd, LAYERS, DIR_FLAGS);
    lock = dir < 0 ? -1 : openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0)
        return err_sys(err, errno, "open " LAYERS);
    if (flock(lock, how) < 0)
        return errno == EWOULDBLOCK ? err_set(err, ERR_STATE, "a template is being imported")
                                    : err_sys(err, errno, "lock " LAYERS);
    *ret_dir = take_fd(&dir);
    *ret_lock = take_fd(&lock);
    return 0;
}

int image_store_open(struct image_store *store, int templates_fd, struct err *err)
{
    *store = (struct image_store){ .dir_fd = -1, .lock_fd = -1 };
    if (open_locked(templates_fd, LOCK_SH, &store->dir_fd, &store->lock_fd, err) < 0)
        return -1;
    sweep(store->dir_fd);
    return 0;
}

void image_store_close(struct image_store *store)
{
    for (size_t i = 0; i < store->new_count; i++)
        if (store->new_fd[i] >= 0) {
            char name[NEW_NAME];

            new_name(name, i);
            (void) unlinkat(store->dir_fd, name, 0);
            own_close(&store->new_fd[i]);
        }
    store->new_count = 0;
    own_close(&store->dir_fd);
    own_close(&store->lock_fd);
}

int image_store_begin(struct image_store *store, struct err *err)
{
    auto_close int gate = openat(store->dir_fd, ".", DIR_FLAGS);
    char name[NEW_NAME];
    int fd;

    if (store->new_count == IMAGE_FILES_MAX)
        return err_set(err, ERR_TOO_MANY, "an image of more than %d files", IMAGE_FILES_MAX);
    if (gate < 0 || flock(gate, LOCK_EX) < 0)
        return err_sys(err, errno, "lock " LAYERS);
    new_name(name, store->new_count);
    (void) unlinkat(store->dir_fd, name, 0);
    fd = openat(store->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, errno, "make a file for the image");
    store->new_fd[store->new_count++] = fd;
    return flock(fd, LOCK_EX | LOCK_NB) < 0 ? err_sys(err, errno, "lock a file for the image") : 0;
}

static bool has_file(const struct image_store *store, const char *key)
{
    char name[STORED_NAME];
    struct stat st;

    name_of(name, key, IMAGE_END);
    return fstatat(store->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

bool image_store_find(const struct image_store *store, const char *key, struct manifest *ret)
{
    auto_free struct manifest *manifest = malloc(sizeof *manifest);
    char name[STORED_NAME], below[IMAGE_KEY_MAX];
    struct err ignored;

    name_of(name, key, TEXT_END);
    if (!manifest || !has_file(store, key) ||
        manifest_read_at(store->dir_fd, name, manifest, &ignored) < 0)
        return false;
    for (size_t i = 0; i < manifest_below_count(manifest); i++) {
        manifest_below_at(manifest, i, below);
        if (!has_file(store, below))
            return false;
    }
    *ret = *manifest;
    return true;
}

int image_store_name(const struct image_store *store, size_t file, char ret_key[IMAGE_KEY_MAX],
                     struct err *err)
{
    static const char kind[] = "content";
    auto_free char *piece = malloc(PIECE);
    unsigned char digest[SHA256_LEN];
    struct sha256 sha;
    off_t at = 0;
    ssize_t n;

    if (!piece)
        return err_set(err, ERR_NO_MEMORY, "no memory for an import");
    sha256_init(&sha);
    sha256_add(&sha, kind, sizeof kind);
    while ((n = pread(store->new_fd[file], piece, PIECE, at)) > 0) {
        sha256_add(&sha, piece, (size_t) n);
        at += n;
    }
    if (n < 0)
        return err_sys(err, errno, "read the image");
    sha256_done(&sha, digest);
    sha256_hex(digest, sizeof digest, ret_key);
    return 0;
}

int image_store_keep(struct image_store *store, size_t file, const char *key,
                     const struct manifest *manifest, struct err *err)
{
    char name[STORED_NAME], from[NEW_NAME];

    name_of(name, key, TEXT_END);
    if (manifest && manifest_write_at(store->dir_fd, name, manifest, err) < 0)
        return -1;
    name_of(name, key, IMAGE_END);
    new_name(from, file);
    if (fchmod(store->new_fd[file], 0400) < 0 || fsync(store->new_fd[file]) < 0)
        return err_sys(err, errno, "keep the image");
    if (renameat2(store->dir_fd, from, store->dir_fd, name, RENAME_NOREPLACE) < 0) {
        if (errno != EEXIST)
            return err_sys(err, errno, "keep the image");
        (void) unlinkat(store->dir_fd, from, 0);
    }
    own_close(&store->new_fd[file]);
    return fsync(store->dir_fd) < 0 ? err_sys(err, errno, "keep the image") : 0;
}

int image_store_link(const struct image_store *store, const char *key, int dir_fd, const char *name,
                     struct err *err)
{
    char from[STORED_NAME];

    name_of(from, key, IMAGE_END);
    if (linkat(store->dir_fd, from, dir_fd, name, 0) < 0)
        return err_sys(err, errno, "give the image to its template");
    return 0;
}

int image_store_temporary(int templates_fd, int *ret_fd, struct err *err)
{
    auto_close int dir = -1, fd = -1;
    char name[48];

    if (mkdirat(templates_fd, LAYERS, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make " LAYERS);
    dir = openat(templates_fd, LAYERS, DIR_FLAGS);
    /* What another import may remove at this very moment goes here, too. */
    (void) snprintf(name, sizeof name, NEW "download.%d", (int) getpid());
    fd = dir < 0 ? -1 : openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || (unlinkat(dir, name, 0) < 0 && errno != ENOENT))
        return err_sys(err, errno, "make a file for a download");
    *ret_fd = take_fd(&fd);
    return 0;
}

int image_store_blobs(int templates_fd, int *ret_fd, struct err *err)
{
    if ((mkdirat(templates_fd, LAYERS, 0700) < 0 && errno != EEXIST) ||
        (mkdirat(templates_fd, LAYERS "/blobs", 0700) < 0 && errno != EEXIST))
        return err_sys(err, errno, "make " LAYERS "/blobs");
    *ret_fd = openat(templates_fd, LAYERS "/blobs", DIR_FLAGS);
    return *ret_fd < 0 ? err_sys(err, errno, "open " LAYERS "/blobs") : 0;
}

static void collect_blobs(int layers_fd, bool dry_run,
                          void (*removed)(void *context, const char *key, uint64_t bytes),
                          void *context)
{
    auto_close int blobs = openat(layers_fd, "blobs", DIR_FLAGS);
    auto_dir DIR *dir = blobs < 0 ? NULL : list(blobs);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char key[IMAGE_KEY_MAX];
        struct stat st;

        if (entry->d_name[0] == '.' ||
            fstatat(blobs, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            (!dry_run && unlinkat(blobs, entry->d_name, 0) < 0))
            continue;
        (void) snprintf(key, sizeof key, "%.64s", entry->d_name);
        removed(context, key, (uint64_t) st.st_blocks * 512);
    }
}

int image_store_prune(int templates_fd, struct err *err)
{
    auto_close int dir_fd = -1, lock_fd = -1;
    auto_dir DIR *dir = NULL;
    const struct dirent *entry;

    if (open_locked(templates_fd, LOCK_EX | LOCK_NB, &dir_fd, &lock_fd, err) < 0)
        return err->kind == ERR_STATE ? 0 : -1;
    sweep(dir_fd);
    dir = list(dir_fd);
    while (dir && (entry = readdir(dir))) {
        char text[STORED_NAME];
        struct stat st;

        if (!ends_with(entry->d_name, IMAGE_END) ||
            fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_nlink > 1)
            continue;
        name_of(text, entry->d_name, TEXT_END);
        if (faccessat(dir_fd, text, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
            unlinkat(dir_fd, entry->d_name, 0) < 0)
            return err_sys(err, errno, "remove an image of no template");
    }
    return 0;
}

int image_store_collect(int templates_fd, bool dry_run,
                        void (*removed)(void *context, const char *key, uint64_t bytes),
                        void *context, struct err *err)
{
    auto_close int dir_fd = -1, lock_fd = -1;
    auto_dir DIR *dir = NULL;
    const struct dirent *entry;

    if (faccessat(templates_fd, LAYERS, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (open_locked(templates_fd, LOCK_EX | LOCK_NB, &dir_fd, &lock_fd, err) < 0)
        return err->kind == ERR_STATE ? 0 : -1;
    if (!dry_run)
        sweep(dir_fd);
    dir = list(dir_fd);
    while (dir && (entry = readdir(dir))) {
        char text[STORED_NAME];
        struct stat st;

        if (!ends_with(entry->d_name, IMAGE_END) ||
            fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_nlink > 1)
            continue;
        name_of(text, entry->d_name, TEXT_END);
        if (!dry_run && unlinkat(dir_fd, entry->d_name, 0) < 0)
            return err_sys(err, errno, "remove an image of no template");
        if (!dry_run)
            (void) unlinkat(dir_fd, text, 0);
        text[IMAGE_KEY_MAX - 1] = '\0';
        removed(context, text, (uint64_t) st.st_blocks * 512);
    }
    collect_blobs(dir_fd, dry_run, removed, context);
    return 0;
}
