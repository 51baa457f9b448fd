/* mountfd.h - mounts as descriptors: made, changed and attached without a path of the host.
 *
 * The calls that Debian 12's libc does not wrap yet, and new file systems from a list of options. */
#ifndef COVE_JAIL_MOUNTFD_H
#define COVE_JAIL_MOUNTFD_H

#include "base/err.h"

#include <fcntl.h>
#include <linux/mount.h> /* not sys/mount.h: its enums clash with these in newer libcs */
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* A detached mount of a new file system. options: key, value, key, value …, NULL; an empty value is
 * a flag. attributes: MOUNT_ATTR_*. */
int mountfd_new(const char *type, const char *const *options, unsigned attributes, struct err *err);

/* A /proc of its own, of the caller's process namespace, detached. Settings of namespaces (/proc/sys) are written through one of
 * these: in a shared /proc the kernel keeps the names of all namespaces in one list, and looks through it for each. */
int mountfd_proc(struct err *err);

static inline int mountfd_clone(int dirfd, const char *path, unsigned flags)
{
    return (int) syscall(__NR_open_tree, dirfd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags);
}

static inline int mountfd_set(int fd, uint64_t attributes, uint64_t idmap_userns_fd)
{
    struct mount_attr attr = { .attr_set = attributes, .userns_fd = idmap_userns_fd };

    return (int) syscall(__NR_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof attr);
}

static inline int mountfd_attach(int mount_fd, int dirfd, const char *path)
{
    return (int) syscall(__NR_move_mount, mount_fd, "", dirfd, path,
                         MOVE_MOUNT_F_EMPTY_PATH | (path[0] ? 0 : MOVE_MOUNT_T_EMPTY_PATH));
}

#endif
