/* walk.h - every entry of a tree, by descriptors, however deep and wide it is.
 *
 * Each directory is opened relative to the one above it, without following links, and only the
 * deepest WALK_OPEN_MAX stay open. To come back to one that was closed, ".." of its child is opened
 * and must be the directory that was left (device and inode), and reading continues where it stopped.
 * So ten thousand levels need few descriptors, no C stack, and memory for one path; and a process that moves
 * directories about during the walk ends it with an error, but never leads it elsewhere.
 *
 *     while ((step = walk_next(&walk, err)) > 0)
 *         WALK_ENTRY: walk.name in walk.dirfd; walk_enter goes into it
 *         WALK_LEAVE: a directory that was entered is finished; it is walk.name in walk.dirfd
 *
 * Callers: subtree.c, move.c, find.c, grep.c, pack.c, watch.c. */
#ifndef COVE_AGENT_WORKER_WALK_H
#define COVE_AGENT_WORKER_WALK_H

#include "base/err.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define WALK_OPEN_MAX 32 /* directories open at once */
#define WALK_LINK_MAX 8  /* of them entered through links: these pin the one above */

#define WALK_ONE_FS    1u /* mount points are not entered */
#define WALK_SKIP_PROC 2u /* nor are procfs and sysfs, unless the walk began in one */
#define WALK_SORTED                                                                                \
    4u /* by name; takes memory for the names of the directories that the walk is in */

struct walk_names;

enum walk_step { WALK_END, WALK_ENTRY, WALK_LEAVE };

struct walk_level {
    DIR *dir; /* NULL: closed for a while */
    long at;  /* where its reading continues, when closed */
    dev_t dev;
    ino_t ino;
    size_t path_len;
    bool linked;              /* entered through a link: ".." is not the directory above */
    struct walk_names *names; /* WALK_SORTED: read when it was entered */
};

struct walk {
    unsigned flags;
    struct walk_level *levels;
    size_t depth, room; /* levels in use: 1 in the directory where the walk began */
    char *path;         /* of the current entry */
    size_t path_len, path_room;
    size_t linked; /* levels entered through links */
    bool in_proc;
    int left; /* WALK_LEAVE: the directory itself, open until the next step */
    /* the current entry */
    int dirfd;
    const char *name;
    unsigned char type; /* DT_*, perhaps DT_UNKNOWN */
};

#define WALK_INIT                                                                                  \
    {                                                                                              \
        .left = -1                                                                                 \
    }

/* Takes over fd, a readable directory, also on failure. `path` is what entries are named after. */
int walk_open(struct walk *walk, int fd, const char *path, unsigned flags, struct err *err);

/* -1 only when the walk cannot continue. */
int walk_next(struct walk *walk, struct err *err);

/* Into the current entry. On failure the walk continues behind it. */
int walk_enter(struct walk *walk, bool follow, struct err *err);

/* Is the current entry a directory (a link to one is not)? */
bool walk_is_dir(const struct walk *walk);

void walk_close(struct walk *walk);

/* A directory for reading: never through a link, with WALK_ONE_FS never across a mount point
 * (EXDEV). -1 with errno. */
int walk_open_dir(int dirfd, const char *name, unsigned flags);

#endif
