#include "agent/init.h"

#include "agent/core/box.h"
#include "agent/renew.h"
#include "base/err.h"
#include "base/io.h"
#include "base/own.h"
#include "wire/boot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENV_MAX    128
#define ARGS_AT    3
#define ARGS_END   (ARGS_AT + BOOT_ARG_COUNT)
#define PATH_ROOM  256 /* for /new and a volume's path */
#define DISK_ROOM  24  /* for /dev/vda */
#define LOWER_ROOM 20  /* for /lower0/upper and a colon */
#define TRIES      5000
#define TRY_US     1000

/* What struct boot_told says. */
struct told {
    struct boot_told by;
    const char *processes;
    char *volumes;
    const char *roots; /* what the template is */
    char *argv[BOOT_ARG_COUNT + 1];
    char *envp[ENV_MAX + 1];
};

static struct told told;

static int read_texts(struct err *err)
{
    char *texts = told.by.texts;
    size_t len = told.by.len, count = 0;

    for (char *at = texts; at < texts + len; at += strlen(at) + 1, count++) {
        if (count == 0)
            told.processes = at;
        else if (count == 1)
            told.volumes = at;
        else if (count == 2)
            told.roots = at;
        else if (count < ARGS_END)
            told.argv[count - ARGS_AT] = at;
        else if (count < ARGS_END + ENV_MAX)
            told.envp[count - ARGS_END] = at;
    }
    return count >= ARGS_END && count <= ARGS_END + ENV_MAX
               ? 0
               : err_set(err, ERR_INTERNAL, "the host sent %zu texts", count);
}

/* A port whose host's end is not there for a moment reads as ended. */
static int read_port(int port, void *data, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = read(port, (char *) data + done, len - done);

        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -1;
        if (n <= 0)
            (void) usleep(TRY_US);
        done += n > 0 ? (size_t) n : 0;
    }
    return 0;
}

/* Waits: a copy of this machine continues here. Before anything else it has random bytes and the time of its own. */
static int wait_to_be_told(int port, struct err *err)
{
    if (io_write_all(port, "", 1) < 0 || read_port(port, &told.by, BOOT_TOLD_HEAD) < 0)
        return err_sys(err, errno, "wait for the host's word");
    if (told.by.magic != BOOT_TOLD_MAGIC || told.by.len == 0 ||
        told.by.len > sizeof told.by.texts || read_port(port, told.by.texts, told.by.len) < 0 ||
        told.by.texts[told.by.len - 1] != '\0')
        return err_set(err, ERR_INTERNAL, "the host's word cannot be read");
    renew_random(told.by.seed, sizeof told.by.seed);
    renew_time(told.by.time_ms);
    return read_texts(err);
}

/* ---- file systems ---- */

struct place {
    const char *source, *target, *type;
    unsigned long flags;
    const char *data;
};

static int mount_all(const struct place *places, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        (void) mkdir(places[i].target, 0755);
        if (mount(places[i].source, places[i].target, places[i].type, places[i].flags,
                  places[i].data) < 0)
            return err_sys(err, errno, "mount %s", places[i].target);
    }
    return 0;
}

static int mount_kernels(struct err *err)
{
    static const struct place places[] = {
        { "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
        { "sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
        { "dev", "/dev", "devtmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755" },
    };

    return mount_all(places, ARRAY_LEN(places), err);
}

static int look_for_disk(const char *serial, char path[DISK_ROOM])
{
    auto_dir DIR *disks = opendir("/sys/block");
    const struct dirent *entry;

    while (disks && (entry = readdir(disks))) {
        char file[300], text[32];

        (void) snprintf(file, sizeof file, "/sys/block/%s/serial", entry->d_name);
        if (strncmp(entry->d_name, "vd", 2) != 0 ||
            io_read_text(AT_FDCWD, file, text, sizeof text) < 0)
            continue;
        text[strcspn(text, "\n")] = '\0';
        if (strcmp(text, serial) == 0)
            return snprintf(path, DISK_ROOM, "/dev/%.16s", entry->d_name);
    }
    return -1;
}

/* It is found a moment after its driver; by its serial number, as names depend on what other disks there are. */
static int find_disk(const char *serial, char path[DISK_ROOM], struct err *err)
{
    for (int i = 0; i < TRIES; i++) {
        if (look_for_disk(serial, path) > 0)
            return 0;
        (void) usleep(TRY_US);
    }
    return err_set(err, ERR_INTERNAL, "there is no disk '%s'", serial);
}

/* One of the template's disks, at /lower0 and so on; `path` is where its files are. */
static int mount_lower(int number, char letter, char path[LOWER_ROOM], struct err *err)
{
    char serial[16], disk[DISK_ROOM];
    const struct place place = { disk, path, letter == BOOT_ROOT_DISK ? "ext4" : "erofs",
                                 MS_RDONLY | MS_NODEV, NULL };

    (void) snprintf(serial, sizeof serial, BOOT_INIT_ROOT "%d", number);
    (void) snprintf(path, LOWER_ROOM, "/lower%d", number);
    if (find_disk(serial, disk, err) < 0 || mount_all(&place, 1, err) < 0)
        return -1;
    if (letter == BOOT_ROOT_DISK)
        (void) snprintf(path, LOWER_ROOM, "/lower%d/upper", number);
    return 0;
}

/* All of it, as the overlay's option says it: the nearest first. */
static int mount_template(char lower[BOOT_ROOTS_MAX * LOWER_ROOM], struct err *err)
{
    static const struct place tree = { BOOT_INIT_ROOT, "/lower", "virtiofs", MS_RDONLY | MS_NODEV,
                                       NULL };
    char path[LOWER_ROOM];
    size_t len = 0;

    (void) snprintf(lower, LOWER_ROOM, "%s", tree.target);
    if (!told.roots[0])
        return mount_all(&tree, 1, err);
    for (int i = 0; told.roots[i] && i < BOOT_ROOTS_MAX; i++) {
        if (mount_lower(i, told.roots[i], path, err) < 0)
            return -1;
        len += (size_t) snprintf(lower + len, LOWER_ROOM, "%s%s", i ? ":" : "", path);
    }
    return 0;
}

/* A new disk's root is the template's. */
static int make_upper(const char *lower, struct err *err)
{
    char nearest[LOWER_ROOM];
    struct stat st;

    (void) snprintf(nearest, sizeof nearest, "%.*s", (int) strcspn(lower, ":"), lower);
    if (mkdir("/disk/work", 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "prepare the disk");
    if (mkdir("/disk/upper", 0755) < 0
            ? errno != EEXIST
            : stat(nearest, &st) < 0 || chown("/disk/upper", st.st_uid, st.st_gid) < 0 ||
                  chmod("/disk/upper", st.st_mode & 07777) < 0)
        return err_sys(err, errno, "prepare the disk");
    return 0;
}

/* The disk is empty, or that of a sandbox which was saved without its memory. */
static int mount_root(struct err *err)
{
    char disk[DISK_ROOM], lower[BOOT_ROOTS_MAX * LOWER_ROOM], options[sizeof lower + 80];
    const struct place own = { disk, "/disk", "ext4", MS_NODEV,
                               "noinit_itable,nobarrier,errors=remount-ro" };
    const struct place root = { "cove", "/new", "overlay", 0, options };

    if (find_disk(BOOT_INIT_DISK, disk, err) < 0 || mount_template(lower, err) < 0 ||
        mount_all(&own, 1, err) < 0 || make_upper(lower, err) < 0)
        return -1;
    (void) snprintf(options, sizeof options, "lowerdir=%s,upperdir=/disk/upper,workdir=/disk/work",
                    lower);
    return mount_all(&root, 1, err);
}

/* Makes what is missing. The disk may be one that was saved: a link on the way would lead elsewhere than was asked for. */
static int make_path(char *path, struct err *err)
{
    struct stat st;

    for (char *at = path + strlen("/new/"); *at; at++) {
        at += strcspn(at, "/");
        char was = *at;

        *at = '\0';
        (void) mkdir(path, 0755);
        if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
            return err_set(err, ERR_INVALID, "path: '%s' is in the way, and no directory",
                           path + strlen("/new"));
        *at = was;
        if (!was)
            break;
    }
    return 0;
}

static int mount_volume(unsigned number, const char *line, size_t len, struct err *err)
{
    char from[32], to[PATH_ROOM];
    unsigned long flags = MS_NOSUID | MS_NODEV | (line[0] == 'r' ? MS_RDONLY : 0);

    (void) snprintf(from, sizeof from, "/volumes/%u", number);
    (void) snprintf(to, sizeof to, "/new%.*s", (int) len - 1, line + 1);
    if (make_path(to, err) < 0)
        return -1;
    if (mount(from, to, NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | flags, NULL) < 0)
        return err_sys(err, errno, "mount a volume at %s", to + 4);
    return 0;
}

static int mount_volumes(struct err *err)
{
    static const struct place place = { BOOT_INIT_VOLUMES, "/volumes", "virtiofs",
                                        MS_NOSUID | MS_NODEV, NULL };
    unsigned number = 0;

    if (!told.volumes[0])
        return 0;
    if (mount_all(&place, 1, err) < 0)
        return -1;
    for (const char *line = told.volumes; *line; number++) {
        size_t len = strcspn(line, "\n");

        if (len < 3 || len >= PATH_ROOM - 8)
            return err_set(err, ERR_INTERNAL, "the list of volumes is invalid");
        if (mount_volume(number, line, len, err) < 0)
            return -1;
        line += len + (line[len] == '\n');
    }
    return 0;
}

static int move_kernels(struct err *err)
{
    static const struct place places[] = {
        { "/proc", "/new/proc", NULL, MS_MOVE, NULL },
        { "/sys", "/new/sys", NULL, MS_MOVE, NULL },
        { "/dev", "/new/dev", NULL, MS_MOVE, NULL },
        { "devpts", "/new/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "ptmxmode=0666,mode=0620" },
        { "shm", "/new/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777" },
        { "cove", "/new/dev/cove", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755" },
        { "cgroup", "/new/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC,
          "favordynmods" }, /* every command enters one */
    };
    static const struct {
        const char *target, *name;
    } links[] = { { "/proc/self/fd", "/new/dev/fd" },
                  { "/proc/self/fd/0", "/new/dev/stdin" },
                  { "/proc/self/fd/1", "/new/dev/stdout" },
                  { "/proc/self/fd/2", "/new/dev/stderr" } };

    if (mount_all(places, ARRAY_LEN(places), err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        IGNORE(symlink(links[i].target, links[i].name) < 0);
    return 0;
}

/* The kernel's own id of this boot cannot be changed, and a copy of the machine must have another (renew.h): a file is in its place. */
static int make_boot_id(struct err *err)
{
    auto_close int fd = open("/new" BOOT_ID_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    char text[64];

    if (fd < 0 || io_read_text(AT_FDCWD, "/new" BOOT_ID_SEEN, text, sizeof text) < 0 ||
        io_write_all(fd, text, strlen(text)) < 0 ||
        mount("/new" BOOT_ID_FILE, "/new" BOOT_ID_SEEN, NULL, MS_BIND, NULL) < 0)
        return err_sys(err, errno, "make a boot id");
    return 0;
}

/* Its program stays executable and unreadable, as in other sandboxes. */
static int copy_agent(struct err *err)
{
    auto_close int from = open("/init", O_RDONLY | O_CLOEXEC), to = -1;
    char path[80], data[65536];
    ssize_t n;

    (void) snprintf(path, sizeof path, "/new%.60s", told.argv[0]);
    to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0111);
    if (from < 0 || to < 0)
        return err_sys(err, errno, "make %s", path);
    while ((n = read(from, data, sizeof data)) > 0)
        if (io_write_all(to, data, (size_t) n) < 0)
            return err_sys(err, errno, "write %s", path);
    if (n < 0)
        return err_sys(err, errno, "read the agent");
    own_close(&to);
    if (make_boot_id(err) < 0)
        return -1;
    return mount(NULL, "/new/dev/cove", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) <
                   0
               ? err_sys(err, errno, "protect /dev/cove")
               : 0;
}

/* ---- devices and modules ---- */

#define DEVICES "/sys/bus/virtio/"
#define CONSOLE "0x0003"

/* Those of that kind, or all: a driver takes them now. Meanwhile none does by itself: a disk would be known with the size of another. */
static void take_devices(const char *kind)
{
    auto_dir DIR *dir = opendir(DEVICES "devices");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char path[320], text[16];

        (void) snprintf(path, sizeof path, DEVICES "devices/%s/device", entry->d_name);
        if (entry->d_name[0] != '.' && io_read_text(AT_FDCWD, path, text, sizeof text) > 0 &&
            (!kind || strncmp(text, kind, strlen(kind)) == 0))
            (void) io_write_text(AT_FDCWD, DEVICES "drivers_probe", entry->d_name);
    }
}

static int by_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Those that a kernel has already, or cannot use, are no failure: what needs one says so. */
static void load_modules(bool first)
{
    struct dirent **list = NULL;
    int count = scandir("/" BOOT_INIT_MODULES, &list, by_name, alphasort);

    for (int i = 0; i < count; i++) {
        char path[300];
        auto_close int fd = -1;

        (void) snprintf(path, sizeof path, "/" BOOT_INIT_MODULES "/%s", list[i]->d_name);
        if ((list[i]->d_name[0] == '1') == first) {
            fd = open(path, O_RDONLY | O_CLOEXEC);
            if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
                (void) fprintf(stderr, "cove-init: %s: %s\n", list[i]->d_name, strerror(errno));
            (void) unlink(path); /* its memory is the guest's */
        }
        free(list[i]);
    }
    free(list);
}

/* By a process that keeps the old root: no process waits for these. */
static void load_more(void)
{
    if (fork() != 0)
        return;
    load_modules(false);
    _exit(0);
}

/* ---- the rest ---- */

/* The device is found by its name: its number depends on what other devices there are. */
static int open_port(struct err *err)
{
    static const char dir[] = "/sys/class/virtio-ports";

    for (int i = 0; i < TRIES; i++) {
        auto_dir DIR *ports = opendir(dir);
        const struct dirent *entry;

        take_devices(CONSOLE);
        while (ports && (entry = readdir(ports))) {
            char path[320], name[64];
            int fd;

            (void) snprintf(path, sizeof path, "%s/%s/name", dir, entry->d_name);
            if (entry->d_name[0] == '.' || io_read_text(AT_FDCWD, path, name, sizeof name) < 0)
                continue;
            name[strcspn(name, "\n")] = '\0';
            (void) snprintf(path, sizeof path, "/dev/%s", entry->d_name);
            if (strcmp(name, BOOT_INIT_PORT) == 0 && (fd = open(path, O_RDWR | O_CLOEXEC)) >= 0)
                return fd;
        }
        (void) usleep(TRY_US);
    }
    return err_set(err, ERR_INTERNAL, "there is no port to the host");
}

static int raise_loopback(struct err *err)
{
    auto_close int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK };

    return sock < 0 || ioctl(sock, SIOCSIFFLAGS, &request) < 0
               ? err_sys(err, errno, "raise the loopback")
               : 0;
}

/* All commands are in it, and the agent is not (box.h). The limit is one of the sandbox's, for whom forks too much; root inside may
 * lift it, and has the machine's memory as the bound. */
static int make_cgroup(struct err *err)
{
    (void) io_write_text(AT_FDCWD, "/sys/fs/cgroup/cgroup.subtree_control", "+pids");
    if (mkdir(BOX_CGROUP, 0755) < 0 ||
        io_write_text(AT_FDCWD, BOX_CGROUP "/pids.max", told.processes) < 0)
        return err_sys(err, errno, "limit processes");
    return 0;
}

static int enter_root(struct err *err)
{
    if (chdir("/new") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
        chdir("/") < 0)
        return err_sys(err, errno, "enter the root");
    return 0;
}

static void take_console(void)
{
    int fd = open("/dev/console", O_RDWR);

    for (int i = 0; fd >= 0 && i < 3; i++)
        if (fd != i)
            (void) dup2(fd, i);
    if (fd > 2)
        (void) close(fd);
}

static int prepare(struct err *err)
{
    const bool all = access("/" BOOT_INIT_ALL, F_OK) == 0;
    auto_close int port = -1;

    if (mount_kernels(err) < 0)
        return -1;
    take_console();
    (void) io_write_text(AT_FDCWD, DEVICES "drivers_autoprobe", "0");
    load_modules(true);
    if (all)
        load_modules(false);
    port = open_port(err);
    if (port < 0 || wait_to_be_told(port, err) < 0)
        return -1;
    (void) io_write_text(AT_FDCWD, DEVICES "drivers_autoprobe", "1");
    take_devices(NULL);
    if (mount_root(err) < 0 || mount_volumes(err) < 0)
        return -1;
    if (!all)
        load_more();
    if (move_kernels(err) < 0 || copy_agent(err) < 0 || enter_root(err) < 0 ||
        make_cgroup(err) < 0 || raise_loopback(err) < 0)
        return -1;
    return dup2(port, STDIN_FILENO) < 0 ? err_sys(err, errno, "take the port") : 0;
}

/* What the kernel gives its first process is less than commands may be allowed. */
static int raise_files(struct err *err)
{
    const struct rlimit files = { BOOT_FILES_MAX, BOOT_FILES_MAX };

    return setrlimit(RLIMIT_NOFILE, &files) < 0 ? err_sys(err, errno, "limit of open files") : 0;
}

int init_main(void)
{
    struct err err;

    if (prepare(&err) == 0 && raise_files(&err) == 0) {
        (void) execve(told.argv[0], told.argv, told.envp);
        err_sys(&err, errno, "start the agent");
    }
    (void) fprintf(stderr, "cove-init: %s\n", err.msg);
    (void) reboot(RB_AUTOBOOT); /* QEMU ends with it */
    return 1;
}
