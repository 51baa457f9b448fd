#include "keeper/volume.h"

#include "base/log.h"
#include "base/own.h"
#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
    if (fstatat(host_volumes_fd(k), file, ret, AT_SYMLINK_NOFOLLOW) == 0)
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
static bool next_sleeper(const struct keeper *k, const char *volume, uint32_t *cursor,
                         struct host_claim *ret)
{
    while (host_next_claim(k, volume, cursor, ret))
        if (!sandbox_find((struct keeper *) (uintptr_t) k, ret->sandbox))
            return true;
    return false;
}

/* The id of who writes to it, but for `own`; NULL: none. */
static const char *writer_of(const struct keeper *k, const char *volume, const char *own)
{
    struct host_claim claim;
    uint32_t cursor = 0;
    const struct sandbox *s;

    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));) {
        const struct volume_use *use = use_of(s, volume);

        if (use && !(use->flags & VOLUME_READ_ONLY))
            return s->info.id;
    }
    while (next_sleeper(k, volume, &cursor, &claim))
        if (claim.writes && strcmp(claim.sandbox, own) != 0)
            return claim.sandbox;
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

/* ---- on request ---- */

/* A volume may fill to its size: that much should be there when it is made. */
static int check_room(struct keeper *k, uint64_t bytes, struct err *err)
{
    struct statfs fs;

    if (fstatfs(host_volumes_fd(k), &fs) < 0)
        return err_sys(err, errno, "look at the host's disk");
    if (bytes > (uint64_t) fs.f_blocks * (uint64_t) fs.f_bsize)
        return err_set(err, ERR_LIMIT_HOST, "size: more than the host's disk has");
    return host_check_room(k, bytes, err) < 0 ? err_wrap(err, "no room for a volume of that size")
                                              : 0;
}

static int make(struct keeper *k, const struct keeper_request *r, uint32_t *ret_order,
                struct err *err)
{
    const char *volume = r->volumes[0].volume;
    struct stat st;

    if (stat_volume(k, volume, &st, err) == 0)
        return err_set(err, ERR_EXISTS, "there is a volume '%s' already", volume);
    if (err->kind != ERR_NO_VOLUME || check_room(k, r->limits.disk_bytes, err) < 0)
        return -1;
    return host_volume_make(k, volume, &r->limits, ret_order, err) < 0 ? -1 : 1;
}

/* From the rename on there is no such volume, whatever happens to the maker. */
static int drop(struct keeper *k, const char *volume, uint32_t *ret_order, struct err *err)
{
    const char *user = NULL;
    char file[NAME], gone[NAME];
    uint32_t count = 0, cursor = 0;
    struct host_claim claim;
    const struct sandbox *s;

    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));)
        if (use_of(s, volume)) {
            user = s->info.id;
            count++;
        }
    for (; next_sleeper(k, volume, &cursor, &claim); count++)
        user = claim.sandbox;
    if (user && count > 1)
        return err_set(err, ERR_VOLUME_BUSY, "volume '%s' is in use by sandbox '%s' and %u more",
                       volume, user, count - 1);
    if (user)
        return err_set(err, ERR_VOLUME_BUSY, "volume '%s' is in use by sandbox '%s'", volume, user);
    (void) snprintf(file, sizeof file, "%s.img", volume);
    (void) snprintf(gone, sizeof gone, "%s.gone", volume);
    if (renameat(host_volumes_fd(k), file, host_volumes_fd(k), gone) < 0)
        return errno == ENOENT ? err_set(err, ERR_NO_VOLUME, "there is no volume '%s'", volume)
                               : err_sys(err, errno, "remove volume '%s'", volume);
    log_line(LOG_INFO, "dropped volume=%s", volume);
    return host_volume_drop(k, volume, ret_order, err) < 0 ? -1 : 1;
}

static int put_info(const struct keeper *k, const char *volume, struct keeper_reply *reply,
                    struct err *err)
{
    struct volume_info *info = &reply->volume[reply->count];
    struct host_claim claim;
    uint32_t cursor = 0;
    const struct sandbox *s;
    struct stat st;

    if (stat_volume(k, volume, &st, err) < 0)
        return -1;
    (void) snprintf(info->id, sizeof info->id, "%s", volume);
    info->bytes = (uint64_t) st.st_size;
    info->stored = (uint64_t) st.st_blocks * 512u;
    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));) {
        const struct volume_use *use = use_of(s, volume);

        info->readers += use && (use->flags & VOLUME_READ_ONLY);
        info->writers += use && !(use->flags & VOLUME_READ_ONLY);
    }
    while (next_sleeper(k, volume, &cursor, &claim)) {
        info->readers += !claim.writes;
        info->writers += claim.writes;
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
        openat(host_volumes_fd(k), ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

/* The cursor counts slots, then images. */
static int users(const struct keeper *k, const struct keeper_request *r, struct keeper_reply *reply,
                 struct err *err)
{
    const char *volume = r->volumes[0].volume;
    struct host_claim claim;
    struct volume_use asleep;
    const struct sandbox *s;
    struct stat st;
    uint32_t cursor;

    if (stat_volume(k, volume, &st, err) < 0)
        return -1;
    for (uint32_t at = r->cursor; (s = keeper_next_alive(k, &at));) {
        const struct volume_use *use = use_of(s, volume);

        if (!use)
            continue;
        if (reply->count == KEEPER_LIST_MAX) {
            reply->next = sandbox_slot(k, s);
            return 0;
        }
        put_user(reply, s->info.id, use);
    }
    cursor = r->cursor > HOST_SLOTS ? r->cursor - HOST_SLOTS : 0;
    for (uint32_t at = cursor; next_sleeper(k, volume, &cursor, &claim); at = cursor) {
        if (reply->count == KEEPER_LIST_MAX) {
            reply->next = HOST_SLOTS + at;
            return 0;
        }
        if (host_claim_use(k, claim.sandbox, volume, &asleep))
            put_user(reply, claim.sandbox, &asleep);
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
