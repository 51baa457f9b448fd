#include "keeper/volume.h"

#include "base/log.h"
#include "base/own.h"
#include "disk/disk_maker.h"
#include "jail/mountfd.h"
#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#define NAME (VOLUME_ID_MAX + 8)

static int stat_volume(const struct keeper *k, const char *volume, struct stat *ret,
                       struct err *err)
{
    char file[NAME];

    (void) snprintf(file, sizeof file, "%s.img", volume);
    if (fstatat(k->disks.volumes_fd, file, ret, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    return errno == ENOENT ? err_set(err, ERR_NO_VOLUME, "there is no volume '%s'", volume)
                           : err_sys(err, errno, "look for volume '%s'", volume);
}

/* ---- in a sandbox ---- */

static const struct volume_use *use_of(const struct sandbox *s, const char *volume)
{
    size_t count = volume_use_count(s->volumes);

    for (size_t i = 0; s->info.life != LIFE_GONE && i < count; i++)
        if (strcmp(s->volumes[i].volume, volume) == 0)
            return &s->volumes[i];
    return NULL;
}

/* The same of one that sleeps on disk: its processes come back with files open there, so that it keeps what it has. One
 * that is on its way from or to an image may be in both tables. */
static const struct image_claim *claim_of(const struct keeper *k, const struct image_entry *entry,
                                          const char *volume)
{
    if (!entry->id[0])
        return NULL;
    for (size_t i = 0; i < VOLUMES_MAX && entry->claims[i].volume[0]; i++)
        if (strcmp(entry->claims[i].volume, volume) == 0)
            return sandbox_find((struct keeper *) k, entry->id) ? NULL : &entry->claims[i];
    return NULL;
}

/* The id of who writes to it, but for `own`; NULL: nobody. */
static const char *writer_of(const struct keeper *k, const char *volume, const char *own)
{
    for (uint32_t i = 0; i < k->slot_count; i++) {
        const struct volume_use *use = use_of(&k->sandboxes[i], volume);

        if (use && !(use->flags & VOLUME_READ_ONLY))
            return k->sandboxes[i].info.id;
    }
    for (size_t i = 0; k->images.count > 0 && i < IMAGES_MAX; i++) {
        const struct image_entry *entry = &k->images.entry[i];
        const struct image_claim *claim = claim_of(k, entry, volume);

        if (claim && claim->writes && strcmp(entry->id, own) != 0)
            return entry->id;
    }
    return NULL;
}

int volumes_check(struct keeper *k, const char *sandbox, const struct volume_use uses[VOLUMES_MAX],
                  struct err *err)
{
    size_t count = volume_use_count(uses);
    const char *writer;
    struct stat st;

    for (size_t i = 0; i < count; i++) {
        if (stat_volume(k, uses[i].volume, &st, err) < 0)
            return -1;
        writer = uses[i].flags & VOLUME_READ_ONLY ? NULL : writer_of(k, uses[i].volume, sandbox);
        if (writer)
            return err_set(err, ERR_VOLUME_BUSY, "sandbox '%s' writes to volume '%s' already",
                           writer, uses[i].volume);
    }
    return 0;
}

int volumes_order(struct keeper *k, struct sandbox *s, struct err *err)
{
    size_t count = volume_use_count(s->volumes);

    for (size_t i = 0; i < count; i++) {
        struct disk_order order = { .job = DISK_VOLUME_ATTACH, .tag = keeper_next_order(k) };

        memcpy(order.volume, s->volumes[i].volume, sizeof order.volume);
        s->volume_order[i] = order.tag;
        if (disks_order(&k->disks, &order, err) < 0)
            return -1;
    }
    return 0;
}

bool volumes_take(struct sandbox *s, uint32_t order, int mount_fd)
{
    size_t count = volume_use_count(s->volumes);

    for (size_t i = 0; i < count; i++) {
        if (s->volume_order[i] != order)
            continue;
        s->volume_order[i] = 0;
        s->volume_fd[i] = mount_fd;
        return true;
    }
    return false;
}

bool volumes_here(const struct sandbox *s)
{
    size_t count = volume_use_count(s->volumes);

    for (size_t i = 0; i < count; i++)
        if (s->volume_fd[i] < 0)
            return false;
    return true;
}

int volumes_map(const struct sandbox *s, int userns_fd, struct err *err)
{
    size_t count = volume_use_count(s->volumes);

    for (size_t i = 0; i < count; i++) {
        uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_IDMAP;

        if (s->volumes[i].flags & VOLUME_READ_ONLY)
            attributes |= MOUNT_ATTR_RDONLY;
        if (mountfd_set(s->volume_fd[i], attributes, (uint64_t) userns_fd) < 0)
            return err_sys(err, errno, "map the ids of volume '%s'", s->volumes[i].volume);
    }
    return 0;
}

void volumes_let_go(struct sandbox *s)
{
    for (size_t i = 0; i < VOLUMES_MAX; i++) {
        own_close(&s->volume_fd[i]);
        s->volume_order[i] = 0;
    }
}

size_t volumes_of(const struct sandbox *s, const struct volume_use **ret)
{
    *ret = s->volumes;
    return volume_use_count(s->volumes);
}

/* ---- on request ---- */

/* A volume may fill to its size: that much should be there when it is made. */
static int check_room(struct keeper *k, uint64_t bytes, struct err *err)
{
    struct statfs fs;

    if (fstatfs(k->disks.volumes_fd, &fs) < 0)
        return err_sys(err, errno, "look at the host's disk");
    if (bytes > (uint64_t) fs.f_blocks * (uint64_t) fs.f_bsize)
        return err_set(err, ERR_LIMIT_HOST, "size: more than the host's disk has");
    if (fs.f_bavail < fs.f_blocks / 50 || bytes > (uint64_t) fs.f_bavail * (uint64_t) fs.f_bsize)
        return err_set(err, ERR_DISK_FULL, "the host's disk has no room for a volume of that size");
    return 0;
}

static int make(struct keeper *k, const struct keeper_request *r, uint32_t *ret_order,
                struct err *err)
{
    struct disk_order order = { .job = DISK_VOLUME_MAKE,
                                .bytes = r->limits.disk_bytes,
                                .inodes = r->limits.disk_inodes };
    struct stat st;

    memcpy(order.volume, r->volumes[0].volume, sizeof order.volume);
    if (stat_volume(k, order.volume, &st, err) == 0)
        return err_set(err, ERR_EXISTS, "there is a volume '%s' already", order.volume);
    if (err->kind != ERR_NO_VOLUME || check_room(k, order.bytes, err) < 0)
        return -1;
    *ret_order = order.tag = keeper_next_order(k);
    return disks_order(&k->disks, &order, err) < 0 ? -1 : 1;
}

/* From the rename on there is no such volume, whatever happens to the maker. */
static int drop(struct keeper *k, const char *volume, uint32_t *ret_order, struct err *err)
{
    struct disk_order order = { .job = DISK_VOLUME_DROP };
    const char *user = NULL;
    char file[NAME], gone[NAME];
    uint32_t count = 0;

    for (uint32_t i = 0; i < k->slot_count; i++)
        if (use_of(&k->sandboxes[i], volume)) {
            user = k->sandboxes[i].info.id;
            count++;
        }
    for (size_t i = 0; k->images.count > 0 && i < IMAGES_MAX; i++)
        if (claim_of(k, &k->images.entry[i], volume)) {
            user = k->images.entry[i].id;
            count++;
        }
    if (user && count > 1)
        return err_set(err, ERR_VOLUME_BUSY, "volume '%s' is in use by sandbox '%s' and %u more",
                       volume, user, count - 1);
    if (user)
        return err_set(err, ERR_VOLUME_BUSY, "volume '%s' is in use by sandbox '%s'", volume, user);
    (void) snprintf(file, sizeof file, "%s.img", volume);
    (void) snprintf(gone, sizeof gone, "%s.gone", volume);
    if (renameat(k->disks.volumes_fd, file, k->disks.volumes_fd, gone) < 0)
        return errno == ENOENT ? err_set(err, ERR_NO_VOLUME, "there is no volume '%s'", volume)
                               : err_sys(err, errno, "remove volume '%s'", volume);
    log_line(LOG_INFO, "dropped volume=%s", volume);
    (void) snprintf(order.volume, sizeof order.volume, "%s", volume);
    *ret_order = order.tag = keeper_next_order(k);
    return disks_order(&k->disks, &order, err) < 0 ? -1 : 1;
}

static int put_info(const struct keeper *k, const char *volume, struct keeper_reply *reply,
                    struct err *err)
{
    struct volume_info *info = &reply->volume[reply->count];
    struct stat st;

    if (stat_volume(k, volume, &st, err) < 0)
        return -1;
    (void) snprintf(info->id, sizeof info->id, "%s", volume);
    info->bytes = (uint64_t) st.st_size;
    info->stored = (uint64_t) st.st_blocks * 512u;
    for (uint32_t i = 0; i < k->slot_count; i++) {
        const struct volume_use *use = use_of(&k->sandboxes[i], volume);

        info->readers += use && (use->flags & VOLUME_READ_ONLY);
        info->writers += use && !(use->flags & VOLUME_READ_ONLY);
    }
    for (size_t i = 0; k->images.count > 0 && i < IMAGES_MAX; i++) {
        const struct image_claim *claim = claim_of(k, &k->images.entry[i], volume);

        info->readers += claim && !claim->writes;
        info->writers += claim && claim->writes;
    }
    reply->count++;
    return 0;
}

/* A name of the directory as a volume's id; false: it is something else. */
static bool id_of(const char *file, char out[VOLUME_ID_MAX])
{
    size_t len = strlen(file);

    if (len != VOLUME_ID_LEN + 4 || strcmp(file + VOLUME_ID_LEN, ".img") != 0)
        return false;
    memcpy(out, file, VOLUME_ID_LEN);
    out[VOLUME_ID_LEN] = '\0';
    return volume_id_ok(out);
}

struct entry { /* struct linux_dirent64, which no header has */
    uint64_t inode;
    int64_t offset;
    uint16_t len;
    uint8_t type;
    char name[];
};

/* The cursor counts entries of the directory: one that comes or goes meanwhile may be told twice, or not. Without the C library's
 * readdir, which allocates. */
static int list(const struct keeper *k, uint32_t from, struct keeper_reply *reply, struct err *err)
{
    auto_close int dir =
        openat(k->disks.volumes_fd, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _Alignas(struct entry) char block[4096];
    uint32_t at = 0;
    long n = dir < 0 ? -1 : 0;

    while (dir >= 0 && (n = syscall(__NR_getdents64, dir, block, sizeof block)) > 0)
        for (long i = 0; i < n;) {
            const struct entry *entry = (const void *) (block + i);
            char id[VOLUME_ID_MAX];
            struct err gone;

            i += entry->len;
            if (at++ < from || !id_of(entry->name, id))
                continue;
            if (reply->count == KEEPER_LIST_MAX) {
                reply->next = at - 1;
                return 0;
            }
            (void) put_info(k, id, reply, &gone);
        }
    return n < 0 ? err_sys(err, errno, "list the volumes") : 0;
}

static void put_user(struct keeper_reply *reply, const char *id, const struct volume_use *use)
{
    struct volume_user *user = &reply->user[reply->count++];

    _Static_assert(sizeof user->sandbox == KEEPER_NAME_MAX, "an id fits");
    (void) snprintf(user->sandbox, sizeof user->sandbox, "%s", id);
    memcpy(user->path, use->path, sizeof user->path);
    user->flags = use->flags;
}

/* Of one that sleeps: where it has the volume is only in its image. */
static void put_sleeper(const struct keeper *k, const char *id, const char *volume,
                        struct keeper_reply *reply)
{
    struct image_meta meta;
    struct err ignored;

    if (image_read(&k->images, id, &meta, &ignored) < 0)
        return;
    for (size_t i = 0; i < volume_use_count(meta.volumes); i++)
        if (strcmp(meta.volumes[i].volume, volume) == 0)
            put_user(reply, id, &meta.volumes[i]);
}

/* The cursor counts slots, then images. */
static int users(const struct keeper *k, const struct keeper_request *r, struct keeper_reply *reply,
                 struct err *err)
{
    uint32_t most = k->slot_count + (k->images.count > 0 ? IMAGES_MAX : 0);
    const char *volume = r->volumes[0].volume;
    struct stat st;

    if (stat_volume(k, volume, &st, err) < 0)
        return -1;
    for (uint32_t i = r->cursor; i < most; i++) {
        const struct sandbox *s = i < k->slot_count ? &k->sandboxes[i] : NULL;
        const struct image_entry *entry = s ? NULL : &k->images.entry[i - k->slot_count];
        const struct volume_use *use = s ? use_of(s, volume) : NULL;

        if (!use && !(entry && claim_of(k, entry, volume)))
            continue;
        if (reply->count == KEEPER_LIST_MAX) {
            reply->next = i;
            return 0;
        }
        if (use)
            put_user(reply, s->info.id, use);
        else
            put_sleeper(k, entry->id, volume, reply);
    }
    return 0;
}

int volume_serve(struct keeper *k, const struct keeper_request *r, struct keeper_reply *reply,
                 uint32_t *ret_order, struct err *err)
{
    const char *volume = r->volumes[0].volume;

    switch (r->op) {
    case KEEPER_VOLUME_MAKE:
        return make(k, r, ret_order, err);
    case KEEPER_VOLUME_DROP:
        return drop(k, volume, ret_order, err);
    case KEEPER_VOLUME_USERS:
        return users(k, r, reply, err);
    case KEEPER_VOLUME_LIST:
        return volume[0] ? put_info(k, volume, reply, err) : list(k, r->cursor, reply, err);
    default:
        return err_set(err, ERR_INTERNAL, "not a request about volumes");
    }
}
