/* Entries come one after another into the directory `base`. Each is made under a name of our own beside where it goes
 * and then renamed, so that what was there (also a link) is replaced, never written through. The directory
 * of the last entry stays open: most have the same one.
 *
 * Directories are made writable and get their mode and time at the end, the last first: filling them needs the
 * one and changes the other. One that was there keeps its own.
 *
 * An owner, if one was asked for, is that of everything made here: entries, directories above them that no entry speaks of,
 * and `base` itself. */
#include "agent/core/user.h"
#include "agent/worker/answer.h"
#include "agent/worker/file.h"
#include "agent/worker/pack.h"
#include "agent/worker/path.h"
#include "agent/worker/place.h"
#include "agent/worker/receive.h"
#include "agent/worker/walk.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define LATE_MAX (32u << 20) /* bytes of memory for directories that wait for their mode */
#define DIR_PATH (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* A copy: the frame it came in is used again for its data. */
struct item {
    char path[AGENT_PATH_MAX], target[AGENT_PATH_MAX];
    uint32_t type, mode;
    uint64_t size;
    int64_t mtime_ns;
};

struct late {
    size_t path; /* in texts */
    uint32_t mode;
    int64_t mtime_ns;
};

struct unpack {
    struct worker *w;
    char root[PATH_TEXT_MAX]; /* for messages only */
    char shown[2 * PATH_TEXT_MAX];
    int base, dir;
    int follow;                    /* O_NOFOLLOW, or 0: a link to a directory will do */
    uint32_t uid, gid;             /* UINT32_MAX: as it is */
    char dir_path[AGENT_PATH_MAX]; /* of dir, relative; "": dir is not open */
    struct late *late;
    size_t late_count, late_room;
    char *texts;
    size_t texts_used, texts_room;
    struct agent_reply end;
};

/* How messages name an entry. */
static const char *shown(struct unpack *u, const char *path)
{
    (void) snprintf(u->shown, sizeof u->shown, "%s/%s", strcmp(u->root, "/") == 0 ? "" : u->root,
                    path);
    return u->shown;
}

static bool component_ok(const char *at, size_t len)
{
    return len > 0 && len <= 255 && !(len == 1 && at[0] == '.') &&
           !(len == 2 && at[0] == '.' && at[1] == '.');
}

static bool path_ok(const char *path)
{
    size_t len = strlen(path);

    if (len == 0 || len >= AGENT_PATH_MAX || path[len - 1] == '/')
        return false;
    while (*path) {
        len = strcspn(path, "/");
        if (!component_ok(path, len))
            return false;
        path += len + (path[len] == '/');
    }
    return true;
}

static int give(const struct unpack *u, int dir, const char *name)
{
    if (u->uid == UINT32_MAX && u->gid == UINT32_MAX)
        return 0;
    return fchownat(dir, name, u->uid, u->gid, AT_SYMLINK_NOFOLLOW);
}

/* One directory down, made if it is missing. */
static int step_down(const struct unpack *u, int at, const char *name)
{
    int fd = openat(at, name, DIR_PATH | u->follow);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (mkdirat(at, name, 0777) == 0) {
        if (give(u, at, name) < 0)
            return -1;
    } else if (errno != EEXIST) {
        return -1;
    }
    return openat(at, name, DIR_PATH | u->follow);
}

/* The directory of an entry as a descriptor, borrowed until the next call; ret_name: its last part. */
static int open_above(struct unpack *u, const char *path, const char **ret_name, struct err *err)
{
    char part[AGENT_PATH_MAX];
    size_t len = (size_t) (path_base(path) - path);
    auto_close int fd = -1;

    *ret_name = path + len;
    if (len == 0)
        return u->base;
    if (u->dir >= 0 && strncmp(u->dir_path, path, len) == 0 && u->dir_path[len] == '\0')
        return u->dir;
    own_close(&u->dir);
    for (size_t at = 0; at < len;) {
        size_t n = strcspn(path + at, "/");
        int next;

        memcpy(part, path + at, n);
        part[n] = '\0';
        next = step_down(u, fd < 0 ? u->base : fd, part);
        if (next < 0) {
            int why = errno;

            memcpy(part, path, at + n);
            part[at + n] = '\0';
            if (why == ENOTDIR || why == ELOOP)
                return path_fail(err, ERR_NOT_DIR, shown(u, part), "a link or file, no directory");
            return path_err(err, why, shown(u, part));
        }
        own_close(&fd);
        fd = next;
        at += n + 1;
    }
    memcpy(u->dir_path, path, len);
    u->dir_path[len] = '\0';
    u->dir = take_fd(&fd);
    return u->dir;
}

static struct timespec time_of(int64_t ns)
{
    struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

    if (t.tv_nsec < 0) {
        t.tv_sec--;
        t.tv_nsec += 1000000000;
    }
    return t;
}

static int set_meta(int fd, uint32_t mode, int64_t mtime_ns)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, time_of(mtime_ns) };

    return fchmod(fd, mode & 0777) < 0 || futimens(fd, times) < 0 ? -1 : 0;
}

/* What is whole under its own name gets the one it came for. A rename between two names of one file leaves both. */
static int settle(struct unpack *u, int dir, const char *temp, const struct item *item,
                  const char *name, struct err *err)
{
    int r = renameat(dir, temp, dir, name), why = errno;

    (void) unlinkat(dir, temp, 0);
    return r < 0 ? path_err(err, why, shown(u, item->path)) : 0;
}

static int put_file(struct unpack *u, int dir, const char *name, const struct item *item,
                    struct err *err)
{
    auto_close int fd = -1;
    char temp[32];
    uint64_t bytes;

    place_temp_name(temp);
    fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return path_err(err, errno, shown(u, item->path));
    if (receive_file(u->w, fd, shown(u, item->path), &bytes, err) < 0)
        goto undo;
    if (bytes != item->size) {
        (void) err_set(err, ERR_PROTOCOL, "unpack: a file has another size than its entry says");
        goto undo;
    }
    if (give(u, dir, temp) < 0 || set_meta(fd, item->mode, item->mtime_ns) < 0 ||
        close(take_fd(&fd)) < 0) {
        (void) path_err(err, errno, shown(u, item->path));
        goto undo;
    }
    u->end.total += bytes;
    return settle(u, dir, temp, item, name, err);

undo:
    (void) unlinkat(dir, temp, 0);
    return -1;
}

static int put_link(struct unpack *u, int dir, const char *name, const struct item *item,
                    struct err *err)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, time_of(item->mtime_ns) };
    char temp[32];

    place_temp_name(temp);
    if (symlinkat(item->target, dir, temp) < 0)
        return path_err(err, errno, shown(u, item->path));
    if (give(u, dir, temp) < 0) {
        (void) path_err(err, errno, shown(u, item->path));
        (void) unlinkat(dir, temp, 0);
        return -1;
    }
    (void) utimensat(dir, temp, times, AT_SYMLINK_NOFOLLOW);
    return settle(u, dir, temp, item, name, err);
}

/* Another name of a file that is there already. */
static int put_same(struct unpack *u, const struct item *item, struct err *err)
{
    auto_close int from = -1;
    const char *name, *old;
    char temp[32];
    int dir = open_above(u, item->target, &old, err);

    if (dir < 0)
        return -1;
    from = fcntl(dir, F_DUPFD_CLOEXEC, 3); /* the next call may close it */
    if (from < 0)
        return err_sys(err, errno, "unpack");
    dir = open_above(u, item->path, &name, err);
    if (dir < 0)
        return -1;
    place_temp_name(temp);
    if (linkat(from, old, dir, temp, 0) < 0)
        return path_err(err, errno, shown(u, item->path));
    return settle(u, dir, temp, item, name, err);
}

static int put_late(struct unpack *u, const struct item *item, struct err *err)
{
    size_t len = strlen(item->path) + 1;

    if (u->texts_used + len + u->late_count * sizeof *u->late > LATE_MAX)
        return path_fail(err, ERR_TOO_BIG, shown(u, item->path), "too many directories");
    if (u->texts_used + len > u->texts_room) {
        size_t room = 2 * (u->texts_used + len) + 4096;
        char *texts = realloc(u->texts, room);

        if (!texts)
            return err_sys(err, ENOMEM, "unpack");
        u->texts = texts;
        u->texts_room = room;
    }
    if (u->late_count == u->late_room) {
        size_t room = u->late_room ? 2 * u->late_room : 64;
        struct late *late = realloc(u->late, room * sizeof *late);

        if (!late)
            return err_sys(err, ENOMEM, "unpack");
        u->late = late;
        u->late_room = room;
    }
    memcpy(u->texts + u->texts_used, item->path, len);
    u->late[u->late_count++] =
        (struct late){ .path = u->texts_used, .mode = item->mode, .mtime_ns = item->mtime_ns };
    u->texts_used += len;
    return 0;
}

static int put_dir(struct unpack *u, int dir, const char *name, const struct item *item,
                   struct err *err)
{
    struct stat st;

    if (mkdirat(dir, name, 0700 | (item->mode & 0777)) == 0)
        return give(u, dir, name) < 0 ? path_err(err, errno, shown(u, item->path))
                                      : put_late(u, item, err);
    if (errno != EEXIST || fstatat(dir, name, &st, u->follow ? AT_SYMLINK_NOFOLLOW : 0) < 0)
        return path_err(err, errno, shown(u, item->path));
    if (!S_ISDIR(st.st_mode))
        return path_fail(err, ERR_NOT_DIR, shown(u, item->path), "a link or file, no directory");
    return 0;
}

/* Continues where it can: a directory that was removed meanwhile needs no mode. */
static int finish_dirs(struct unpack *u, struct err *err)
{
    for (size_t i = u->late_count; i > 0; i--) {
        const struct late *late = &u->late[i - 1];
        const char *path = u->texts + late->path, *name;
        int dir = open_above(u, path, &name, err);
        auto_close int fd = dir < 0 ? -1 : walk_open_dir(dir, name, 0);

        if (fd >= 0 && set_meta(fd, late->mode, late->mtime_ns) < 0)
            return path_err(err, errno, shown(u, path));
    }
    return 0;
}

static int put_item(struct unpack *u, const struct item *item, struct err *err)
{
    const char *name;
    int dir;

    u->end.count++;
    if (item->type == ENTRY_FILE && item->target[0])
        return put_same(u, item, err);
    dir = open_above(u, item->path, &name, err);
    if (dir < 0)
        return -1;
    if (item->type == ENTRY_FILE)
        return put_file(u, dir, name, item, err);
    if (item->type == ENTRY_DIR)
        return put_dir(u, dir, name, item, err);
    return put_link(u, dir, name, item, err);
}

static int take_item(struct unpack *u, const uint8_t *data, size_t len, struct item *item,
                     struct err *err)
{
    struct agent_reply reply;
    bool link, file;

    if (agent_reply_decode(&reply, data, len, err) < 0)
        return -1;
    link = reply.type == ENTRY_LINK;
    file = reply.type == ENTRY_FILE;
    if (!reply.path || !path_ok(reply.path) || (!link && !file && reply.type != ENTRY_DIR) ||
        (link && (!reply.target || !reply.target[0] || strlen(reply.target) >= AGENT_PATH_MAX)) ||
        (file && reply.target && !path_ok(reply.target)))
        return err_set(err, ERR_INVALID, "unpack: an invalid entry");
    item->type = reply.type;
    item->mode = reply.mode;
    item->size = reply.size;
    item->mtime_ns = reply.mtime_ns;
    (void) snprintf(item->path, sizeof item->path, "%s", reply.path);
    (void) snprintf(item->target, sizeof item->target, "%s",
                    (link || file) && reply.target ? reply.target : "");
    return put_item(u, item, err);
}

static int take_all(struct unpack *u, struct err *err)
{
    struct agent_reply ready = { 0 };
    struct item item;

    if (answer_record(u->w, FRAME_REPLY, &ready, err) < 0)
        return -1;
    for (;;) {
        uint8_t *data = answer_data_room();
        struct frame_head head;

        if (answer_receive(u->w, &head, data, err) < 0)
            return -1;
        if (head.type == FRAME_END)
            break;
        if (head.type != FRAME_ITEM)
            return err_set(err, ERR_PROTOCOL, "unpack: a %s frame", frame_name(head.type));
        if (take_item(u, data, head.len, &item, err) < 0)
            return -1;
    }
    if (finish_dirs(u, err) < 0)
        return -1;
    return answer_record(u->w, FRAME_END, &u->end, err);
}

static int find_owner(struct unpack *u, struct err *err)
{
    const struct agent_request *r = u->w->request;

    if (user_owner_of("/etc", r->owner, r->group, &u->uid, &u->gid, err) < 0)
        return -1;
    if (r->owner && !r->group)
        u->gid = user_group_of("/etc", u->uid);
    return 0;
}

int unpack_run(struct worker *w, struct err *err)
{
    static struct unpack u = { .base = -1, .dir = -1 }; /* one process, one request */
    int r;

    u.w = w;
    u.follow = w->request->flags & AGENT_THROUGH ? 0 : O_NOFOLLOW;
    if (path_resolve(w->user->home, w->request->path, u.root, err) < 0 || find_owner(&u, err) < 0)
        return -1;
    if (w->request->flags & AGENT_PARENTS) {
        if (path_parents(u.root, err) < 0)
            return -1;
        if (mkdir(u.root, 0777) == 0 ? give(&u, AT_FDCWD, u.root) < 0
                                     : errno != EEXIST && errno != EROFS)
            return path_err(err, errno, u.root);
    }
    u.base = open(u.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (u.base < 0)
        return path_err(err, errno, u.root);
    r = take_all(&u, err);
    free(u.late);
    free(u.texts);
    own_close(&u.dir);
    own_close(&u.base);
    return r;
}
