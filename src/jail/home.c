#include "jail/home.h"

#include "base/own.h"
#include "jail/mountfd.h"
#include "jail/mounts.h"
#include "wire/layers.h"
#include "wire/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static int make_dev(int root_fd, struct err *err)
{
    static const struct {
        const char *name;
        unsigned major, minor;
    } nodes[] = { { "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
                  { "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 } };
    static const struct {
        const char *name, *target;
    } links[] = { { "fd", "/proc/self/fd" },
                  { "stdin", "/proc/self/fd/0" },
                  { "stdout", "/proc/self/fd/1" },
                  { "stderr", "/proc/self/fd/2" },
                  { "ptmx", "pts/ptmx" } };
    auto_close int fd =
        mountfd_new("tmpfs",
                    (const char *const[]){ "source", "dev", "size", "64k", "nr_inodes", "64",
                                           "mode", "0755", NULL },
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);

    if (fd < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
        if (mknodat(fd, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) < 0)
            return err_sys(err, errno, "make /dev/%s", nodes[i].name);
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (symlinkat(links[i].target, fd, links[i].name) < 0)
            return err_sys(err, errno, "make /dev/%s", links[i].name);
    if (mkdirat(fd, "pts", 0755) < 0 || mkdirat(fd, "shm", 0755) < 0 ||
        mkdirat(fd, "cove", 0755) < 0)
        return err_sys(err, errno, "make /dev/pts");
    if (mountfd_set(fd, MOUNT_ATTR_RDONLY, 0) < 0 || mountfd_attach(fd, root_fd, "dev") < 0)
        return err_sys(err, errno, "attach /dev");
    return 0;
}

/* The parts of the keeper's root that are not read-only: where sysview.c and agents.c write, and what criu calls /run and /tmp. It
 * keeps what it learned about the kernel in /run, if that is a tmpfs: 40 ms of every run. */
static int make_scratch(int root_fd, const char *name, unsigned attributes, struct err *err)
{
    auto_close int fd =
        mountfd_new("tmpfs", (const char *const[]){ "source", name, "mode", "0755", NULL },
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | attributes, err);

    if (fd < 0)
        return -1;
    if (mountfd_attach(fd, root_fd, name) < 0)
        return err_sys(err, errno, "attach /%s", name);
    return 0;
}

static int bring(int from_fd, const char *from, unsigned flags, uint64_t attributes, int root_fd,
                 const char *name, struct err *err)
{
    auto_close int fd = mountfd_clone(from_fd, from, flags);

    if (fd < 0 || mountfd_set(fd, attributes, 0) < 0 || mountfd_attach(fd, root_fd, name) < 0)
        return err_sys(err, errno, "bring %s", from);
    return 0;
}

/* A directory with an empty one for each of a number of mounts. */
static int make_places(int root_fd, const char *name, unsigned count, struct err *err)
{
    char path[32];

    if (mkdirat(root_fd, name, 0755) < 0)
        return err_sys(err, errno, "make /%s", name);
    for (unsigned i = 0; i < count; i++) {
        (void) snprintf(path, sizeof path, "%s/%u", name, i);
        if (mkdirat(root_fd, path, 0755) < 0)
            return err_sys(err, errno, "make /%s", path);
    }
    return 0;
}

/* To the root of our mount namespace. A keeper that was started in a chroot is not there: pivot_root would leave what is outside of the
 * chroot in the namespace, and every setns() back to it (mount_parent.h) would lead there. What is outside may be shared with the
 * host still, where its end would be seen. */
static int leave_chroot(struct err *err)
{
    auto_close int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

    if (own < 0 || setns(own, CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(err, errno, "come to the root of our mount namespace");
    return 0;
}

int home_enter(const char *state, struct err *err)
{
    static const char *const dirs[] = { "proc",  "dev",       "usr",   "empty",  "new",
                                        "disk",  "templates", "views", "shown",  "shm",
                                        "image", "run",       "tmp",   "images", "agents" };
    /* The host's criu is started by the loader that it names, and loads libraries from there. fd: of root.c. */
    static const struct {
        const char *name, *target;
    } links[] = { { "lib", "usr/lib" }, { "lib64", "usr/lib64" }, { "fd", "proc/self/fd" } };
    static const struct {
        const char *name;
        unsigned count;
    } places[] = { { "stage", LAYERS_MAX + LAYERS_BELOW_MAX + 2 },
                   { "bases", HOME_BASES },
                   { "layers", HOME_LAYERS },
                   { "volumes", VOLUMES_MAX } };
    auto_close int root = -1, proc = -1, state_fd = -1;

    (void) umask(0);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(err, errno, "leave the host's mounts");
    /* By name again: a descriptor from before belongs to the host's copy of the mounts. */
    state_fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state_fd < 0)
        return err_sys(err, errno, "open %s", state);
    root = mountfd_new("tmpfs",
                       (const char *const[]){ "source", "keeper", "size", "64k", "nr_inodes", "256",
                                              "mode", "0755", NULL },
                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
    if (root < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(root, dirs[i], 0755) < 0)
            return err_sys(err, errno, "make /%s", dirs[i]);
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (symlinkat(links[i].target, root, links[i].name) < 0)
            return err_sys(err, errno, "make /%s", links[i].name);
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (make_places(root, places[i].name, places[i].count, err) < 0)
            return -1;
    /* Attached before the rest: Linux before 6.15 attaches nothing below a detached mount. */
    if ((mkdirat(state_fd, "root", 0700) < 0 && errno != EEXIST) ||
        mountfd_attach(root, state_fd, "root") < 0)
        return err_sys(err, errno, "attach the keeper's root");
    proc = mountfd_new("proc", (const char *const[]){ "source", "proc", NULL },
                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
    if (proc < 0)
        return -1;
    if (mountfd_attach(proc, root, "proc") < 0)
        return err_sys(err, errno, "attach /proc");
    if (bring(AT_FDCWD, "/usr", 0, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, root,
              "usr", err) < 0 ||
        bring(state_fd, "templates", AT_RECURSIVE,
              MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, root, "templates",
              err) < 0 ||
        bring(state_fd, "images", 0,
              MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, root,
              "images", err) < 0 ||
        make_dev(root, err) < 0 || make_scratch(root, "views", MOUNT_ATTR_NOEXEC, err) < 0 ||
        bring(root, "views", 0,
              MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, root,
              "shown", err) < 0 ||
        make_scratch(root, "run", MOUNT_ATTR_NOEXEC, err) < 0 ||
        make_scratch(root, "tmp", MOUNT_ATTR_NOEXEC, err) < 0 ||
        make_scratch(root, "agents", 0, err) < 0)
        return -1;
    if (mountfd_set(root, MOUNT_ATTR_RDONLY, 0) < 0)
        return err_sys(err, errno, "protect the keeper's root");
    return leave_chroot(err) < 0 ? -1 : jail_pivot(root, err);
}
