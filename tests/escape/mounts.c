/* mounts.c - mounts and namespaces: undoing what the jail mounted, mounting what it did not, and
 * fresh namespaces in which one is root again. */
#include "escape.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* The same numbers on every architecture. */
enum {
    NR_open_tree = 428,
    NR_move_mount = 429,
    NR_fsopen = 430,
    NR_fsconfig = 431,
    NR_fsmount = 432,
    NR_fspick = 433,
    NR_pidfd_open = 434,
    NR_clone3 = 435,
    NR_mount_setattr = 442,
    NR_statmount = 457,
    NR_listmount = 458,
    NR_open_tree_attr = 467,
};

#define NEW_CGROUP 0x02000000
#define NEW_TIME   0x00000080

static struct outcome mount_kind(const struct attempt *attempt)
{
    (void) mkdir("at", 0755);
    return by_call(mount("none", "at", attempt->path, 0, NULL), attempt->path);
}

/* Whether a hierarchy of cgroup v1 has the controller: the second number of its line is not 0. */
static bool on_cgroup1(const char *controller)
{
    FILE *list = fopen("/proc/cgroups", "re");
    char line[128], name[64];
    int hierarchy;
    bool found = !list; /* not known: an EPERM is then what it says */

    while (list && fgets(line, sizeof line, list))
        if (sscanf(line, "%63s %d", name, &hierarchy) == 2 && strcmp(name, controller) == 0)
            found = hierarchy != 0;
    if (list)
        (void) fclose(list);
    return found;
}

static struct outcome mount_cgroup(const struct attempt *attempt)
{
    int rc;

    (void) mkdir("at", 0755);
    rc = mount("none", "at", "cgroup", 0, attempt->path);
    /* With v2 alone a new hierarchy would have to be made, which no other cgroup namespace than the first may. */
    if (rc < 0 && errno == EPERM && !on_cgroup1(attempt->path))
        errno = ENODEV;
    return by_call(rc, "mount of cgroups");
}

static struct outcome mount_bind(const struct attempt *attempt)
{
    (void) mkdir("at", 0755);
    return by_call(mount(attempt->path, "at", NULL, MS_BIND | MS_REC, NULL), "bind mount");
}

static struct outcome mount_overlay(const struct attempt *attempt)
{
    (void) attempt;
    if (bait.outside && (mount("none", ".", "tmpfs", 0, NULL) < 0 || chdir("/proc/self/cwd/.") < 0))
        return held(errno, "tmpfs");
    (void) mkdir("lower", 0755);
    (void) mkdir("upper", 0755);
    (void) mkdir("work", 0755);
    (void) mkdir("at", 0755);
    return by_call(mount("none", "at", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work"),
                   "overlay");
}

static struct outcome remount(const struct attempt *attempt)
{
    if (bait.outside)
        (void) mount(attempt->path, attempt->path, NULL, MS_BIND, NULL);
    return by_call(mount(NULL, attempt->path, NULL, MS_REMOUNT | MS_BIND, NULL), attempt->path);
}

static struct outcome unmount(const struct attempt *attempt)
{
    if (bait.outside)
        (void) mount(attempt->path, attempt->path, NULL, MS_BIND, NULL);
    return by_call(umount2(attempt->path, MNT_DETACH), attempt->path);
}

static struct outcome new_root(const struct attempt *attempt)
{
    (void) attempt;
    (void) mkdir("new", 0755);
    if (bait.outside)
        (void) mount("none", "new", "tmpfs", 0, NULL);
    (void) mkdir("new/old", 0755);
    return by_call(syscall(SYS_pivot_root, "new", "new/old"), "pivot_root");
}

static struct outcome new_mount_api(const struct attempt *attempt)
{
    long fs = syscall(NR_fsopen, attempt->path, 0L), fd;

    if (fs < 0)
        return by_call(-1, "fsopen");
    if (syscall(NR_fsconfig, fs, 6L /* CREATE */, NULL, NULL, 0L) < 0)
        return by_call(-1, "fsconfig");
    fd = syscall(NR_fsmount, fs, 0L, 0L);
    if (fd < 0)
        return by_call(-1, "fsmount");
    return escaped("a mount of %s", attempt->path);
}

static struct outcome clone_tree(const struct attempt *attempt)
{
    return by_call(
        syscall(attempt->number, (long) AT_FDCWD, "/", 1L /* CLONE */ | 0x8000, NULL, 0L),
        attempt->name);
}

static struct outcome move_proc(const struct attempt *attempt)
{
    (void) attempt;
    (void) mkdir("at", 0755);
    return by_call(syscall(NR_move_mount, (long) AT_FDCWD, "/proc", (long) AT_FDCWD, "at", 0L),
                   "move_mount");
}

static struct outcome pick_root(const struct attempt *attempt)
{
    return by_call(syscall(NR_fspick, (long) AT_FDCWD, attempt->path, 0L), "fspick");
}

static struct outcome clear_flags(const struct attempt *attempt)
{
    struct {
        uint64_t set, clear, propagation, userns;
    } attr = { .clear = 1 | 2 | 4 | 8 /* rdonly nosuid nodev noexec */ };

    return by_call(
        syscall(NR_mount_setattr, (long) AT_FDCWD, attempt->path, 0x8000L, &attr, sizeof attr),
        "mount_setattr");
}

static struct outcome list_mounts(const struct attempt *attempt)
{
    struct {
        uint32_t size, spare;
        uint64_t mnt_id, param;
    } request = { .size = 24, .mnt_id = ~0ull };
    uint64_t ids[64];

    (void) attempt;
    return by_call(syscall(NR_listmount, &request, ids, 64L, 0L), "listmount");
}

static struct outcome unshare_flag(const struct attempt *attempt)
{
    return by_call(unshare((int) attempt->number), attempt->name);
}

static struct outcome clone_flag(const struct attempt *attempt)
{
    long pid = syscall(SYS_clone, attempt->number | SIGCHLD, 0L, 0L, 0L, 0L);

    if (pid == 0)
        _exit(0);
    if (pid > 0)
        (void) waitpid((pid_t) pid, NULL, 0);
    return by_call(pid, attempt->name);
}

static struct outcome clone3_flag(const struct attempt *attempt)
{
    uint64_t args[11] = { (uint64_t) attempt->number, [4] = SIGCHLD };
    long pid = syscall(NR_clone3, args, sizeof args);

    if (pid == 0)
        _exit(0);
    if (pid > 0)
        (void) waitpid((pid_t) pid, NULL, 0);
    return by_call(pid, attempt->name);
}

static struct outcome enter(const struct attempt *attempt)
{
    int fd = open(attempt->path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return by_call(-1, attempt->path);
    return by_call(setns(fd, (int) attempt->number), "setns");
}

static struct outcome enter_by_pidfd(const struct attempt *attempt)
{
    long fd = syscall(NR_pidfd_open, attempt->number, 0L);

    if (fd < 0)
        return by_call(-1, "pidfd_open");
    return by_call(setns((int) fd, CLONE_NEWNS | CLONE_NEWUTS), "setns");
}

#ifdef __x86_64__
/* A tracer that changes the number of a call when the filter may have seen it already: a child asks
 * for getppid and gets unshare(NEWUTS). */
static struct outcome swap_call(const struct attempt *attempt)
{
    struct user_regs_struct regs;
    int status;
    pid_t pid = fork();

    (void) attempt;
    if (pid == 0) {
        (void) ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void) raise(SIGSTOP);
        (void) syscall(SYS_getppid, (long) CLONE_NEWUTS);
        _exit(0);
    }
    (void) waitpid(pid, &status, 0);
    for (int i = 0; i < 32; i++) {
        if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0 || waitpid(pid, &status, 0) < 0 ||
            !WIFSTOPPED(status))
            return held(errno, "the child ended");
        if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
            return held(errno, "no registers");
        if (regs.orig_rax != SYS_getppid)
            continue;
        regs.orig_rax = SYS_unshare;
        (void) ptrace(PTRACE_SETREGS, pid, NULL, &regs);
        (void) ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
        (void) waitpid(pid, &status, 0);
        (void) ptrace(PTRACE_GETREGS, pid, NULL, &regs);
        (void) kill(pid, SIGKILL);
        if ((long) regs.rax == 0)
            return escaped("the call behind the filter was another");
        return held((int) -(long) regs.rax, "unshare: %s", strerror((int) -(long) regs.rax));
    }
    (void) kill(pid, SIGKILL);
    return held(0, "the call never came");
}
#else
static struct outcome swap_call(const struct attempt *attempt)
{
    (void) attempt;
    return impossible("written for x86-64 only");
}
#endif

/* PTRACE_O_SUSPEND_SECCOMP turns the filter of a traced process off. */
static struct outcome suspend_filter(const struct attempt *attempt)
{
    long rc;
    int errnum;
    pid_t pid = fork();

    (void) attempt;
    if (pid == 0) {
        (void) pause();
        _exit(0);
    }
    rc = ptrace(0x4206 /* SEIZE */, pid, NULL, (void *) 0x200000L);
    errnum = errno;
    (void) kill(pid, SIGKILL);
    errno = errnum;
    return by_call(rc, "PTRACE_O_SUSPEND_SECCOMP");
}

#define SPACES     .outside = IN_SPACES
#define OLD_KERNEL .lacking = { ENOSYS }, .reason = "this kernel does not have the call"
#define UNSHARE(name_, flag)                                                                       \
    {                                                                                              \
        "unshare-" name_, "a namespace to be root in", unshare_flag, .number = (flag), SPACES      \
    }
#define CLONE(name_, flag)                                                                         \
    {                                                                                              \
        "clone-" name_, "a namespace to be root in", clone_flag, .number = (flag), SPACES          \
    }
#define CLONE3(name_, flag)                                                                        \
    {                                                                                              \
        "clone3-" name_, "a namespace by a call whose flags no filter sees", clone3_flag,          \
            .number = (flag), SPACES                                                               \
    }

/* clang-format off */
const struct attempt mount_attempts[] = {
    { "mount-tmpfs",      "files where the manager looks", mount_kind, .path = "tmpfs", SPACES },
    { "mount-proc",       "a procfs without masks", mount_kind, .path = "proc", SPACES },
    { "mount-sysfs",      "the kernel's knobs", mount_kind, .path = "sysfs", SPACES },
    { "mount-devpts",     "terminals beyond the limit", mount_kind, .path = "devpts", SPACES },
    { "mount-mqueue",     "memory beyond the limit", mount_kind, .path = "mqueue", SPACES },
    { "mount-debugfs",    "the kernel's insides", mount_kind, .path = "debugfs", SPACES, .lacking = { ENODEV }, .reason = "this kernel has no debugfs" },
    { "mount-devtmpfs",   "every device", mount_kind, .path = "devtmpfs", SPACES, .lacking = { ENODEV }, .reason = "this kernel has no devtmpfs" },
    { "mount-binfmt",     "programs run by the kernel for everybody", mount_kind, .path = "binfmt_misc", SPACES, .lacking = { ENODEV }, .reason = "this kernel has no binfmt_misc" },
    { "mount-cgroup2",    "other limits", mount_kind, .path = "cgroup2", SPACES },
    { "mount-cgroup1",    "CVE-2022-0492: release_agent", mount_cgroup, .path = "memory", SPACES, .lacking = { EINVAL, EBUSY, ENODEV }, .reason = "the memory controller is not on cgroup v1" },
    { "mount-bind",       "a mount without the jail's flags", mount_bind, .path = "/proc", SPACES },
    { "mount-overlay",    "CVE-2021-3493, CVE-2023-0386", mount_overlay, SPACES, .lacking = { ENODEV, EINVAL }, .reason = "this kernel has no overlay" },
    { "remount-usr",      "the shared layer, writable", remount, .path = "/usr", SPACES },
    { "remount-root",     "the root with devices and setuid", remount, .path = "/", SPACES },
    { "remount-proc-sys", "the kernel's settings, writable", remount, .path = "/proc/sys", SPACES },
    { "umount-proc-sys",  "the kernel's settings, writable", unmount, .path = "/proc/sys", SPACES },
    { "umount-mask",      "what a mask hides", unmount, .path = "/proc/keys", SPACES },
    { "umount-dev",       "what is below /dev", unmount, .path = "/dev", SPACES },
    { "umount-usr",       "what is below /usr", unmount, .path = "/usr", SPACES },
    { "pivot-root",       "another root", new_root, SPACES },
    { "fsopen-tmpfs",     "CVE-2022-0185: the new mount calls", new_mount_api, .path = "tmpfs", SPACES, OLD_KERNEL },
    { "fsopen-proc",      "a procfs without masks", new_mount_api, .path = "proc", SPACES, OLD_KERNEL },
    { "open-tree",        "a copy of the mounts without their locks", clone_tree, .number = NR_open_tree, SPACES, OLD_KERNEL },
    { "open-tree-attr",   "the same by a newer call", clone_tree, .number = NR_open_tree_attr, SPACES, OLD_KERNEL },
    { "move-mount",       "masks moved away", move_proc, SPACES, OLD_KERNEL },
    { "fspick",           "settings of a mounted file system", pick_root, .path = "/", SPACES, OLD_KERNEL },
    { "mount-setattr",    "read-only, nodev, nosuid cleared", clear_flags, .path = "/", SPACES, OLD_KERNEL },
    { "listmount",        "mounts that the table does not show", list_mounts, SPACES, OLD_KERNEL },
    UNSHARE("user", CLONE_NEWUSER), UNSHARE("mount", CLONE_NEWNS), UNSHARE("pid", CLONE_NEWPID),
    UNSHARE("net", CLONE_NEWNET), UNSHARE("ipc", CLONE_NEWIPC), UNSHARE("uts", CLONE_NEWUTS),
    UNSHARE("cgroup", NEW_CGROUP), UNSHARE("time", NEW_TIME),
    UNSHARE("user-net", CLONE_NEWUSER | CLONE_NEWNET),
    CLONE("user", CLONE_NEWUSER), CLONE("mount", CLONE_NEWNS), CLONE("pid", CLONE_NEWPID),
    CLONE("net", CLONE_NEWNET), CLONE("ipc", CLONE_NEWIPC), CLONE("uts", CLONE_NEWUTS),
    CLONE("cgroup", NEW_CGROUP), CLONE("user-net", CLONE_NEWUSER | CLONE_NEWNET),
    CLONE3("user", CLONE_NEWUSER), CLONE3("mount", CLONE_NEWNS), CLONE3("net", CLONE_NEWNET),
    CLONE3("time", NEW_TIME),
    { "setns-mount",      "the mounts of another", enter, .path = "/proc/self/ns/mnt", .number = CLONE_NEWNS, SPACES },
    { "setns-net",        "the network of another", enter, .path = "/proc/self/ns/net", .number = CLONE_NEWNET, SPACES },
    { "setns-init",       "the namespaces of PID 1", enter, .path = "/proc/1/ns/uts", .number = CLONE_NEWUTS, SPACES },
    { "setns-pidfd",      "all namespaces of PID 1 at once", enter_by_pidfd, .number = 1, SPACES },
    { "swap-call",        "a call that the filter did not see", swap_call, SPACES },
    { "suspend-filter",   "no filter at all", suspend_filter, SPACES },
};
/* clang-format on */
const size_t mount_attempt_count = ARRAY_LEN(mount_attempts);
