#include "agent/worker/entry.h"

#include "agent/core/user.h"
#include "agent/worker/xattr.h"
#include "base/own.h"

#include <string.h>

#define CACHE_SIZE 16

struct cached {
    uint32_t id;
    bool filled, found;
    char name[USER_NAME_MAX];
};

static const char *cached_name(struct cached cache[CACHE_SIZE], uint32_t id,
                               bool (*look)(const char *, uint32_t, char *, size_t))
{
    struct cached *slot = &cache[id % CACHE_SIZE];

    if (!slot->filled || slot->id != id) {
        slot->filled = true;
        slot->id = id;
        slot->found = look("/etc", id, slot->name, sizeof slot->name);
    }
    return slot->found ? slot->name : NULL;
}

enum agent_entry_type entry_type(mode_t mode)
{
    static const struct {
        mode_t format;
        enum agent_entry_type type;
    } types[] = {
        { S_IFREG, ENTRY_FILE },  { S_IFDIR, ENTRY_DIR },     { S_IFLNK, ENTRY_LINK },
        { S_IFIFO, ENTRY_FIFO },  { S_IFSOCK, ENTRY_SOCKET }, { S_IFCHR, ENTRY_CHAR },
        { S_IFBLK, ENTRY_BLOCK },
    };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if ((mode & S_IFMT) == types[i].format)
            return types[i].type;
    return ENTRY_NONE;
}

/* Anybody may set a time that nanoseconds cannot hold. */
static int64_t time_ns(const struct timespec *t)
{
    const int64_t most = INT64_MAX / 1000000000 - 1;
    int64_t seconds = t->tv_sec;

    if (seconds > most || seconds < -most)
        return seconds > 0 ? INT64_MAX : INT64_MIN;
    return seconds * 1000000000 + t->tv_nsec;
}

void entry_fill(struct agent_reply *reply, const char *path, const struct stat *st)
{
    static struct cached users[CACHE_SIZE], groups[CACHE_SIZE];

    reply->path = path;
    reply->type = entry_type(st->st_mode);
    reply->mode = st->st_mode & 07777;
    reply->uid = st->st_uid;
    reply->gid = st->st_gid;
    reply->owner = cached_name(users, st->st_uid, user_name_of);
    reply->group = cached_name(groups, st->st_gid, user_group_name_of);
    reply->size = (uint64_t) st->st_size;
    reply->mtime_ns = time_ns(&st->st_mtim);
}

void entry_target(struct agent_reply *reply, int dirfd, const char *name, char *out, size_t size)
{
    ssize_t n = readlinkat(dirfd, name, out, size - 1);

    if (n < 0)
        return;
    out[n] = '\0';
    reply->target = out;
}

void entry_detail(struct agent_reply *reply, const struct agent_request *request,
                  struct entry_room *room)
{
    const char *path = reply->path;
    struct stat st;

    if ((request->flags & AGENT_RESOLVE) && reply->type == ENTRY_LINK) {
        reply->target = realpath(path, room->target);
        if (reply->target && stat(reply->target, &st) == 0) {
            reply->target_type = entry_type(st.st_mode);
            reply->target_mode = st.st_mode & 07777;
        }
    }
    if (request->name && (reply->type == ENTRY_FILE || reply->type == ENTRY_DIR ||
                          reply->target_type == ENTRY_FILE || reply->target_type == ENTRY_DIR)) {
        reply->attrs.data = room->attrs;
        reply->attrs.len = xattr_collect(path, request->name, room->attrs, sizeof room->attrs);
    }
}
