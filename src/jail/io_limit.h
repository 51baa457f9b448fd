/* io_limit.h - how fast a sandbox may read from and write to its disk.
 *
 * The limit is on the sandbox's own loop device, not on the host's disk: a page or a journal that waits
 * there would hold up other sandboxes and the host. Direct, synchronous, buffered and mapped writes all
 * pass that device.
 *
 *   v2   io.max of the sandbox's cgroup. Writes of the kernel's flusher count for the cgroup whose pages they are.
 *   v1   blkio.throttle.* of the top cgroup, where the kernel's flusher is, and of the keeper's own. A
 *        sandbox has no blkio cgroup: v1 would not count buffered writes there. The device is used by
 *        one sandbox only, so that its rule is that sandbox's limit.
 *
 * Owns:    rules for loop devices of sandboxes, from io_limit_set to io_limit_lift.
 * Callers: keeper/create.c, sandbox.c, save.c, kill.c.
 * Never:   decides limits. They arrive checked by limits_check(). */
#ifndef COVE_JAIL_IO_LIMIT_H
#define COVE_JAIL_IO_LIMIT_H

#include "base/err.h"
#include "jail/cgroup.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stdint.h>

struct io_limits {
    int version; /* of cgroups; 0: this host cannot limit I/O */
    int top_fd;  /* v1: the top cgroup of the hierarchy */
    int own_fd;  /* v1: the keeper's own, if that is another; else -1 */
    bool used;   /* v1: a device may have a rule; v2: the controller was handed down */
};

/* Finds out how this host limits I/O. That it cannot is no failure. */
void io_limits_open(struct io_limits *io, const struct cgroups *cgroups);
void io_limits_close(struct io_limits *io);

/* 1 blkio.throttle.*, 2 io.max, 0 neither; by the texts of /proc/self/mounts and of cgroup.controllers. `top` gets
 * the mount of v1's hierarchy. Pure. */
int io_limits_detect(const char *mounts, const char *v2_controllers, char top[128]);

/* ERR_UNSUPPORTED: there is a limit, and this host cannot hold a sandbox to it. */
int io_limit_check(const struct io_limits *io, const struct limits *limits, struct err *err);

/* The number of the loop device that a file system is on, plus 1; 0: it is on no such device. */
uint32_t io_limit_device(int mount_fd);

/* For the sandbox whose cgroup is `name` and whose disk is on `device`. Without a limit: an old rule of the device goes. */
int io_limit_set(struct io_limits *io, const struct cgroups *cgroups, const char *name,
                 const struct limits *limits, uint32_t device, struct err *err);

/* No limit any more: what is not written yet must not hold up a save, or an end. */
void io_limit_lift(const struct io_limits *io, const struct cgroups *cgroups, const char *name,
                   uint32_t device);

#endif
