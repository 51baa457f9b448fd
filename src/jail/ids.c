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

/* Is the block this instance's to take? Only its own in the first round, then any that is free. */
static bool may_take(int fd, int cgroup_fd, const char *instance, bool only_own)
{
    char owner[160];
    ssize_t n = pread(fd, owner, sizeof owner - 1, 0);

    if (n < 0)
        return false;
    owner[n] = '\0';
    owner[strcspn(owner, "\n")] = '\0';
    if (strcmp(owner, instance) == 0)
        return true;
    if (only_own)
        return false;
    return !owner[0] || owner[0] == '/' || faccessat(cgroup_fd, owner, F_OK, 0) < 0;
}

static int write_owner(int fd, const char *instance)
{
    char text[168];
    int len = snprintf(text, sizeof text, "%s\n", instance);

    return ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t) len, 0) != len ? -1 : 0;
}

int ids_claim(int dirfd, int cgroup_fd, const char *instance, uint32_t *ret_block, int *ret_lock_fd,
              struct err *err)
{
    for (int round = 0; round < 2; round++) {
        for (uint32_t block = 0; block < IDS_BLOCKS; block++) {
            auto_close int fd = -1;
            char name[16];

            (void) snprintf(name, sizeof name, "%u", block);
            fd = openat(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
            if (fd < 0)
                return err_sys(err, errno, "open id block %u", block);
            if (flock(fd, LOCK_EX | LOCK_NB) < 0 || !may_take(fd, cgroup_fd, instance, round == 0))
                continue;
            if (write_owner(fd, instance) < 0)
                return err_sys(err, errno, "write id block %u", block);
            *ret_block = block;
            *ret_lock_fd = take_fd(&fd);
            return 0;
        }
    }
    return err_set(err, ERR_NO_IDS, "all %u blocks of user ids belong to other instances",
                   IDS_BLOCKS);
}
