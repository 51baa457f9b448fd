/* files.c - files of the host: by path, by handle, by link, by device node, by attribute. */
#include "escape.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OVERLAY_MAGIC 0x794c7630

static struct outcome secret_file(const struct attempt *attempt)
{
    char path[600];

    bait_name(path, sizeof path, attempt->path, "");
    return bait_readable(path) ? escaped("read %s", path) : held(errno, "%s", strerror(errno));
}

static struct outcome state_directory(const struct attempt *attempt)
{
    char prefix[300], path[600];

    (void) attempt;
    (void) snprintf(prefix, sizeof prefix, "%s/", bait.state ? bait.state : "/nowhere");
    bait_name(path, sizeof path, prefix, "");
    return bait_readable(path) ? escaped("read %s", path) : held(errno, "%s", strerror(errno));
}

static struct outcome shadow_file(const struct attempt *attempt)
{
    unsigned long hash = bait_hash_file(attempt->path);

    if (!hash)
        return by_call(-1, attempt->path);
    return hash == bait.shadow ? escaped("the host's %s", attempt->path) : held(0, "another's");
}

/* Up and out: "..", the magic links of /proc, and a root that is left behind by a descriptor. */
static struct outcome path_tricks(const struct attempt *attempt)
{
    static const char *const prefixes[] = {
        "../../../../../../../../../../tmp/",
        "/proc/self/root/../../../tmp/",
        "/proc/self/cwd/../../../../tmp/",
        "/proc/thread-self/root/tmp/../../../tmp/",
        "/dev/fd/../../root/../../tmp/",
        "/proc/1/root/tmp/",
        "/proc/1/cwd/tmp/",
    };
    char path[600];

    (void) attempt;
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        bait_name(path, sizeof path, prefixes[i], "");
        if (bait_readable(path))
            return escaped("read %s", path);
    }
    return held(0, "every way leads back into the sandbox");
}

static struct outcome symlink_out(const struct attempt *attempt)
{
    char target[600];

    bait_name(target, sizeof target, attempt->path, "");
    if (symlink(target, "link") < 0)
        return held(errno, "symlink");
    return bait_readable("link") ? escaped("read %s", target) : held(errno, "leads inside");
}

static struct outcome hard_link_out(const struct attempt *attempt)
{
    char target[600];

    bait_name(target, sizeof target, attempt->path, "");
    if (link(target, "hard") < 0)
        return by_call(-1, "link");
    return bait_readable("hard") ? escaped("linked %s", target) : held(0, "own file");
}

/* Leaving a chroot by a directory that was opened before. Root inside may do this within the
 * sandbox: what counts is where it ends. */
static struct outcome chroot_breakout(const struct attempt *attempt)
{
    char path[600];
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void) attempt;
    (void) mkdir("cage", 0755);
    if (chroot("cage") < 0)
        return by_call(-1, "chroot");
    if (fchdir(fd) < 0)
        return by_call(-1, "fchdir");
    for (int i = 0; i < 64; i++)
        (void) chdir("..");
    if (chroot(".") < 0)
        return by_call(-1, "chroot back");
    bait_name(path, sizeof path, "/tmp/", "");
    return bait_readable(path) ? escaped("out of the root: %s", path)
                               : held(0, "ends at the sandbox's own root");
}

/* "Shocker": inode 2 of the root's file system, by a handle that nobody gave us. */
static struct outcome file_handle(const struct attempt *attempt)
{
    struct {
        struct file_handle head;
        unsigned char bytes[128];
    } handle = { .head = { .handle_bytes = 128 } };
    int mount_id, root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long fd;

    (void) attempt;
    if (syscall(SYS_name_to_handle_at, AT_FDCWD, "/", &handle, &mount_id, 0L) < 0) {
        handle.head.handle_bytes = 8;
        handle.head.handle_type = 1;
        handle.bytes[0] = 2;
    }
    fd = syscall(SYS_open_by_handle_at, (long) root, &handle, (long) (O_RDONLY | O_CLOEXEC));
    return by_call(fd, "open_by_handle_at");
}

static struct outcome name_handle(const struct attempt *attempt)
{
    struct {
        struct file_handle head;
        unsigned char bytes[128];
    } handle = { .head = { .handle_bytes = 128 } };
    int mount_id;

    return by_call(syscall(SYS_name_to_handle_at, AT_FDCWD, attempt->path, &handle, &mount_id, 0L),
                   "name_to_handle_at");
}

/* A node of our own: 254:0 is the first virtio disk, 7:0 the first loop device. */
static struct outcome make_node(const struct attempt *attempt)
{
    dev_t dev = makedev((unsigned) (attempt->number >> 8), (unsigned) (attempt->number & 255));
    mode_t type = attempt->path[0] == 'b' ? S_IFBLK : S_IFCHR;
    int fd;

    if (mknod("node", type | 0600, dev) < 0)
        return by_call(-1, "mknod");
    fd = open("node", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 ? escaped("made and opened a device") : by_call(-1, "open of the node");
}

static struct outcome open_device(const struct attempt *attempt)
{
    int fd = open(attempt->path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    return by_call(fd, attempt->path);
}

static struct outcome first_disk(const struct attempt *attempt)
{
    static const char *const disks[] = { "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/xvda" };

    (void) attempt;
    for (size_t i = 0; i < ARRAY_LEN(disks); i++) {
        int fd = open(disks[i], O_RDONLY | O_CLOEXEC);

        if (fd >= 0)
            return escaped("opened %s", disks[i]);
    }
    return by_call(-1, "open of a disk");
}

/* Writing below a layer that is shared: fine where it lands in the sandbox's own layer (an
 * overlay), an escape anywhere else. */
static struct outcome write_shared(const struct attempt *attempt)
{
    struct statfs fs;
    char path[600];
    int fd;

    bait_name(path, sizeof path, attempt->path, "");
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return by_call(-1, path);
    if (fstatfs(fd, &fs) == 0 && fs.f_type == OVERLAY_MAGIC) {
        (void) unlink(path);
        return held(0, "written to the sandbox's own layer");
    }
    (void) unlink(path);
    return escaped("wrote %s", path);
}

static struct outcome overlay_attribute(const struct attempt *attempt)
{
    (void) mkdir("dir", 0755);
    return by_call(setxattr("dir", attempt->path, "y", 1, 0), attempt->path);
}

static struct outcome immutable_flag(const struct attempt *attempt)
{
    int fd = open("fixed", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    long flags = 0, with;

    if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
        return by_call(-1, "FS_IOC_GETFLAGS");
    with = flags | attempt->number;
    if (ioctl(fd, FS_IOC_SETFLAGS, &with) < 0)
        return by_call(-1, "FS_IOC_SETFLAGS");
    (void) ioctl(fd, FS_IOC_SETFLAGS, &flags);
    return escaped("made a file that cannot be removed");
}

static struct outcome project_id(const struct attempt *attempt)
{
    struct fsxattr attr;
    int fd = open("project", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    (void) attempt;
    if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &attr) < 0)
        return by_call(-1, "FS_IOC_FSGETXATTR");
    attr.fsx_projid = 4242;
    return by_call(ioctl(fd, FS_IOC_FSSETXATTR, &attr), "FS_IOC_FSSETXATTR");
}

static struct outcome setuid_copy(const struct attempt *attempt)
{
    char *argv[] = { (char *) "./suid", (char *) WORD_EUID, NULL };

    (void) attempt;
    if (copy_self("suid", 0755) < 0 || chown("suid", 0, 0) < 0 || chmod("suid", 04755) < 0)
        return by_call(-1, "a setuid copy");
    return run_child(1000, argv) == SAID_YES ? escaped("the setuid bit gave root")
                                             : held(0, "the setuid bit gives nothing");
}

/* A setuid program of the template: its effective id, while it waits for a password. */
static struct outcome setuid_program(const struct attempt *attempt)
{
    char path[64], text[4096];
    int ends[2], euid = -1;
    pid_t pid;

    if (access(attempt->path, X_OK) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return held(errno, "no %s here", attempt->path);
    pid = fork();
    if (pid == 0) {
        if (getuid() == 0 && (setresgid(1000, 1000, 1000) < 0 || setresuid(1000, 1000, 1000) < 0))
            _exit(1);
        (void) dup2(ends[0], 0);
        (void) dup2(open("/dev/null", O_RDWR), 1);
        (void) dup2(1, 2);
        execl(attempt->path, attempt->path, NULL);
        _exit(1);
    }
    (void) snprintf(path, sizeof path, "/proc/%d/status", (int) pid);
    for (int i = 0; i < 100 && euid != 0; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        char *line;

        text[n > 0 ? n : 0] = '\0';
        (void) close(fd);
        line = strstr(text, "\nUid:");
        if (!strstr(text, "escape") && line)
            (void) sscanf(line, "\nUid: %*d %d", &euid);
        (void) usleep(3000);
    }
    (void) kill(pid, 9);
    return euid == 0 ? escaped("%s runs as root", attempt->path) : held(0, "runs as %d", euid);
}

/* A file capability, as setcap would write it: CAP_SYS_ADMIN, permitted and effective. */
static struct outcome file_capability(const struct attempt *attempt)
{
    static const unsigned char value[20] = { 1, 0, 0, 2, 0, 0, 0x20, 0 };
    char *argv[] = { (char *) "./capable", (char *) WORD_CAPS, NULL };

    (void) attempt;
    if (copy_self("capable", 0755) < 0 || setxattr("capable", "security.capability", value, 20, 0))
        return by_call(-1, "a file capability");
    return run_child(1000, argv) == SAID_YES ? escaped("the file gave CAP_SYS_ADMIN")
                                             : held(0, "the file gives nothing");
}

#define SECRET(dir) secret_file, .path = (dir), .outside = ON_HOST
#define DEVICE(node)                                                                               \
    open_device, .path = (node), .outside = ON_HOST, .lacking = { ENOENT, ENODEV, ENXIO },         \
                 .reason = "this host has no such device"

/* clang-format off */
const struct attempt file_attempts[] = {
    { "file-root-home",   "files of the host's root", SECRET("/root/") },
    { "file-home",        "files of the host's users", SECRET("/home/") },
    { "file-var",         "data of the host's services", SECRET("/var/lib/") },
    { "file-tmp",         "temporary files of the host", SECRET("/tmp/") },
    { "file-run",         "run-time files of the host", SECRET("/run/") },
    { "file-etc",         "settings of the host", SECRET("/etc/") },
    { "file-opt",         "programs of the host", SECRET("/opt/") },
    { "file-srv",         "data of the host", SECRET("/srv/") },
    { "file-dev-shm",     "shared memory of the host", SECRET("/dev/shm/") },
    { "file-state",       "the keeper's state", state_directory, .outside = ON_HOST },
    { "file-shadow",      "passwords of the host", shadow_file, .path = "/etc/shadow", .outside = ON_HOST },
    { "path-tricks",      "anything of the host", path_tricks, .outside = ON_HOST },
    { "symlink-out",      "anything of the host", symlink_out, .path = "/proc/self/root/tmp/", .outside = ON_HOST },
    { "hard-link-out",    "a file of the host under another name", hard_link_out, .path = "/tmp/", .outside = ON_HOST },
    { "chroot-breakout",  "the file system of the host", chroot_breakout, .outside = ON_HOST },
    { "file-handle",      "shocker: any file by its inode number", file_handle, .outside = ON_HOST },
    { "name-handle",      "handles to use elsewhere", name_handle, .path = "/etc", .outside = ON_HOST },
    { "node-disk",        "the host's disk", make_node, .path = "b", .number = 254 << 8, .outside = ON_HOST, .lacking = { ENXIO, ENOENT, EPERM }, .reason = "this host has no virtio disk, or lets nobody open it" },
    { "node-loop",        "another sandbox's disk", make_node, .path = "b", .number = 7 << 8, .outside = ON_HOST, .lacking = { ENXIO }, .reason = "this host has no loop device" },
    { "node-mem",         "all memory", make_node, .path = "c", .number = 1 << 8 | 1, .outside = ON_HOST, .lacking = { ENXIO }, .reason = "this kernel has no /dev/mem" },
    { "node-kmsg",        "the kernel's log", make_node, .path = "c", .number = 1 << 8 | 11, .outside = ON_HOST },
    { "node-console",     "the host's console", make_node, .path = "c", .number = 5 << 8 | 1, .outside = ON_HOST, .lacking = { ENODEV, ENXIO, EIO }, .reason = "this host has no console" },
    { "dev-mem",          "all memory", DEVICE("/dev/mem") },
    { "dev-port",         "hardware", DEVICE("/dev/port") },
    { "dev-kvm",          "the hypervisor's surface", DEVICE("/dev/kvm") },
    { "dev-loop-control", "loop devices of the host", DEVICE("/dev/loop-control") },
    { "dev-loop0",        "another sandbox's disk", DEVICE("/dev/loop0") },
    { "dev-fuse",         "file systems that hang whoever looks", DEVICE("/dev/fuse") },
    { "dev-tun",          "network devices", DEVICE("/dev/net/tun") },
    { "dev-console",      "the host's console", DEVICE("/dev/console"), },
    { "dev-tty0",         "the host's screen", DEVICE("/dev/tty0") },
    { "dev-vcs",          "what the host's screen shows", DEVICE("/dev/vcs") },
    { "dev-autofs",       "mount requests", DEVICE("/dev/autofs") },
    { "dev-btrfs",        "file systems of the host", DEVICE("/dev/btrfs-control") },
    { "dev-vhost",        "the hypervisor's surface", DEVICE("/dev/vhost-vsock") },
    { "dev-userfaultfd",  "races made winnable", DEVICE("/dev/userfaultfd") },
    { "dev-disk",         "the host's disk", first_disk, .outside = ON_HOST, .lacking = { ENOENT }, .reason = "this host has no known disk" },
    { "write-usr",        "programs that others run", write_shared, .path = "/usr/", .outside = ON_HOST },
    { "write-usr-bin",    "programs that others run", write_shared, .path = "/usr/bin/", .outside = ON_HOST },
    { "write-lib",        "libraries that others load", write_shared, .path = "/lib/", .outside = ON_HOST },
    { "write-dev",        "device names that a manager trusts", write_shared, .path = "/dev/", .outside = ON_HOST },
    { "write-proc-sys",   "the kernel's settings", write_shared, .path = "/proc/sys/kernel/", .outside = NOT_AT_ALL, .reason = "nobody makes files in procfs" },
    { "write-sys",        "the kernel's settings", write_shared, .path = "/sys/", .outside = NOT_AT_ALL, .reason = "nobody makes files in sysfs" },
    { "trusted-overlay",  "layers that point elsewhere", overlay_attribute, .path = "trusted.overlay.opaque", .outside = ON_HOST },
    { "trusted-any",      "marks that the manager trusts", overlay_attribute, .path = "trusted.cove", .outside = ON_HOST },
    { "immutable",        "files that destroy cannot remove", immutable_flag, .number = FS_IMMUTABLE_FL, .outside = ON_HOST, .lacking = { ENOTTY, EOPNOTSUPP }, .reason = "/tmp is on a file system without flags" },
    { "append-only",      "files that destroy cannot remove", immutable_flag, .number = FS_APPEND_FL, .outside = ON_HOST, .lacking = { ENOTTY, EOPNOTSUPP }, .reason = "/tmp is on a file system without flags" },
    { "project-id",       "leaving a quota", project_id, .outside = ON_HOST, .lacking = { ENOTTY, EOPNOTSUPP, EINVAL }, .reason = "/tmp is on a file system without project ids" },
    { "setuid-copy",      "root by a file mode", setuid_copy, .outside = ON_HOST },
    { "setuid-program",   "root by a program of the template", setuid_program, .path = "/usr/bin/passwd", .outside = ON_HOST, .lacking = { ENOENT }, .reason = "this host has no passwd" },
    { "file-capability",  "capabilities by a file attribute", file_capability, .outside = ON_HOST },
};
/* clang-format on */
const size_t file_attempt_count = ARRAY_LEN(file_attempts);
