#include "agent/worker/pack.h"

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

struct pack {
    struct worker *w;
    size_t skip;            /* of a path, to where it is relative */
    struct agent_reply end; /* count: entries, total: those left out for want of rights */
};

/* A tree changes while it is walked: what is gone, or no longer what it was, is not in it. 0: continue. */
static int left_out(struct pack *pack, const struct err *why)
{
    if (why->kind == ERR_DENIED && (pack->w->request->flags & AGENT_READABLE)) {
        pack->end.total++;
        return 0;
    }
    return why->kind == ERR_NO_PATH || why->kind == ERR_NOT_FILE || why->kind == ERR_STATE ? 0 : -1;
}

static int send_entry(struct pack *pack, const char *path, struct agent_reply *item,
                      struct err *err)
{
    if (strlen(path + pack->skip) >= AGENT_PATH_MAX)
        return path_fail(err, ERR_TOO_BIG, path, "the path is too long");
    item->path = path + pack->skip;
    pack->end.count++;
    return answer_record(pack->w, FRAME_ITEM, item, err);
}

/* As many bytes as the entry says: what was added since is not in it. */
static int send_bytes(struct worker *w, int fd, uint64_t left, const char *path, struct err *err)
{
    while (left > 0) {
        size_t want = left < FRAME_DATA_MAX ? (size_t) left : FRAME_DATA_MAX;
        ssize_t n = read(fd, answer_data_room(), want);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return path_err(err, errno, path);
        if (n == 0)
            return path_fail(err, ERR_STATE, path, "it became shorter while it was read");
        if (answer_data(w, (size_t) n, err) < 0)
            return -1;
        left -= (uint64_t) n;
    }
    return answer_data_end(w, err);
}

static int pack_file(struct pack *pack, int dirfd, const char *name, const char *path,
                     struct err *err)
{
    auto_close int fd = file_open_regular(dirfd, name, O_RDONLY | O_NOFOLLOW, path, err);
    struct agent_reply item = { 0 };
    struct stat st;

    if (fd < 0)
        return left_out(pack, err);
    if (fstat(fd, &st) < 0)
        return path_err(err, errno, path);
    entry_fill(&item, path, &st);
    if (send_entry(pack, path, &item, err) < 0)
        return -1;
    return send_bytes(pack->w, fd, item.size, path, err);
}

static int pack_entry(struct pack *pack, struct walk *walk, struct err *err)
{
    char target[AGENT_PATH_MAX];
    struct agent_reply item = { 0 };
    struct stat st;

    if (fstatat(walk->dirfd, walk->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        (void) path_err(err, errno, walk->path);
        return left_out(pack, err);
    }
    if (S_ISREG(st.st_mode))
        return pack_file(pack, walk->dirfd, walk->name, walk->path, err);
    if (!S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
        return 0;
    entry_fill(&item, walk->path, &st);
    item.size = 0;
    if (S_ISLNK(st.st_mode)) {
        entry_target(&item, walk->dirfd, walk->name, target, sizeof target);
        return item.target ? send_entry(pack, walk->path, &item, err) : 0;
    }
    /* Entered first: an empty directory must not stand for one that could not be read. */
    if (walk_enter(walk, false, err) < 0)
        return left_out(pack, err);
    return send_entry(pack, walk->path, &item, err);
}

static int pack_tree(struct pack *pack, const char *path, struct err *err)
{
    struct walk walk = WALK_INIT;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC), step = 0, r = 0;

    if (fd < 0)
        return path_err(err, errno, path);
    r = walk_open(&walk, fd, path, WALK_SKIP_PROC, err);
    while (r == 0 && (step = walk_next(&walk, err)) > 0)
        if (step == WALK_ENTRY)
            r = pack_entry(pack, &walk, err);
    walk_close(&walk);
    return step < 0 ? -1 : r;
}

/* A path that is too long for an archive is found before anything is sent: behind the first byte of an answer there is no way to
 * say why it ended. What cannot be entered here is told, or left out, when it is packed. */
static int check_depth(const struct pack *pack, const char *path, struct err *err)
{
    struct walk walk = WALK_INIT;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC), step = 0, r;
    struct err ignored;

    if (fd < 0)
        return path_err(err, errno, path);
    r = walk_open(&walk, fd, path, WALK_SKIP_PROC, err);
    while (r == 0 && (step = walk_next(&walk, &ignored)) > 0) {
        if (step != WALK_ENTRY)
            continue;
        if (walk.path_len - pack->skip >= AGENT_PATH_MAX)
            r = path_fail(err, ERR_TOO_BIG, path, "a path in it is longer than 4095 bytes");
        else if (walk_is_dir(&walk))
            (void) walk_enter(&walk, false, &ignored);
    }
    walk_close(&walk);
    return r;
}

int pack_run(struct worker *w, struct err *err)
{
    char path[PATH_TEXT_MAX];
    struct pack pack = { .w = w };
    struct agent_reply reply = { 0 };
    struct stat st;
    int r;

    if (path_resolve(w->user->home, w->request->path, path, err) < 0)
        return -1;
    if (stat(path, &st) < 0)
        return path_err(err, errno, path);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return path_fail(err, ERR_NOT_FILE, path, "neither a file nor a directory");
    if (access(path, R_OK) < 0) /* said before anything is promised */
        return path_err(err, errno, path);
    pack.skip = strcmp(path, "/") == 0 ? 1 : strlen(path) + 1;
    if (S_ISDIR(st.st_mode) && check_depth(&pack, path, err) < 0)
        return -1;
    entry_fill(&reply, path, &st);
    if (answer_record(w, FRAME_REPLY, &reply, err) < 0)
        return -1;
    if (S_ISDIR(st.st_mode)) {
        r = pack_tree(&pack, path, err);
    } else {
        auto_close int fd = file_open_regular(AT_FDCWD, path, O_RDONLY, path, err);
        struct agent_reply item = { 0 };

        if (fd < 0)
            return -1;
        if (fstat(fd, &st) < 0)
            return path_err(err, errno, path);
        pack.skip = (size_t) (path_base(path) - path);
        entry_fill(&item, path, &st);
        r = send_entry(&pack, path, &item, err);
        if (r == 0)
            r = send_bytes(w, fd, item.size, path, err);
    }
    return r < 0 ? -1 : answer_record(w, FRAME_END, &pack.end, err);
}
