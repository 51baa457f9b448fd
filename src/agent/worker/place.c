#include "agent/worker/place.h"

#include "agent/worker/file.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

void place_temp_name(char out[32])
{
    uint64_t number = 0;

    while (getrandom(&number, sizeof number, 0) != (ssize_t) sizeof number)
        ;
    (void) snprintf(out, 32, ".cove-%016llx", (unsigned long long) number);
}

/* Straight into the file. It is emptied only after it was seen to be a regular one. */
static int open_plain(struct place *place, uint32_t flags, uint32_t mode, struct err *err)
{
    int how = O_WRONLY | O_CREAT;

    how |= flags & AGENT_APPEND ? O_APPEND : 0;
    /* Whether it is new is known only this way. */
    place->fd = file_open_regular(AT_FDCWD, place->path, how | O_EXCL, place->path, err);
    place->made = place->fd >= 0 && !(flags & AGENT_APPEND);
    if (place->fd < 0 && err->kind == ERR_EXISTS && !(flags & AGENT_CREATE))
        place->fd = file_open_regular(AT_FDCWD, place->path, how, place->path, err);
    if (place->fd < 0)
        return -1;
    /* A new file is empty: to cut it would be a change that watchers are told of. */
    if (!(flags & AGENT_APPEND) && !place->made && ftruncate(place->fd, 0) < 0)
        return path_err(err, errno, place->path);
    if ((mode & AGENT_MODE_SET) && fchmod(place->fd, mode & 07777) < 0)
        return path_err(err, errno, place->path);
    return 0;
}

/* The old file at `real`: it must be one that this user could also have written in place. Fills st
 * and returns 1, or 0 when there is none. */
static int look_at_old(const struct place *place, char real[PATH_MAX], bool create, struct stat *st,
                       struct err *err)
{
    auto_close int fd = -1;

    if (lstat(place->path, st) < 0) {
        if (errno != ENOENT)
            return path_err(err, errno, place->path);
        return 0;
    }
    if (create)
        return path_err(err, EEXIST, place->path);
    /* Through a link the file behind it is replaced, not the link. */
    if (S_ISLNK(st->st_mode) && (!realpath(place->path, real) || stat(real, st) < 0))
        return path_err(err, errno, place->path);
    fd = file_open_regular(AT_FDCWD, real, O_WRONLY, place->path, err);
    /* A running program cannot be written to, but it can be replaced. */
    if (fd < 0 && !(err->kind == ERR_STATE && S_ISREG(st->st_mode)))
        return -1;
    return 1;
}

static int open_temp(struct place *place, struct err *err)
{
    place->fd = openat(place->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (place->fd >= 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)
        return path_err(err, errno, place->path);
    place_temp_name(place->temp);
    place->fd =
        openat(place->dir, place->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (place->fd < 0) {
        place->temp[0] = '\0';
        return path_err(err, errno, place->path);
    }
    return 0;
}

static int open_atomic(struct place *place, uint32_t flags, uint32_t mode, struct err *err)
{
    char real[PATH_MAX];
    struct stat old;
    int existed;

    if (strlen(place->path) >= sizeof real)
        return path_err(err, ENAMETOOLONG, place->path);
    (void) strcpy(real, place->path);
    existed = look_at_old(place, real, flags & AGENT_CREATE, &old, err);
    if (existed < 0)
        return -1;
    if (strlen(path_base(real)) >= sizeof place->name)
        return path_err(err, ENAMETOOLONG, place->path);
    (void) strcpy(place->name, path_base(real));
    place->replace = !(flags & AGENT_CREATE);
    place->dir = path_open_parent(real, err);
    if (place->dir < 0 || open_temp(place, err) < 0)
        return -1;
    /* The owner first: changing it clears bits of the mode. Only root may give a file away; for
     * others the new file is their own, and then it must not be setuid. */
    if (existed) {
        bool given = fchown(place->fd, old.st_uid, old.st_gid) == 0;

        if (!given)
            given = fchown(place->fd, (uid_t) -1, old.st_gid) == 0 && !(old.st_mode & S_ISUID);
        if (fchmod(place->fd, old.st_mode & (given ? 07777u : 0777u)) < 0)
            return path_err(err, errno, place->path);
    }
    if ((mode & AGENT_MODE_SET) && fchmod(place->fd, mode & 07777) < 0)
        return path_err(err, errno, place->path);
    return 0;
}

int place_open(struct place *place, uint32_t flags, uint32_t mode, struct err *err)
{
    int rc = flags & AGENT_ATOMIC ? open_atomic(place, flags, mode, err)
                                  : open_plain(place, flags, mode, err);

    if (rc < 0)
        place_done(place);
    return rc;
}

/* A file without a name gets its temporary one: only a link can name it, only a rename replaces. */
static int name_temp(struct place *place, struct err *err)
{
    char self[40];

    (void) snprintf(self, sizeof self, "/proc/self/fd/%d", place->fd);
    place_temp_name(place->temp);
    if (linkat(AT_FDCWD, self, place->dir, place->temp, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    place->temp[0] = '\0';
    return path_err(err, errno, place->path);
}

static int give_name(struct place *place)
{
    if (place->replace) {
        if (renameat(place->dir, place->temp, place->dir, place->name) < 0)
            return -1;
        place->temp[0] = '\0';
        return 0;
    }
    /* A link, unlike a rename, refuses a name that is in use; place_done removes the other. */
    return linkat(place->dir, place->temp, place->dir, place->name, 0);
}

int place_finish(struct place *place, struct stat *ret_st, struct err *err)
{
    struct stat st;

    if (place->dir >= 0 && !place->temp[0] && name_temp(place, err) < 0)
        return -1;
    if (fstat(place->fd, &st) < 0)
        return path_err(err, errno, place->path);
    if (close(take_fd(&place->fd)) < 0) /* some file systems say only here that they are full */
        return path_err(err, errno, place->path);
    if (place->dir >= 0 && give_name(place) < 0)
        return path_err(err, errno, place->path);
    *ret_st = st;
    place->made = false;
    return 0;
}

/* Half a file that was not there before: taken away, if it is still the one that was made. */
static void take_away(struct place *place)
{
    struct stat st, now;

    if (fstat(place->fd, &st) == 0 && lstat(place->path, &now) == 0 && st.st_dev == now.st_dev &&
        st.st_ino == now.st_ino)
        (void) unlink(place->path);
}

void place_done(struct place *place)
{
    if (place->made && place->fd >= 0)
        take_away(place);
    place->made = false;
    if (place->temp[0])
        (void) unlinkat(place->dir, place->temp, 0);
    place->temp[0] = '\0';
    own_close(&place->fd);
    own_close(&place->dir);
}
