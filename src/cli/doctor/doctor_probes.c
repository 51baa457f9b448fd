#include "cli/doctor/doctor_probes.h"

#include "base/io.h"
#include "base/kvm.h"
#include "base/own.h"
#include "client/sandbox.h"
#include "template/child.h"
#include "template/template_store.h"
#include "wire/runsc.h"
#include "wire/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PROBE_SECONDS 10

/* Runs a function in a child of its own; its result is an errno, 0 for success. A child that hangs
 * is ended by its own alarm. */
static int in_child(int flags, int (*body)(const char *arg), const char *arg)
{
    pid_t pid = (pid_t) syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    int status = 0;

    if (pid < 0)
        return errno;
    if (pid == 0) {
        (void) alarm(PROBE_SECONDS);
        _exit(body(arg));
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static int private_mounts(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? errno : 0;
}

static int body_user_namespace(const char *arg)
{
    (void) arg;
    return private_mounts();
}

static int probe_user_namespace(void)
{
    return in_child(CLONE_NEWUSER | CLONE_NEWNS, body_user_namespace, NULL);
}

static int wait_for_end(const char *arg)
{
    (void) arg;
    (void) pause();
    return 0;
}

/* A user namespace to map with, kept by a child that waits. */
static int map_namespace(pid_t *ret_pid, int *ret_fd)
{
    pid_t pid = (pid_t) syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    static const char *const maps[] = { "uid_map", "gid_map" };
    char path[64];

    if (pid < 0)
        return errno;
    if (pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) alarm(PROBE_SECONDS);
        _exit(wait_for_end(NULL));
    }
    *ret_pid = pid;
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        (void) snprintf(path, sizeof path, "/proc/%d/%s", (int) pid, maps[i]);
        if (io_write_text(AT_FDCWD, path, "0 1048576 65536") < 0)
            return errno;
    }
    (void) snprintf(path, sizeof path, "/proc/%d/ns/user", (int) pid);
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
    return *ret_fd < 0 ? errno : 0;
}

#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif
#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif

/* As the kernel's struct mount_attr, which older headers lack. */
struct probe_mount_attr {
    uint64_t attr_set, attr_clr, propagation, userns_fd;
};

static int map_tree(const char *path, int ns_fd)
{
    struct probe_mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t) ns_fd };
    auto_close int tree = (int) syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | O_CLOEXEC);

    if (tree < 0)
        return errno;
    if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
        return errno;
    return 0;
}

/* On the file system that templates are on: not each kind can do it. */
static int probe_idmapped_mount(const char *state)
{
    struct stat st;
    const char *path = stat(state, &st) == 0 ? state : "/";
    auto_close int ns_fd = -1;
    pid_t pid = -1;
    int r = map_namespace(&pid, &ns_fd);

    if (r == 0)
        r = map_tree(path, ns_fd);
    if (pid > 0) {
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
    }
    return r;
}

/* Before Linux 6.15 a mount that is attached nowhere cannot be cloned: EINVAL. */
static int probe_detached_clone(void)
{
    auto_close int tree = (int) syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | O_CLOEXEC);
    auto_close int clone = -1;

    if (tree < 0)
        return errno;
    clone = (int) syscall(SYS_open_tree, tree, "", OPEN_TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH);
    return clone < 0 ? errno : PROBE_YES;
}

static int body_overlay(const char *arg)
{
    static const char *const dirs[] = { "/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/all" };

    (void) arg;
    if (private_mounts() != 0 || mount("tmpfs", "/tmp", "tmpfs", 0, "size=64k") < 0)
        return errno;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdir(dirs[i], 0700) < 0)
            return errno;
    if (mount("overlay", "/tmp/all", "overlay", 0,
              "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work") < 0)
        return errno;
    return 0;
}

static int probe_overlay(void)
{
    return in_child(CLONE_NEWNS, body_overlay, NULL);
}

static int body_seccomp(const char *arg)
{
    struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

    (void) arg;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return errno;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) <
        0)
        return errno;
    return 0;
}

static int probe_seccomp_notify(void)
{
    return in_child(0, body_seccomp, NULL);
}

static int probe_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi < 0 ? 0 : (int) abi;
}

static const char *probe_kvm(void)
{
    auto_close int dev = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *why = NULL;
    auto_close int kvm = kvm_try(dev, &why);

    return kvm < 0 ? why : NULL;
}

static int probe_disk_free(const char *state, uint64_t *ret_bytes, uint64_t *ret_inodes)
{
    struct statvfs fs;
    char path[4096];

    /* The state directory may not be there yet: then its nearest parent counts. */
    (void) snprintf(path, sizeof path, "%s", state);
    while (statvfs(path, &fs) < 0) {
        char *slash = strrchr(path, '/');

        if (errno != ENOENT || !slash)
            return errno;
        slash[slash == path ? 1 : 0] = '\0';
    }
    *ret_bytes = (uint64_t) fs.f_bavail * fs.f_frsize;
    *ret_inodes = fs.f_favail;
    return 0;
}

#define CRIU_LIBS CRIU_PREFIX "/usr/lib/x86_64-linux-gnu"

static int ask_criu(bool from_prefix, const char *what, char *out, size_t size)
{
    const char *const from_dir[] = { CRIU_LIBS "/ld-linux-x86-64.so.2",
                                     "--library-path",
                                     CRIU_LIBS,
                                     CRIU_PREFIX CRIU_INSTALLED,
                                     what,
                                     NULL };
    const char *const installed[] = { CRIU_INSTALLED, what, NULL };
    struct err err;

    out[0] = '\0';
    return child_ask(from_prefix ? from_dir : installed, out, size, &err);
}

static uint32_t probe_runsc(const char *path)
{
    const char *const argv[] = { path, "--version", NULL };
    char text[256] = "";
    struct err err;

    (void) child_ask(argv, text, sizeof text, &err);
    return runsc_parse_version(text);
}

static uint32_t probe_qemu(void)
{
    const char *const argv[] = { VM_PREFIX VM_LOADER, "--library-path", VM_PREFIX VM_LIBRARIES,
                                 VM_PREFIX VM_QEMU,   "--version",      NULL };
    char text[256] = "";
    struct err err;

    (void) child_ask(argv, text, sizeof text, &err);
    return vm_parse_qemu_version(text);
}

static int probe_criu(bool from_prefix, bool check, struct doctor_criu *ret)
{
    char text[4096], *save = NULL;
    int r;

    (void) ask_criu(from_prefix, "--version", text, sizeof text);
    if (sscanf(text, "Version: %31s", ret->version) != 1)
        (void) snprintf(ret->version, sizeof ret->version, "unknown");
    if (!check)
        return 0;
    r = ask_criu(from_prefix, "check", text, sizeof text);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        (void) snprintf(ret->said, sizeof ret->said, "%s", line);
    return r;
}

static int probe_keeper(const char *state, struct doctor_keeper *ret, char *why, size_t size)
{
    struct keeper_hello hello;
    struct link link;
    struct err err;
    int r;

    if (link_open(&link, state, &err) < 0) {
        (void) snprintf(why, size, "%s", err.msg);
        return -1;
    }
    link.patience_ms = PROBE_SECONDS * 1000;
    r = keeper_hello(&link, &hello, &err);
    link_close(&link);
    if (r < 0) {
        (void) snprintf(why, size, "%s", err.msg);
        return -1;
    }
    ret->pid = hello.pid;
    ret->sandboxes = hello.sandboxes;
    ret->sandboxes_max = hello.sandboxes_max;
    (void) snprintf(ret->isolation, sizeof ret->isolation, "%s", hello.isolation);
    return 0;
}

static int probe_templates(const char *state, char *out, size_t size)
{
    auto_free struct template_entry *list = NULL;
    auto_close int store_fd = -1;
    struct err err;
    size_t count = 0, len = 0;

    out[0] = '\0';
    if (template_store_look(state, &store_fd, &err) < 0 ||
        template_list(store_fd, &list, &count, &err) < 0)
        return 0;
    for (size_t i = 0; i < count && len + TEMPLATE_NAME_MAX + 2 < size; i++)
        len += (size_t) snprintf(out + len, size - len, "%s%s", i ? ", " : "", list[i].name);
    return (int) count;
}

const struct doctor_probes doctor_probes = {
    .user_namespace = probe_user_namespace,
    .idmapped_mount = probe_idmapped_mount,
    .detached_clone = probe_detached_clone,
    .overlay = probe_overlay,
    .seccomp_notify = probe_seccomp_notify,
    .landlock_abi = probe_landlock_abi,
    .kvm = probe_kvm,
    .disk_free = probe_disk_free,
    .runsc = probe_runsc,
    .qemu = probe_qemu,
    .criu = probe_criu,
    .keeper = probe_keeper,
    .templates = probe_templates,
};
