#include "jail/machine.h"

#include "base/own.h"
#include "jail/agents.h"
#include "jail/confine.h"
#include "jail/mountfd.h"
#include "jail/mounts.h"
#include "jail/mounts_own.h"
#include "wire/boot.h"
#include "wire/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>

/* Of the guest's kernel, its helpers and the bridge. */
static const struct {
    uint64_t memory;
    uint32_t processes; /* threads of theirs */
    uint32_t files;     /* descriptors: the guest's files are theirs */
} own[] = {
    [false] = { 96ull << 20, 256, 16384 },
    /* QEMU has translated code, too; and who makes the memory of other machines has that beside its own */
    [true] = { VM_KERNEL_MEMORY + (272ull << 20), VM_CPUS_MOST + VM_IO_THREADS + 32, 16384 },
};

/* A file to attach another one to. */
static int make_file(int root_fd, const char *name, struct err *err)
{
    int fd = openat(root_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

    return fd < 0 ? err_sys(err, errno, "make /%s", name) : close(fd);
}

static int make_places(const struct machine *m, int root_fd, struct err *err)
{
    static const char *const dirs[] = {
        "proc", "dev", "bundle", &MACHINE_ROOT[1], &MACHINE_AGENT[1], &MACHINE_DISK[1], "run", "tmp"
    };

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(root_fd, dirs[i], 0755) < 0)
            return err_sys(err, errno, "make /%s", dirs[i]);
    if (!m->vm)
        return mkdirat(root_fd, "plain", 0755) < 0 ? err_sys(err, errno, "make /plain")
                                                   : make_file(root_fd, &MACHINE_PROGRAM[1], err);
    return mkdirat(root_fd, &MACHINE_PROGRAM[1], 0755) < 0 ? err_sys(err, errno, "make /machine")
                                                           : 0;
}

static int attach_program(const char *program, int root_fd, struct err *err)
{
    auto_close int fd = mountfd_clone(AT_FDCWD, program, 0);

    if (fd < 0)
        return err_sys(err, errno, "clone %s", program);
    if (mountfd_set(fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0) < 0 ||
        mountfd_attach(fd, root_fd, &MACHINE_PROGRAM[1]) < 0)
        return err_sys(err, errno, "attach %s", program);
    return 0;
}

/* The sandbox's file system, without what a guest's kernel has of its own: /proc, /dev, /sys. */
static int attach_root(const struct template *t, int root_mount, int root_fd, struct err *err)
{
    auto_close int inside = -1;

    if (mountfd_attach(root_mount, root_fd, &MACHINE_ROOT[1]) < 0)
        return err_sys(err, errno, "attach the root");
    inside = openat(root_fd, &MACHINE_ROOT[1], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inside < 0)
        return err_sys(err, errno, "open the root");
    return t->host_usr ? mounts_attach_clone("/usr", 0, inside, "usr", err) : 0;
}

/* runsc mounts a /proc of its own. */
static int attach_plain(int root_fd, struct err *err)
{
    auto_close int plain = mountfd_proc(err);

    if (plain < 0)
        return -1;
    return mountfd_attach(plain, root_fd, "plain") < 0 ? err_sys(err, errno, "attach /plain") : 0;
}

/* A virtual machine's image is a file of the disk. gVisor has its files by the root, and no more of the disk than a place to flush it at, which
 * the root is not (jail/root.c). */
static int attach_disk(const struct machine *m, int root_fd, struct err *err)
{
    return m->vm ? mounts_attach_clone("/disk", 0, root_fd, &MACHINE_DISK[1], err)
                 : mounts_attach_clone("/disk/shm", MOUNT_ATTR_RDONLY, root_fd, &MACHINE_DISK[1],
                                       err);
}

int machine_mounts(const struct machine *m, const struct template *t, const char *view,
                   int root_mount, int disk_fd, int proc_fd, struct err *err)
{
    auto_close int scratch = mountfd_new(
        "tmpfs", (const char *const[]){ "source", "machine", "size", "16m", "mode", "0755", NULL },
        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
    auto_close int root_fd = -1;

    if (scratch < 0)
        return -1;
    if (mountfd_attach(disk_fd, AT_FDCWD, "/disk") < 0 ||
        mountfd_attach(scratch, AT_FDCWD, "/new") < 0)
        return err_sys(err, errno, "attach the machine's root");
    root_fd = open("/new", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return err_sys(err, errno, "open the machine's root");
    if (make_places(m, root_fd, err) < 0 || (!m->vm && attach_plain(root_fd, err) < 0) ||
        attach_disk(m, root_fd, err) < 0 || attach_root(t, root_mount, root_fd, err) < 0 ||
        attach_program(m->program, root_fd, err) < 0 ||
        mounts_attach_clone(AGENTS_OPEN, MOUNT_ATTR_RDONLY, root_fd, &MACHINE_AGENT[1], err) < 0 ||
        mounts_attach_clone("/dev", 0, root_fd, "dev", err) < 0 ||
        mounts_attach_proc(proc_fd, view, root_fd, err) < 0)
        return -1;
    (void) close(root_mount);
    (void) close(disk_fd);
    (void) close(proc_fd);
    return jail_pivot(root_fd, err);
}

/* Machines of one size share the memory of one that has just started (driver/vm/memory.h). Who writes to a page that no machine had
 * before pays for two: the shared one, which is empty, and its own. So a machine may pay for all its memory twice, and QEMU must not
 * be killed for that. The guest has no more memory by it. */
void machine_allow(bool vm, struct limits *limits)
{
    if (vm)
        limits->memory_bytes += limits->memory_bytes;
    limits->memory_bytes += own[vm].memory;
    limits->processes += own[vm].processes;
    limits->open_files += own[vm].files;
}

/* What makes a guest: namespaces, mounts and users below its own, and whatever it gives its helpers. */
#define MACHINE_CAPS                                                                               \
    (BOOT_ROOT_CAPS | BOOT_CAP(CAP_DAC_READ_SEARCH) | BOOT_CAP(CAP_SETPCAP) |                      \
     BOOT_CAP(CAP_NET_ADMIN) | BOOT_CAP(CAP_NET_RAW) | BOOT_CAP(CAP_SYS_PTRACE) |                  \
     BOOT_CAP(CAP_SYS_ADMIN))

/* To read all of the template, and to have no more than that. */
#define VM_CAPS (BOOT_CAP(CAP_DAC_READ_SEARCH) | BOOT_CAP(CAP_SETPCAP))

/* To write to volumes as the users of the guest. A jail's root has these, too. */
#define VOLUME_CAPS                                                                                \
    (BOOT_CAP(CAP_CHOWN) | BOOT_CAP(CAP_DAC_OVERRIDE) | BOOT_CAP(CAP_FOWNER) |                     \
     BOOT_CAP(CAP_FSETID) | BOOT_CAP(CAP_SETGID) | BOOT_CAP(CAP_SETUID))

int machine_confine(const struct machine *m, const struct limits *limits, bool volumes,
                    const struct seccomp_filter *filter, struct err *err)
{
    struct limits with = *limits;
    bool listening = false;

    machine_allow(m->vm, &with);
    if (confine_limits(&with, err) < 0 ||
        confine_capabilities(m->vm ? VM_CAPS | (volumes ? VOLUME_CAPS : 0) : MACHINE_CAPS, err) < 0)
        return -1;
    if (m->vm)
        return confine_kernel(NULL, filter, &listening, err);
    /* No Landlock: a process with rules of it cannot mount. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, errno, "no_new_privs");
    return seccomp_install(filter, false) < 0 ? err_sys(err, errno, "seccomp") : 0;
}
