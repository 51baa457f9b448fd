#include "jail/mounts.h"

#include "base/own.h"
#include "jail/agents.h"
#include "jail/boot_id.h"
#include "jail/mountfd.h"
#include "jail/mounts_own.h"
#include "jail/sysview.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Files of /proc that tell about the host or reach into it. Most are root's alone, and host root is `nobody`
 * inside; the mask is the second line. Those that a kernel lacks are skipped. */
static const char *const masked_files[] = {
    "kcore",      "keys",         "key-users", "kmsg",          "kallsyms",      "kpagecount",
    "kpageflags", "kpagecgroup",  "vmcore",    "latency_stats", "timer_list",    "sched_debug",
    "schedstat",  "interrupts",   "softirqs",  "slabinfo",      "vmallocinfo",   "zoneinfo",
    "buddyinfo",  "pagetypeinfo", "iomem",     "ioports",       "modules",       "config.gz",
    "cmdline",    "partitions",   "diskstats", "swaps",         "locks",         "devices",
    "misc",       "mtrr",         "consoles",  "execdomains",   "sysrq-trigger", "allocinfo",
};

static const char *const masked_dirs[] = { "acpi", "asound", "scsi", "driver", "tty", "pressure" };

static const char *const own_files[] = { BOOT_ID_NAME };

/* Of a sysview: the sandbox's limits in the place of the host's figures. */
static const char *const view_files[] = { "meminfo", "stat", "cpuinfo" };

static const char *const readonly_dirs[] = { "bus", "fs", "irq", "sys" };

/* A directory of the sandbox's root, by descriptor: never through a link, made where it is missing. */
static int open_target(int root_fd, const char *name)
{
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                            .resolve =
                                RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
    int fd = (int) syscall(__NR_openat2, root_fd, name, &how, sizeof how);

    if (fd < 0 && errno == ENOENT && mkdirat(root_fd, name, 0755) == 0)
        fd = (int) syscall(__NR_openat2, root_fd, name, &how, sizeof how);
    return fd;
}

static int attach(int mount_fd, int root_fd, const char *name, struct err *err)
{
    auto_close int target = open_target(root_fd, name);

    if (target < 0)
        return err_sys(err, errno, "/%s of the template", name);
    if (mountfd_attach(mount_fd, target, "") < 0)
        return err_sys(err, errno, "attach /%s", name);
    return 0;
}

/* One of the keeper's own prepared trees, or of the sandbox's disk. */
int mounts_attach_clone(const char *from, uint64_t attributes, int root_fd, const char *name,
                        struct err *err)
{
    auto_close int fd = mountfd_clone(AT_FDCWD, from, 0);

    if (fd < 0)
        return err_sys(err, errno, "clone %s", from);
    if (attributes && mountfd_set(fd, attributes, 0) < 0)
        return err_sys(err, errno, "protect %s", from);
    return attach(fd, root_fd, name, err);
}

static void view_path(char *out, size_t size, const char *view, const char *file)
{
    (void) snprintf(out, size, SYSVIEW_SHOWN "/%s/proc/%s", view, file);
}

/* /proc is the kernel's own and nothing of the tenant's runs yet: plain paths are safe here. empty: a mount for each of
 * masked_dirs; NULL: /empty can be named. boot_id: a mount. */
static int mask_proc(int root_fd, const int *empty, int boot_id, struct err *err)
{
    auto_close int proc = open_target(root_fd, "proc");

    if (proc < 0 || fchdir(proc) < 0)
        return err_sys(err, errno, "enter /proc");
    for (size_t i = 0; i < ARRAY_LEN(masked_files); i++)
        if (mount("/dev/null", masked_files[i], NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
            return err_sys(err, errno, "mask /proc/%s", masked_files[i]);
    for (size_t i = 0; i < ARRAY_LEN(masked_dirs); i++)
        if ((empty ? mountfd_attach(empty[i], AT_FDCWD, masked_dirs[i])
                   : mount("/empty", masked_dirs[i], NULL, MS_BIND, NULL)) < 0 &&
            errno != ENOENT)
            return err_sys(err, errno, "mask /proc/%s", masked_dirs[i]);
    for (size_t i = 0; i < ARRAY_LEN(readonly_dirs); i++) {
        auto_close int fd = mountfd_clone(AT_FDCWD, readonly_dirs[i], 0);

        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0 || mountfd_set(fd, MOUNT_ATTR_RDONLY, 0) < 0 ||
            mountfd_attach(fd, AT_FDCWD, readonly_dirs[i]) < 0)
            return err_sys(err, errno, "protect /proc/%s", readonly_dirs[i]);
    }
    if (mountfd_attach(boot_id, AT_FDCWD, BOOT_ID_NAME) < 0)
        return err_sys(err, errno, "attach the boot id");
    return 0;
}

int mounts_attach_proc(int proc_fd, const char *view, int root_fd, struct err *err)
{
    auto_close int boot_id = -1;
    char from[64];

    if (attach(proc_fd, root_fd, "proc", err) < 0 || boot_id_make(true, err) < 0)
        return -1;
    boot_id = boot_id_mount();
    if (boot_id < 0)
        return err_sys(err, errno, "clone the boot id");
    if (mask_proc(root_fd, NULL, boot_id, err) < 0) /* and is in /proc now */
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(view_files); i++) {
        view_path(from, sizeof from, view, view_files[i]);
        if (mount(from, view_files[i], NULL, MS_BIND, NULL) < 0)
            return err_sys(err, errno, "attach /proc/%s", view_files[i]);
    }
    return 0;
}

static int attach_dev(const struct limits *limits, int shm_fd, int root_fd, struct err *err)
{
    char most[32];
    auto_close int pts = -1;

    if (mounts_attach_clone("/dev", 0, root_fd, "dev", err) < 0)
        return -1;
    (void) snprintf(most, sizeof most, "%u", limits->ptys);
    pts = mountfd_new("devpts",
                      (const char *const[]){ "source", "devpts", "ptmxmode", "0666", "mode", "0620",
                                             "max", most, NULL },
                      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
    if (pts < 0 || attach(pts, root_fd, "dev/pts", err) < 0 ||
        mounts_attach_clone(AGENTS_SHUT, MOUNT_ATTR_RDONLY, root_fd, &AGENTS_AT[1], err) < 0)
        return -1;
    if (shm_fd < 0)
        return mounts_attach_clone("/disk/shm", MOUNT_ATTR_NOEXEC, root_fd, "dev/shm", err);
    if (mountfd_set(shm_fd, MOUNT_ATTR_NOEXEC, 0) < 0)
        return err_sys(err, errno, "protect /dev/shm");
    return attach(shm_fd, root_fd, "dev/shm", err);
}

static int check_root(struct err *err)
{
    char where[8];

    if (chdir("/") < 0 || !getcwd(where, sizeof where) || strcmp(where, "/") != 0)
        return err_set(err, ERR_INTERNAL, "the new root is not \"/\"");
    return 0;
}

int jail_pivot(int root_fd, struct err *err)
{
    if (fchdir(root_fd) < 0 || syscall(__NR_pivot_root, ".", ".") < 0)
        return err_sys(err, errno, "pivot_root");
    if (umount2(".", MNT_DETACH) < 0)
        return err_sys(err, errno, "leave the old root");
    return check_root(err);
}

/* root_fd is mounted over the root: see mount_parent.h for what is below. */
static int enter_root(int root_fd, struct err *err)
{
    if (fchdir(root_fd) < 0 || chroot(".") < 0)
        return err_sys(err, errno, "enter the root");
    return check_root(err);
}

int jail_mounts(const struct template *t, const struct limits *limits, const char *view,
                int root_mount, int disk_fd, int shm_fd, int proc_fd, struct err *err)
{
    auto_close int root_fd = root_mount;
    char sys[64];

    if (mountfd_attach(disk_fd, AT_FDCWD, "/disk") < 0)
        return err_sys(err, errno, "attach the disk");
    if (mountfd_attach(root_fd, AT_FDCWD, "/") < 0)
        return err_sys(err, errno, "attach the root");
    if (t->host_usr && mounts_attach_clone("/usr", 0, root_fd, "usr", err) < 0)
        return -1;
    (void) snprintf(sys, sizeof sys, SYSVIEW_SHOWN "/%s/sys", view);
    if (mounts_attach_clone(sys, 0, root_fd, "sys", err) < 0 ||
        attach_dev(limits, shm_fd, root_fd, err) < 0 ||
        mounts_attach_proc(proc_fd, view, root_fd, err) < 0)
        return -1;
    (void) close(disk_fd);
    (void) close(proc_fd);
    if (shm_fd >= 0)
        (void) close(shm_fd);
    return enter_root(root_fd, err);
}

/* ---- for a checkpoint ---- */

const char *jail_masked(size_t i)
{
    static const struct {
        const char *const *names;
        size_t count;
    } lists[] = { { masked_files, ARRAY_LEN(masked_files) },
                  { masked_dirs, ARRAY_LEN(masked_dirs) },
                  { readonly_dirs, ARRAY_LEN(readonly_dirs) },
                  { own_files, ARRAY_LEN(own_files) } };

    for (size_t l = 0; l < ARRAY_LEN(lists); i -= lists[l].count, l++)
        if (i < lists[l].count)
            return lists[l].names[i];
    return NULL;
}

/* In /proc: whether something is mounted over one of its files. */
static bool is_covered(const char *name)
{
    struct stat own, file;

    return stat(".", &own) == 0 && stat(name, &file) == 0 && own.st_dev != file.st_dev;
}

/* In the mount namespace of that process, from which the host's /empty and the views cannot be named. A view's file that a
 * process has open came with the dump. */
static int mask_inside(int pidfd, const char *view, struct err *err)
{
    int empty[ARRAY_LEN(masked_dirs)], shown[ARRAY_LEN(view_files)];
    auto_close int boot_id = boot_id_mount(), root = -1;
    char from[64];

    for (size_t i = 0; i < ARRAY_LEN(masked_dirs); i++)
        empty[i] = mountfd_clone(AT_FDCWD, "/empty", 0);
    for (size_t i = 0; i < ARRAY_LEN(view_files); i++) {
        view_path(from, sizeof from, view, view_files[i]);
        shown[i] = mountfd_clone(AT_FDCWD, from, 0);
    }
    if (setns(pidfd, CLONE_NEWNS) < 0)
        return err_sys(err, errno, "enter the new mounts");
    root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (mask_proc(root, empty, boot_id, err) < 0) /* and is in /proc now */
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(view_files); i++)
        if (!is_covered(view_files[i]) && mountfd_attach(shown[i], AT_FDCWD, view_files[i]) < 0)
            return err_sys(err, errno, "attach /proc/%s", view_files[i]);
    return 0;
}

int jail_mask(int pidfd, const char *view, struct err *err)
{
    int pair[2], status = 0;
    struct err said = { .kind = ERR_INTERNAL, .msg = "the process that masks /proc died" };
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    pid = fork();
    if (pid == 0) {
        if (mask_inside(pidfd, view, &said) == 0)
            _exit(0);
        IGNORE(write(pair[1], &said, sizeof said) < 0);
        _exit(1);
    }
    (void) close(pair[1]);
    if (pid < 0)
        err_sys(err, errno, "fork");
    else if (waitpid(pid, &status, 0) == pid && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
        IGNORE(read(pair[0], &said, sizeof said) < 0);
        said.msg[sizeof said.msg - 1] = '\0';
        *err = said;
    }
    (void) close(pair[0]);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

const char *jail_shown(size_t i)
{
    return i < ARRAY_LEN(view_files) ? view_files[i] : NULL;
}

int jail_add_pts(struct err *err)
{
    auto_close int pts = mountfd_new("devpts", (const char *const[]){ "source", "devpts", NULL },
                                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);

    if (pts < 0)
        return -1;
    return mountfd_attach(pts, AT_FDCWD, "/dev/pts") < 0 ? err_sys(err, errno, "attach /dev/pts")
                                                         : 0;
}

int jail_stage(int root_mount, int disk_fd, int shm_fd, const int *volume_fd, struct err *err)
{
    char at[32];

    if (mountfd_attach(disk_fd, AT_FDCWD, "/disk") < 0)
        return err_sys(err, errno, "attach the disk");
    if (mountfd_attach(root_mount, AT_FDCWD, "/new") < 0)
        return err_sys(err, errno, "attach the root");
    if (shm_fd >= 0 && mountfd_attach(shm_fd, AT_FDCWD, "/shm") < 0)
        return err_sys(err, errno, "attach /dev/shm");
    for (size_t i = 0; i < VOLUMES_MAX && volume_fd[i] >= 0; i++) {
        (void) snprintf(at, sizeof at, "/volumes/%zu", i);
        if (mountfd_attach(volume_fd[i], AT_FDCWD, at) < 0)
            return err_sys(err, errno, "attach a volume");
    }
    return 0;
}
