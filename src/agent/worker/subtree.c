#include "agent/worker/subtree.h"

#include "agent/core/user.h"
#include "agent/worker/answer.h"
#include "agent/worker/entry.h"
#include "agent/worker/file.h"
#include "agent/worker/path.h"
#include "agent/worker/walk.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define LIST_LIMIT 10000000u
#define REFILLS    100u /* times that a directory may fill again while it is removed */

/* One entry of a listing. Returns how many were sent: it may be gone since it was read. */
static int list_item(struct worker *w, struct walk *walk, struct err *err)
{
    static struct entry_room room;
    char target[AGENT_PATH_MAX];
    struct agent_reply item = { .path = walk->path };
    struct stat st;

    if (fstatat(walk->dirfd, walk->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        entry_fill(&item, walk->path, &st);
    else if (errno == ENOENT)
        return 0;
    else
        item.type = entry_type((mode_t) DTTOIF(walk->type));
    if (item.type == ENTRY_LINK)
        entry_target(&item, walk->dirfd, walk->name, target, sizeof target);
    entry_detail(&item, w->request, &room);
    return answer_record(w, FRAME_ITEM, &item, err) < 0 ? -1 : 1;
}

static int list_walk(struct worker *w, struct walk *walk, struct agent_reply *end, struct err *err)
{
    const uint64_t limit = w->request->limit ? w->request->limit : LIST_LIMIT;
    const uint64_t levels = w->request->depth ? w->request->depth : 1;
    struct err below;
    int step, sent;

    while ((step = walk_next(walk, err)) > 0) {
        if (step == WALK_LEAVE)
            continue;
        if (end->count == limit) {
            end->flags |= AGENT_TRUNCATED;
            return 0;
        }
        if (walk->path_len >= 2 * AGENT_PATH_MAX) { /* longer than a reply can say */
            end->flags |= AGENT_TRUNCATED;
            continue;
        }
        sent = list_item(w, walk, err);
        if (sent < 0)
            return -1;
        end->count += (uint64_t) sent;
        /* A directory that cannot be read is an entry like others. */
        if (walk->depth < levels && walk_is_dir(walk))
            (void) walk_enter(walk, false, &below);
    }
    return step;
}

int subtree_list(struct worker *w, struct err *err)
{
    char path[PATH_TEXT_MAX];
    struct agent_reply end = { 0 };
    struct walk walk = WALK_INIT;
    int fd, rc;

    if (path_resolve(w->user->home, w->request->path, path, err) < 0)
        return -1;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return path_err(err, errno, path);
    rc = walk_open(&walk, fd, path, w->request->flags & AGENT_SORTED ? WALK_SORTED : 0, err);
    if (rc == 0)
        rc = list_walk(w, &walk, &end, err);
    walk_close(&walk);
    return rc < 0 ? -1 : answer_record(w, FRAME_END, &end, err);
}

/* unlinkat, counted; what is gone already is no failure. */
static int unlink_counted(int dirfd, const char *name, int flags, const char *path, uint64_t *count,
                          struct err *err)
{
    if (unlinkat(dirfd, name, flags) == 0) {
        (*count)++;
        return 0;
    }
    if (errno == ENOENT)
        return 0;
    if (errno == EBUSY)
        return path_fail(err, ERR_STATE, path, "is a mount point");
    return path_err(err, errno, path);
}

/* A directory is entered, or removed when it cannot be read but is empty. */
static int remove_step(struct walk *walk, uint64_t *count, struct err *err)
{
    struct err rmdir_err; /* says less than the one of entering */

    if (!walk_is_dir(walk))
        return unlink_counted(walk->dirfd, walk->name, 0, walk->path, count, err);
    if (walk_enter(walk, false, err) == 0)
        return 0;
    if (err->kind != ERR_DENIED)
        return err->kind == ERR_NO_PATH ? 0 : -1;
    return unlink_counted(walk->dirfd, walk->name, AT_REMOVEDIR, walk->path, count, &rmdir_err);
}

static int remove_below(struct worker *w, struct walk *walk, uint64_t *count, struct err *err)
{
    uint64_t steps = 0;
    unsigned refills = 0;
    int step;

    while ((step = walk_next(walk, err)) > 0) {
        if (answer_wanted(w, ++steps, err) < 0)
            return -1;
        if (step == WALK_ENTRY) {
            if (remove_step(walk, count, err) < 0)
                return -1;
            continue;
        }
        if (unlink_counted(walk->dirfd, walk->name, AT_REMOVEDIR, walk->path, count, err) == 0)
            continue;
        /* A process writes there, or the file system skipped entries: once more. */
        if (err->kind != ERR_NOT_EMPTY || ++refills > REFILLS || walk_enter(walk, false, err) < 0)
            return -1;
    }
    return step;
}

/* All that is in an open directory, which is taken over. */
static int empty_dir(struct worker *w, int fd, const char *path, uint64_t *count, struct err *err)
{
    struct walk walk = WALK_INIT;
    int rc = walk_open(&walk, fd, path, WALK_ONE_FS, err);

    if (rc == 0)
        rc = remove_below(w, &walk, count, err);
    walk_close(&walk);
    return rc;
}

int subtree_remove_at(struct worker *w, int dirfd, const char *name, const char *path,
                      uint64_t *count, struct err *err)
{
    for (unsigned refills = 0;; refills++) {
        int fd = walk_open_dir(dirfd, name, WALK_ONE_FS);
        bool readable = fd >= 0;
        int rc;

        if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) /* a file or a link */
            return unlink_counted(dirfd, name, 0, path, count, err);
        if (fd < 0 && errno == EXDEV)
            return path_fail(err, ERR_STATE, path, "is a mount point");
        if (fd < 0 && errno != EACCES)
            return path_err(err, errno, path);
        if (readable && empty_dir(w, fd, path, count, err) < 0)
            return -1;
        rc = unlink_counted(dirfd, name, AT_REMOVEDIR, path, count, err);
        if (rc < 0 && !readable && err->kind == ERR_NOT_EMPTY)
            return path_err(err, EACCES, path); /* has entries, but we may not read them */
        if (rc == 0 || err->kind != ERR_NOT_EMPTY || refills == REFILLS)
            return rc;
    }
}

int subtree_remove(struct worker *w, struct err *err)
{
    char path[PATH_TEXT_MAX];
    auto_close int parent = -1;
    struct agent_reply reply = { 0 };
    struct stat st;

    if (path_resolve(w->user->home, w->request->path, path, err) < 0)
        return -1;
    if (path_is_special(path))
        return path_fail(err, ERR_INVALID, path,
                         path[1] ? "cannot be removed by this name" : "is the root directory");
    parent = path_open_parent(path, err);
    if (parent < 0)
        return -1;
    if (fstatat(parent, path_base(path), &st, AT_SYMLINK_NOFOLLOW) < 0)
        return path_err(err, errno, path);
    if (w->request->flags & AGENT_RECURSIVE) {
        if (subtree_remove_at(w, parent, path_base(path), path, &reply.count, err) < 0)
            return -1;
    } else if (unlink_counted(parent, path_base(path), S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0, path,
                              &reply.count, err) < 0) {
        return -1;
    }
    return answer_record(w, FRAME_REPLY, &reply, err);
}

/* What chmod and chown do to each thing. */
struct change {
    bool owner; /* else the mode */
    mode_t mode;
    uid_t uid;
    gid_t gid;
};

static int change_fd(const struct change *c, int fd)
{
    return c->owner ? fchown(fd, c->uid, c->gid) : fchmod(fd, c->mode);
}

/* Never through a link: a link has an owner, but no mode of its own. */
static int change_at(const struct change *c, int dirfd, const char *name)
{
    if (c->owner)
        return fchownat(dirfd, name, c->uid, c->gid, AT_SYMLINK_NOFOLLOW);
    if (fchmodat(dirfd, name, c->mode, AT_SYMLINK_NOFOLLOW) == 0 || errno == EOPNOTSUPP)
        return 0;
    return -1;
}

/* Directories change when they are left, so that a mode without x does not lock us out; one that we
 * may not enter yet changes first. Returns what changed, or -1. */
static int change_step(const struct change *c, struct walk *walk, struct err *err)
{
    if (walk_is_dir(walk)) {
        if (walk_enter(walk, false, err) == 0 || err->kind == ERR_STATE)
            return 0; /* another file system is left alone */
        if (err->kind == ERR_DENIED && change_at(c, walk->dirfd, walk->name) == 0 &&
            walk_enter(walk, false, err) == 0)
            return 0;
        return err->kind == ERR_NO_PATH ? 0 : -1;
    }
    if (change_at(c, walk->dirfd, walk->name) == 0)
        return 1;
    return errno == ENOENT ? 0 : path_err(err, errno, walk->path);
}

static int change_below(struct worker *w, const struct change *c, struct walk *walk,
                        uint64_t *count, struct err *err)
{
    uint64_t steps = 0;
    int step;

    while ((step = walk_next(walk, err)) > 0) {
        int changed = 1;

        if (answer_wanted(w, ++steps, err) < 0)
            return -1;
        if (step == WALK_ENTRY)
            changed = change_step(c, walk, err);
        else if (change_fd(c, walk->left) < 0)
            changed = path_err(err, errno, walk->path);
        if (changed < 0)
            return -1;
        *count += (uint64_t) changed;
    }
    return step;
}

/* All below the directory, not itself. */
static int change_tree(struct worker *w, const struct change *c, const char *path, uint64_t *count,
                       struct err *err)
{
    struct walk walk = WALK_INIT;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    int rc;

    if (fd < 0 && errno == EACCES && !c->owner && chmod(path, c->mode) == 0)
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return path_err(err, errno, path);
    rc = walk_open(&walk, fd, path, WALK_ONE_FS, err);
    if (rc == 0)
        rc = change_below(w, c, &walk, count, err);
    walk_close(&walk);
    return rc;
}

static int change_run(struct worker *w, const struct change *c, struct err *err)
{
    char path[PATH_TEXT_MAX];
    uint64_t count = 1;
    struct stat st;

    if (path_resolve(w->user->home, w->request->path, path, err) < 0)
        return -1;
    if (stat(path, &st) < 0)
        return path_err(err, errno, path);
    if ((w->request->flags & AGENT_RECURSIVE) && S_ISDIR(st.st_mode) &&
        change_tree(w, c, path, &count, err) < 0)
        return -1;
    if ((c->owner ? chown(path, c->uid, c->gid) : chmod(path, c->mode)) < 0)
        return path_err(err, errno, path);
    return file_reply_entry(w, path, 0, count, err);
}

int subtree_chmod(struct worker *w, struct err *err)
{
    struct change c = { .mode = w->request->mode & 07777 };

    return change_run(w, &c, err);
}

int subtree_chown(struct worker *w, struct err *err)
{
    struct change c = { .owner = true };

    if (user_owner_of("/etc", w->request->owner, w->request->group, &c.uid, &c.gid, err) < 0)
        return -1;
    return change_run(w, &c, err);
}
