/* The paths are the tenant's, and so is the template that they lead into. We are in the sandbox's own root already, with no
 * descriptor and no name of the host's; still a path is walked part by part, never through a link, never back and never
 * into another mount: /proc, /sys and /dev cannot be reached, nor the inside of another volume. */
#include "jail/volumes.h"

#include "base/own.h"
#include "jail/machine.h"
#include "jail/mountfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

static int open_part(int dir, const char *name)
{
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                       RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };

    return (int) syscall(__NR_openat2, dir, name, &how, sizeof how);
}

static int explain(const char *path, int errnum, struct err *err)
{
    switch (errnum) {
    case ELOOP:
        return err_set(err, ERR_INVALID, "path: a symbolic link is in the way to '%s'", path);
    case EXDEV:
        return err_set(err, ERR_INVALID, "path: '%s' is in another mount", path);
    case ENOTDIR:
        return err_set(err, ERR_INVALID, "path: a file is in the way to '%s'", path);
    default:
        return err_sys(err, errnum, "path: '%s'", path);
    }
}

/* The directory, made where it is missing. */
static int open_path(const char *root, const char *path, struct err *err)
{
    auto_close int at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char part[VOLUME_PATH_MAX];

    if (at < 0)
        return err_sys(err, errno, "open the root");
    for (const char *rest = path + 1; *rest; rest += rest[0] == '/') {
        size_t len = strcspn(rest, "/");
        int next;

        memcpy(part, rest, len);
        part[len] = '\0';
        rest += len;
        next = open_part(at, part);
        if (next < 0 && errno == ENOENT && mkdirat(at, part, 0755) == 0)
            next = open_part(at, part);
        if (next < 0)
            return explain(path, errno, err);
        (void) close(at);
        at = next;
    }
    return take_fd(&at);
}

int jail_volumes(const struct volume_use uses[VOLUMES_MAX], const int *mount_fds, struct err *err)
{
    size_t count = volume_use_count(uses);

    for (size_t i = 0; i < count; i++) {
        auto_close int mount_fd = mount_fds[i], target = open_path("/", uses[i].path, err);

        if (target < 0)
            return -1;
        if (mountfd_attach(mount_fd, target, "") < 0)
            return err_sys(err, errno, "attach a volume to '%s'", uses[i].path);
    }
    return 0;
}

/* The guest's root sees the directory of all volumes, and has nothing to write there. */
static int make_places(size_t count, struct err *err)
{
    char name[sizeof MACHINE_VOLUMES + 20];
    auto_close int fd = -1;

    if (mkdir(MACHINE_VOLUMES, 0755) < 0)
        return err_sys(err, errno, "make " MACHINE_VOLUMES);
    for (size_t i = 0; i < count; i++) {
        (void) snprintf(name, sizeof name, MACHINE_VOLUMES "/%zu", i);
        if (mkdir(name, 0755) < 0)
            return err_sys(err, errno, "make %s", name);
    }
    fd = mountfd_clone(AT_FDCWD, MACHINE_VOLUMES, 0);
    if (fd < 0 ||
        mountfd_set(fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0) < 0 ||
        mountfd_attach(fd, AT_FDCWD, MACHINE_VOLUMES) < 0)
        return err_sys(err, errno, "protect " MACHINE_VOLUMES);
    return 0;
}

static int attach_for_guest(size_t number, int mount_fd, struct err *err)
{
    char name[sizeof MACHINE_VOLUMES + 20];

    (void) snprintf(name, sizeof name, MACHINE_VOLUMES "/%zu", number);
    if (mountfd_attach(mount_fd, AT_FDCWD, name) < 0)
        return err_sys(err, errno, "attach a volume to %s", name);
    return 0;
}

int machine_volumes(const struct volume_use uses[VOLUMES_MAX], const int *mount_fds,
                    struct err *err)
{
    size_t count = volume_use_count(uses);

    if (count > 0 && make_places(count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        auto_close int mount_fd = mount_fds[i], place = open_path(MACHINE_ROOT, uses[i].path, err);

        if (place < 0 || attach_for_guest(i, mount_fd, err) < 0)
            return -1;
    }
    return 0;
}
