#include "cli/copy/restore_state.h"

#include "base/io.h"
#include "base/own.h"
#include "template/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define READY     "restore.ready"
#define OLD       "restore.old"
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* What a state is made of. New parts are made by a restore, even if they are empty, so that old ones go. Records of sandboxes that ran
 * belong to the old state, and go with it. */
static const struct {
    const char *name;
    bool part;  /* a backup has it */
    bool holds; /* something of it is lost if it is replaced */
} names[] = {
    { "server", true, true },     { "images", true, true },    { "disks", true, false },
    { "volumes", true, true },    { "agents", true, false },   { "templates", true, false },
    { "image.key", true, false }, { "journal", false, false }, { "sandboxes", false, true },
};

/* Files and directories below, but for hidden ones and the lock of server/. */
static bool has_entries(int at, const char *name)
{
    int fd = openat(at, name, DIR_FLAGS);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "lock") != 0)
            return true;
    return false;
}

bool restore_is_empty(int state_fd)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].holds && has_entries(state_fd, names[i].name))
            return false;
    return true;
}

/* Whether a cgroup has processes, on v2 also those below it. */
static bool is_populated(const char *cgroup)
{
    auto_close int dir = open(cgroup, DIR_FLAGS);
    char text[256];

    return dir >= 0 && (io_read_text(dir, "cgroup.procs", text, sizeof text) > 0 ||
                        (io_read_text(dir, "cgroup.events", text, sizeof text) > 0 &&
                         strstr(text, "populated 1")));
}

/* Sandboxes outlive the keeper; their cgroups, below one that is named after the state directory, tell of them. */
bool restore_has_sandboxes(int state_fd)
{
    static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/cove.slice",
                                          "/sys/fs/cgroup/*" };
    bool found = false;
    struct stat st;

    if (fstat(state_fd, &st) < 0)
        return true;
    for (size_t i = 0; !found && i < ARRAY_LEN(places); i++) {
        char pattern[128];
        glob_t list;

        (void) snprintf(pattern, sizeof pattern, "%s/cove-%" PRIx64 "-%" PRIx64 "/i*", places[i],
                        (uint64_t) st.st_dev, (uint64_t) st.st_ino);
        if (glob(pattern, GLOB_NOSORT, NULL, &list) != 0)
            continue;
        for (size_t n = 0; !found && n < list.gl_pathc; n++)
            found = is_populated(list.gl_pathv[n]);
        globfree(&list);
    }
    return found;
}

int restore_begin(int state_fd, int *ret_fd, struct err *err)
{
    if (tree_remove(state_fd, RESTORE_NEW, err) < 0)
        return -1;
    if (mkdirat(state_fd, RESTORE_NEW, 0700) < 0)
        return err_sys(err, errno, "make " RESTORE_NEW);
    *ret_fd = openat(state_fd, RESTORE_NEW, DIR_FLAGS);
    return *ret_fd < 0 ? err_sys(err, errno, "open " RESTORE_NEW) : 0;
}

void restore_abort(int state_fd)
{
    struct err ignored;

    (void) tree_remove(state_fd, RESTORE_NEW, &ignored);
}

int restore_commit(int state_fd, struct err *err)
{
    if (syncfs(state_fd) < 0 || renameat(state_fd, RESTORE_NEW, state_fd, READY) < 0 ||
        fsync(state_fd) < 0)
        return err_sys(err, errno, "put the restored state in place");
    return 0;
}

/* Away with the old one, if it is there. A name that an earlier try moved already is removed with it. */
static int move_away(int state_fd, int old_fd, const char *name, struct err *err)
{
    if (faccessat(state_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (tree_remove(old_fd, name, err) < 0)
        return -1;
    return renameat(state_fd, name, old_fd, name) < 0 ? err_sys(err, errno, "move %s", name) : 0;
}

static int move_parts(int state_fd, int ready_fd, int old_fd, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *name = names[i].name;
        bool there = faccessat(ready_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;

        if (names[i].part && !there)
            continue; /* in place already */
        if (move_away(state_fd, old_fd, name, err) < 0)
            return -1;
        if (there && renameat(ready_fd, name, state_fd, name) < 0)
            return err_sys(err, errno, "move %s", name);
    }
    return 0;
}

int restore_finish(int state_fd, struct err *err)
{
    auto_close int ready = openat(state_fd, READY, DIR_FLAGS), old = -1;

    if (ready < 0 && errno == ENOENT)
        return tree_remove(state_fd, OLD, err);
    if (mkdirat(state_fd, OLD, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make " OLD);
    old = openat(state_fd, OLD, DIR_FLAGS);
    if (ready < 0 || old < 0)
        return err_sys(err, errno, "finish the restore");
    if (move_parts(state_fd, ready, old, err) < 0)
        return err_wrap(err, "finish the restore");
    if (fsync(state_fd) < 0 || unlinkat(state_fd, READY, AT_REMOVEDIR) < 0 || fsync(state_fd) < 0)
        return err_sys(err, errno, "finish the restore");
    return tree_remove(state_fd, OLD, err);
}

int restore_finish_at(const char *state, struct err *err)
{
    auto_close int fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), lock = -1;

    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(err, errno, "open %s", state);
    if (faccessat(fd, READY, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
        faccessat(fd, OLD, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    lock = openat(fd, "keeper.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, ERR_STATE, "a restore works on %s", state);
    return restore_finish(fd, err);
}
