#include "jail/ids.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert((uint64_t) IDS_FIRST + (uint64_t) IDS_BLOCKS * IDS_SLOTS * IDS_PER_SANDBOX <
                   UINT32_MAX,
               "the last id fits, and is not -1");

/* What a file says: whose the block is, and which of the owner's. */
struct claim {
    char owner[160];
    unsigned number;
};

static int read_claim(int fd, struct claim *ret)
{
    char text[176], *line;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    if (n < 0)
        return -1;
    text[n] = '\0';
    line = strchr(text, '\n');
    ret->number = 0;
    if (line && sscanf(line + 1, "%3u", &ret->number) != 1)
        ret->number = 0;
    text[strcspn(text, "\n")] = '\0';
    (void) snprintf(ret->owner, sizeof ret->owner, "%.159s", text);
    return 0;
}

static int write_claim(int fd, const char *instance, uint32_t number)
{
    char text[184];
    int len = number == 0 ? snprintf(text, sizeof text, "%s\n", instance)
                          : snprintf(text, sizeof text, "%s\n%u\n", instance, number);

    return ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t) len, 0) != len ? -1 : 0;
}

/* Is the block this instance's to take? Only its own in the first round, then any that is free. */
static bool may_take(const struct ids *ids, int fd, bool only_own)
{
    struct claim claim;

    if (read_claim(fd, &claim) < 0)
        return false;
    if (strcmp(claim.owner, ids->instance) == 0)
        return claim.number == ids->count;
    if (only_own)
        return false;
    return !claim.owner[0] || claim.owner[0] == '/' ||
           faccessat(ids->cgroup_fd, claim.owner, F_OK, 0) < 0;
}

/* What stands there already is not written again: in between, the file would be empty, and the block anybody's, with sandboxes in it. */
static bool is_claimed(const struct ids *ids, int fd)
{
    struct claim claim;

    return read_claim(fd, &claim) == 0 && strcmp(claim.owner, ids->instance) == 0;
}

/* 1: taken; 0: not one to take. */
static int take(struct ids *ids, uint32_t block, bool only_own, struct err *err)
{
    auto_close int fd = -1;
    char name[16];

    (void) snprintf(name, sizeof name, "%u", block);
    fd = openat(ids->dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, errno, "open id block %u", block);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || !may_take(ids, fd, only_own))
        return 0;
    if (!is_claimed(ids, fd) && write_claim(fd, ids->instance, ids->count) < 0)
        return err_sys(err, errno, "write id block %u", block);
    ids->block[ids->count] = block;
    ids->lock_fd[ids->count++] = take_fd(&fd);
    return 1;
}

/* 1: found. */
static int look_for(struct ids *ids, bool only_own, struct err *err)
{
    for (uint32_t block = 0; block < IDS_BLOCKS; block++) {
        int rc = take(ids, block, only_own, err);

        if (rc != 0)
            return rc;
    }
    return 0;
}

int ids_grow(struct ids *ids, struct err *err)
{
    int rc;

    if (ids->count == IDS_BLOCKS_EACH)
        return err_set(err, ERR_NO_IDS, "all %u blocks of user ids of this instance are in use",
                       IDS_BLOCKS_EACH);
    rc = look_for(ids, true, err);
    if (rc == 0)
        rc = look_for(ids, false, err);
    if (rc == 0)
        return err_set(err, ERR_NO_IDS, "all %u blocks of user ids belong to other instances",
                       IDS_BLOCKS);
    return rc < 0 ? -1 : 0;
}

int ids_open(struct ids *ids, int dir_fd, int cgroup_fd, const char *instance, struct err *err)
{
    *ids = (struct ids){ .dir_fd = dir_fd, .cgroup_fd = cgroup_fd };
    (void) snprintf(ids->instance, sizeof ids->instance, "%s", instance);
    if (ids_grow(ids, err) < 0) {
        ids_close(ids);
        return -1;
    }
    while (ids->count < IDS_BLOCKS_EACH) {
        int rc = look_for(ids, true, err);

        if (rc < 0)
            ids_close(ids);
        if (rc <= 0)
            return rc;
    }
    return 0;
}

void ids_close(struct ids *ids)
{
    while (ids->count > 0)
        own_close(&ids->lock_fd[--ids->count]);
    own_close(&ids->dir_fd);
}
