#include "image/image_own.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC    "covesav2"
#define KEY_FILE "image.key"
#define SPENT    ".spent" /* the directory of those that are of no more use */

/* ---- the table ---- */

/* The table is long and mostly empty: no look behind the last that is there. */
static struct image_entry *find(const struct images *images, const char *id)
{
    size_t left = images->count;

    for (size_t i = 0; i < IMAGES_MAX && left > 0; i++) {
        if (!images->entry[i].id[0])
            continue;
        if (strcmp(images->entry[i].id, id) == 0)
            return &images->entry[i];
        left--;
    }
    return NULL;
}

static struct image_entry *find_free(const struct images *images)
{
    for (size_t i = 0; i < IMAGES_MAX; i++)
        if (!images->entry[i].id[0])
            return &images->entry[i];
    return NULL;
}

bool images_have(const struct images *images, const char *id)
{
    return find(images, id) != NULL;
}

const struct image_entry *images_entry(const struct images *images, const char *id)
{
    return find(images, id);
}

/* Its bit among those of a chain, 0: it is not in it. */
static uint32_t bit_of(const struct layers *layers, uint64_t number)
{
    for (uint32_t i = 0; i < layers->count; i++)
        if (layers->number[i] == number)
            return 1u << i;
    return 0;
}

/* Its own layer counts for it, and of those below what counts for no other: who made them may have gone. */
static void charge(struct images *images, struct image_entry *entry)
{
    for (uint32_t i = 0; i < entry->layers.count; i++) {
        bool taken = false;

        for (size_t n = 0; n < IMAGES_MAX; n++) {
            struct image_entry *other = &images->entry[n];
            uint32_t bit;

            if (!other->id[0] || other == entry)
                continue;
            bit = bit_of(&other->layers, entry->layers.number[i]) & other->charged;
            taken = taken || bit;
            if (i == 0)
                other->charged &= ~bit;
        }
        if (i == 0 || !taken)
            entry->charged |= 1u << i;
    }
}

/* It goes, or gets other layers: what counted for it counts for the next who has it. */
static void discharge(struct images *images, struct image_entry *entry)
{
    for (uint32_t i = 0; i < entry->layers.count; i++) {
        bool mine = entry->charged & 1u << i;

        for (size_t n = 0; mine && n < IMAGES_MAX; n++) {
            struct image_entry *other = &images->entry[n];
            uint32_t bit = other->id[0] && other != entry
                               ? bit_of(&other->layers, entry->layers.number[i])
                               : 0;

            other->charged |= bit;
            mine = !bit;
        }
    }
    entry->charged = 0;
}

struct image_entry *images_add(struct images *images, const char *id, const struct layers *layers,
                               const struct volume_use volumes[VOLUMES_MAX])
{
    struct image_entry *entry = find(images, id);

    if (!entry) {
        entry = find_free(images);
        if (!entry)
            return NULL;
        (void) snprintf(entry->id, sizeof entry->id, "%s", id);
        images->count++;
    }
    discharge(images, entry);
    entry->layers = *layers;
    charge(images, entry);
    memset(entry->claims, 0, sizeof entry->claims);
    for (size_t i = 0; volumes && i < volume_use_count(volumes); i++) {
        (void) snprintf(entry->claims[i].volume, sizeof entry->claims[i].volume, "%.*s",
                        (int) VOLUME_ID_LEN, volumes[i].volume);
        entry->claims[i].writes = !(volumes[i].flags & VOLUME_READ_ONLY);
    }
    return entry;
}

static struct image_entry *add_read(struct images *images, const char *id,
                                    const struct image_meta *meta)
{
    return images_add(images, id, &meta->layers,
                      meta->image.flags & KEEPER_IMAGE_PAUSED ? meta->volumes : NULL);
}

void images_forget(struct images *images, const char *id)
{
    struct image_entry *entry = find(images, id);

    if (!entry)
        return;
    discharge(images, entry);
    memset(entry, 0, sizeof *entry);
    images->count--;
}

/* ---- open ---- */

static int read_key(struct images *images, int state_fd, struct err *err)
{
    auto_close int fd = openat(state_fd, KEY_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) {
        fd = openat(state_fd, KEY_FILE ".new",
                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 || getrandom(images->key, sizeof images->key, 0) != sizeof images->key ||
            io_write_all(fd, images->key, sizeof images->key) < 0 || fsync(fd) < 0 ||
            renameat(state_fd, KEY_FILE ".new", state_fd, KEY_FILE) < 0 || fsync(state_fd) < 0)
            return err_sys(err, errno, "make " KEY_FILE);
        return 0;
    }
    if (fd < 0 || io_read_all(fd, images->key, sizeof images->key) < 0)
        return err_sys(err, errno, "read " KEY_FILE);
    return 0;
}

/* It is not loaded, but it is not ours to throw away either: the key, or the program that wrote it, may come back.
 * What it says of its disks is believed only so far that they are kept. */
static void note_unread(struct images *images, const char *id, struct image_meta *meta,
                        const struct err *why)
{
    log_line(LOG_WARNING, "image=%s %s", id, why->msg);
    if (meta->layers.count > LAYERS_MAX)
        meta->layers.count = 0;
    images->unread += meta->layers.count == 0;
}

/* What is whole goes into the table; what is not and has no worker goes away. */
static int load_table(struct images *images, struct err *err)
{
    int fd = openat(images->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir)
        return err_sys(err, errno, "list the images");
    while ((entry = readdir(dir))) {
        char id[NAME_ROOM];
        struct image_meta meta;
        struct err why;

        (void) snprintf(id, sizeof id, "%.*s", (int) strcspn(entry->d_name, "."), entry->d_name);
        if (!id_ok(id))
            continue;
        if (strcmp(entry->d_name + ID_LEN, NEW) == 0 && !image_busy(images, id))
            image_remove(images, id, NEW);
        if (entry->d_name[ID_LEN] != '\0')
            continue;
        memset(&meta, 0, sizeof meta);
        if (image_read(images, id, &meta, &why) < 0)
            note_unread(images, id, &meta, &why);
        if (meta.layers.count && !add_read(images, id, &meta))
            return err_set(err, ERR_TOO_MANY, "more than %d images", IMAGES_MAX);
    }
    return 0;
}

int images_open(struct images *images, int state_fd, struct err *err)
{
    size_t size = IMAGES_MAX * sizeof *images->entry;
    void *table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (table == MAP_FAILED)
        return err_sys(err, errno, "make the table of images");
    images->entry = table;
    if (mkdirat(state_fd, "images", 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make images");
    images->dir_fd = openat(state_fd, "images", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (images->dir_fd < 0)
        return err_sys(err, errno, "open images");
    return read_key(images, state_fd, err) < 0 ? -1 : load_table(images, err);
}

/* ---- one image ---- */

int image_open_dir(const struct images *images, const char *id, const char *suffix)
{
    char name[NAME_ROOM];

    (void) snprintf(name, sizeof name, "%s%s", id, suffix);
    return openat(images->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int image_begin(const struct images *images, const char *id, int *ret_dir_fd, struct err *err)
{
    auto_close int fd = -1;
    char name[NAME_ROOM];

    (void) snprintf(name, sizeof name, "%s" NEW, id);
    image_remove(images, id, NEW);
    if (mkdirat(images->dir_fd, name, 0700) < 0)
        return err_sys(err, errno, "make an image");
    fd = image_open_dir(images, id, NEW);
    /* Searchable by all: the sandbox's root reads it during a restore, through a descriptor. No process comes past
     * the directories above. */
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || mkdirat(fd, "memory", 0755) < 0)
        return err_sys(err, errno, "make an image");
    *ret_dir_fd = take_fd(&fd);
    return 0;
}

int image_lock(const struct images *images, const char *id, bool alone, int *ret_dir_fd,
               struct err *err)
{
    auto_close int fd = image_open_dir(images, id, "");

    if (fd < 0)
        return errno == ENOENT ? err_set(err, ERR_NO_IMAGE, "there is no image '%s'", id)
                               : err_sys(err, errno, "open image '%s'", id);
    if (flock(fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0)
        return err_set(err, ERR_STATE, "image '%s' is being worked on", id);
    *ret_dir_fd = take_fd(&fd);
    return 0;
}

static bool is_locked(const struct images *images, const char *id, const char *suffix)
{
    auto_close int fd = image_open_dir(images, id, suffix);

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

bool image_busy(const struct images *images, const char *id)
{
    return is_locked(images, id, "") || is_locked(images, id, NEW) || is_locked(images, id, OLD);
}

static void sign(const struct images *images, const struct image_meta *meta,
                 unsigned char ret[SHA256_LEN])
{
    sha256_hmac(images->key, sizeof images->key, meta, offsetof(struct image_meta, code), ret);
}

int image_write_meta(const struct images *images, int dir_fd, const char *name,
                     struct image_meta *meta, struct err *err)
{
    auto_close int fd =
        openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    memcpy(meta->magic, MAGIC, sizeof meta->magic);
    meta->size = sizeof *meta;
    sign(images, meta, meta->code);
    if (fd < 0 || io_write_all(fd, meta, sizeof *meta) < 0)
        return err_sys(err, errno, "write the image's meta");
    return 0;
}

int image_commit(const struct images *images, const char *id, int dir_fd, struct image_meta *meta,
                 struct err *err)
{
    char name[NAME_ROOM];

    (void) snprintf(name, sizeof name, "%s" NEW, id);
    /* Its files first: what a power cut leaves under its name is whole. */
    if (image_write_meta(images, dir_fd, META, meta, err) < 0 || image_sync(dir_fd, err) < 0)
        return -1;
    if (renameat(images->dir_fd, name, images->dir_fd, id) < 0)
        return err_sys(err, errno, "name the image");
    return 0;
}

int image_sync_name(const struct images *images, struct err *err)
{
    return fsync(images->dir_fd) < 0 ? err_sys(err, errno, "save the name of an image") : 0;
}

int image_prepare(const struct images *images, const char *id, struct image_meta *meta,
                  struct err *err)
{
    auto_close int dir = image_open_dir(images, id, "");

    if (dir < 0)
        return err_sys(err, errno, "open image '%s'", id);
    (void) unlinkat(dir, META NEW, 0); /* of a process that was killed here */
    return image_write_meta(images, dir, META NEW, meta, err);
}

int image_swap(const struct images *images, const char *id, struct err *err)
{
    auto_close int dir = image_open_dir(images, id, "");

    return dir < 0 || renameat(dir, META NEW, dir, META) < 0
               ? err_sys(err, errno, "give image '%s' another meta", id)
               : 0;
}

int image_read_meta(const struct images *images, const char *id, const char *suffix,
                    struct image_meta *ret, struct err *err)
{
    auto_close int dir = image_open_dir(images, id, suffix), fd = -1;
    unsigned char code[SHA256_LEN];
    struct stat st;

    if (dir < 0)
        return errno == ENOENT ? err_set(err, ERR_NO_IMAGE, "there is no image '%s'", id)
                               : err_sys(err, errno, "open image '%s'", id);
    fd = openat(dir, META, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size != (off_t) sizeof *ret ||
        read(fd, ret, sizeof *ret) != (ssize_t) sizeof *ret || ret->size != sizeof *ret ||
        memcmp(ret->magic, MAGIC, sizeof ret->magic) != 0) {
        ret->layers.count = 0;
        return err_set(err, ERR_DENIED, "image '%s' is not whole, or of another version", id);
    }
    sign(images, ret, code);
    if (!same_secret(code, ret->code, sizeof code) || strcmp(ret->image.id, id) != 0)
        return err_set(err, ERR_DENIED, "image '%s' was changed by another process", id);
    return 0;
}

int image_read(const struct images *images, const char *id, struct image_meta *ret, struct err *err)
{
    return image_read_meta(images, id, "", ret, err);
}

uint32_t image_used(const struct images *images, const char *id)
{
    char path[NAME_ROOM + 8];
    struct stat st;

    (void) snprintf(path, sizeof path, "%s/" META, id);
    return fstatat(images->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint32_t) st.st_mtime
                                                                        : 0;
}

void image_use(int dir_fd)
{
    (void) utimensat(dir_fd, META, NULL, AT_SYMLINK_NOFOLLOW);
}

/* ---- the end ---- */

int image_retire(const struct images *images, const char *id, struct err *err)
{
    char old[NAME_ROOM];

    (void) snprintf(old, sizeof old, "%s" OLD, id);
    if (renameat(images->dir_fd, id, images->dir_fd, old) < 0)
        return err_sys(err, errno, "retire the image");
    return 0;
}

bool image_unretire(struct images *images, const char *id)
{
    char old[NAME_ROOM];
    struct image_meta meta;
    struct err err;

    (void) snprintf(old, sizeof old, "%s" OLD, id);
    if (image_read_meta(images, id, OLD, &meta, &err) == 0)
        (void) renameat2(images->dir_fd, old, images->dir_fd, id, RENAME_NOREPLACE);
    if (image_read(images, id, &meta, &err) < 0)
        return false;
    (void) add_read(images, id, &meta);
    return true;
}

bool image_retired(const struct images *images, const char *id)
{
    auto_close int fd = image_open_dir(images, id, OLD);

    return fd >= 0;
}

void image_spend(const struct images *images, const char *id)
{
    auto_close int fd = image_open_dir(images, id, OLD);

    if (fd >= 0)
        (void) unlinkat(fd, META, 0);
}

/* Of a sandbox whose pages are all there, or that is no more. */
static void sweep_fill(int dir_fd, const char *name)
{
    auto_close int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void) unlinkat(dir_fd, name, 0);
}

void images_sweep(struct images *images)
{
    int fd = openat(images->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char id[NAME_ROOM];

        (void) snprintf(id, sizeof id, "%.*s", (int) strcspn(entry->d_name, "."), entry->d_name);
        if (id_ok(id) && strcmp(entry->d_name + ID_LEN, OLD) == 0 && !image_busy(images, id))
            image_discard(images, id, OLD);
        if (id_ok(id) && strcmp(entry->d_name + ID_LEN, FILL) == 0)
            sweep_fill(fd, entry->d_name);
        /* Of a compressor that was killed: unfinished, or what its work took the place of. */
        if (id_ok(id) && strcmp(entry->d_name + ID_LEN, PACK) == 0 && !is_locked(images, id, PACK))
            image_discard(images, id, PACK);
    }
}

static void remove_files(int dir_fd)
{
    int own = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_type != DT_DIR || strcmp(entry->d_name, "memory") != 0)
            if (unlinkat(own, entry->d_name, 0) < 0 && errno == EISDIR && entry->d_name[0] != '.')
                (void) unlinkat(own, entry->d_name, AT_REMOVEDIR);
}

static void remove_tree(int at, const char *name)
{
    auto_close int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                   memory = -1;

    if (fd < 0)
        return;
    remove_files(fd); /* meta first: what is half removed must not look whole */
    memory = openat(fd, "memory", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (memory >= 0)
        remove_files(memory);
    if (unlinkat(fd, "memory", AT_REMOVEDIR) < 0 && errno == ENOTDIR)
        (void) unlinkat(fd, "memory", 0);
    if (unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        log_line(LOG_WARNING, "image %s stays: %s", name, strerror(errno));
}

void image_remove(const struct images *images, const char *id, const char *suffix)
{
    char name[NAME_ROOM], going[NAME_ROOM];

    (void) snprintf(name, sizeof name, "%s%s", id, suffix);
    (void) snprintf(going, sizeof going, "%s" OLD, id);
    if (!suffix[0] && renameat(images->dir_fd, name, images->dir_fd, going) == 0)
        (void) snprintf(name, sizeof name, "%s", going);
    remove_tree(images->dir_fd, name);
}

/* Number and time make the name its own: the sandbox may be saved and loaded again meanwhile. The cleaner may take the directory
 * away just now. */
void image_discard(const struct images *images, const char *id, const char *suffix)
{
    char name[NAME_ROOM], spent[NAME_ROOM + 48];

    (void) snprintf(name, sizeof name, "%s%s", id, suffix);
    (void) snprintf(spent, sizeof spent, SPENT "/%s.%d.%" PRIu64, id, (int) getpid(), io_now_us());
    if (renameat(images->dir_fd, name, images->dir_fd, spent) == 0 ||
        faccessat(images->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    (void) mkdirat(images->dir_fd, SPENT, 0700);
    if (renameat(images->dir_fd, name, images->dir_fd, spent) < 0)
        remove_tree(images->dir_fd, name);
}

void images_clear(const struct images *images)
{
    int fd = openat(images->dir_fd, SPENT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            remove_tree(fd, entry->d_name);
    (void) unlinkat(images->dir_fd, SPENT, AT_REMOVEDIR); /* unless there are more by now */
}
