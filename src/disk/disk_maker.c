/* For each order: a blank image of that size (made by mkfs once, then kept), a sparse file, a loop device, a copy of the
 * blank on it, a detached mount. All but the file is held by descriptors only: a maker that is killed in between leaves a
 * file at most, which disks_sweep finds. */
#include "disk/disk_maker.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "disk/merge_maker.h"
#include "disk/rights.h"
#include "disk/volume_maker.h"
#include "jail/mountfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BLANKS      16 /* sizes kept; a caller that asks for many evicts its own */
#define MiB         (1024u * 1024u)
#define INODE_RATIO 8192u /* at least so many bytes per inode, or the inode table eats the disk */
#define WORKERS     3
#define FORMAT      "v1" /* in the name of a blank: another layout, another name */

#define NOT_FOUND 127 /* as a shell says it */

struct blank {
    uint64_t mib, inodes;
    int fd;
    char name[64];
};

struct maker {
    int dir_fd;
    int volumes_fd;
    int dev_fd; /* the host's /dev */
    int control_fd;
    size_t next; /* blank to evict */
    struct {
        pid_t pid; /* makes the disk of this order; 0: none */
        struct disk_order order;
    } workers[WORKERS];
    struct blank blanks[BLANKS];
};

int disk_maker_mkfs(const char *const *argv, struct err *err)
{
    char *const envp[] = { (char *) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    int status;
    pid_t pid = fork();

    if (pid < 0)
        return err_sys(err, errno, "fork mkfs");
    if (pid == 0) {
        (void) execve("/usr/sbin/mkfs.ext4", (char *const *) (uintptr_t) argv, envp);
        (void) execve("/sbin/mkfs.ext4", (char *const *) (uintptr_t) argv, envp);
        _exit(NOT_FOUND);
    }
    if (waitpid(pid, &status, 0) < 0)
        return err_sys(err, errno, "wait for mkfs");
    if (!WIFEXITED(status))
        return err_set(err, ERR_UNAVAILABLE, "mkfs.ext4 was killed");
    if (WEXITSTATUS(status) == NOT_FOUND)
        return err_set(err, ERR_UNSUPPORTED, "there is no mkfs.ext4: install e2fsprogs");
    if (WEXITSTATUS(status) != 0)
        return err_set(err, ERR_INTERNAL, "mkfs.ext4 failed (%d)", WEXITSTATUS(status));
    return 0;
}

static int run_mkfs(const char *image, const char *inodes, struct err *err)
{
    /* clang-format off */
    const char *const argv[] = { DISK_MKFS, "-N", inodes, "-O", "^has_journal,^resize_inode", "-E",
                                 "lazy_itable_init=1,nodiscard,root_owner=0:0", "-d", "skeleton", image, NULL };
    /* clang-format on */

    return disk_maker_mkfs(argv, err);
}

/* What every disk begins with; mkfs copies it into the image. */
static int make_skeleton(int dir_fd, struct err *err)
{
    static const struct {
        const char *path;
        mode_t mode;
    } dirs[] = { { "skeleton", 0711 },
                 { "skeleton/upper", 0755 },
                 { "skeleton/work", 0700 },
                 { "skeleton/shm", 01777 } };

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if ((mkdirat(dir_fd, dirs[i].path, 0700) < 0 && errno != EEXIST) ||
            fchmodat(dir_fd, dirs[i].path, dirs[i].mode, 0) < 0)
            return err_sys(err, errno, "make %s", dirs[i].path);
    return 0;
}

int disk_maker_format(int dir_fd, const char *name, uint64_t bytes, uint64_t inodes,
                      struct err *err)
{
    auto_close int fd = -1;
    char count[32];

    (void) snprintf(count, sizeof count, "%" PRIu64, inodes);
    (void) unlinkat(dir_fd, name, 0);
    fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, errno, "make a blank image");
    if (ftruncate(fd, (off_t) bytes) < 0)
        err_sys(err, errno, "size a blank image");
    else if (make_skeleton(dir_fd, err) == 0 && fchdir(dir_fd) == 0 &&
             run_mkfs(name, count, err) == 0)
        return take_fd(&fd);
    (void) unlinkat(dir_fd, name, 0);
    return -1;
}

static int make_blank(struct maker *m, struct blank *b, struct err *err)
{
    auto_close int fd = -1;
    char temporary[80];

    (void) snprintf(temporary, sizeof temporary, "%s.new", b->name);
    fd = disk_maker_format(m->dir_fd, temporary, b->mib * MiB, b->inodes, err);
    if (fd < 0)
        return -1;
    if (fdatasync(fd) < 0) { /* the name must not outlive a power cut that the content does not */
        err_sys(err, errno, "save a blank image");
        goto undo;
    }
    if (renameat(m->dir_fd, temporary, m->dir_fd, b->name) < 0) {
        err_sys(err, errno, "name a blank image");
        goto undo;
    }
    b->fd = take_fd(&fd);
    return 0;

undo:
    (void) unlinkat(m->dir_fd, temporary, 0);
    return -1;
}

static struct blank *get_blank(struct maker *m, const struct disk_order *order, struct err *err)
{
    uint64_t mib = order->bytes / MiB, inodes = order->inodes;
    struct blank *b;

    if (mib < 1)
        mib = 1;
    if (inodes > mib * MiB / INODE_RATIO)
        inodes = mib * MiB / INODE_RATIO;
    for (size_t i = 0; i < BLANKS; i++)
        if (m->blanks[i].fd >= 0 && m->blanks[i].mib == mib && m->blanks[i].inodes == inodes)
            return &m->blanks[i];

    b = &m->blanks[m->next++ % BLANKS];
    if (b->fd >= 0)
        (void) unlinkat(m->dir_fd, b->name, 0);
    own_close(&b->fd);
    b->mib = mib;
    b->inodes = inodes;
    (void) snprintf(b->name, sizeof b->name, "blank-" FORMAT "-%" PRIu64 "-%" PRIu64, mib, inodes);
    b->fd = openat(m->dir_fd, b->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (b->fd < 0 && make_blank(m, b, err) < 0)
        return NULL;
    return b;
}

int disk_copy_data(int from, int to)
{
    off_t at = 0;

    while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
        off_t end = lseek(from, at, SEEK_HOLE);

        if (end < 0 || lseek(to, at, SEEK_SET) < 0)
            return -1;
        while (at < end) {
            ssize_t n = sendfile(to, from, &at, (size_t) (end - at));

            if (n <= 0)
                return -1;
        }
    }
    return errno == ENXIO ? 0 : -1; /* ENXIO: no data behind this offset */
}

void disk_file_name(uint64_t number, char out[DISK_FILE_NAME])
{
    (void) snprintf(out, DISK_FILE_NAME, "d%016" PRIx64, number);
}

#define LOOP_GUESSES 4
#define LOOP_TRIES   16

/* To find a free device the kernel looks at one after the other, from the first. The ones behind the last that was free are tried
 * before it is asked: those have rested longest. -1: it is asked. */
static int own_guess = -1, *loop_guess = &own_guess;

/* Before the first worker: they have one guess together. */
static void share_guess(void)
{
    void *shared =
        mmap(NULL, sizeof *loop_guess, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return;
    loop_guess = shared;
    *loop_guess = -1;
}

static void set_guess(int number)
{
    __atomic_store_n(loop_guess, number, __ATOMIC_RELAXED);
}

/* No two get the same. */
static int take_guess(void)
{
    return __atomic_load_n(loop_guess, __ATOMIC_RELAXED) < 0
               ? -1
               : __atomic_fetch_add(loop_guess, 1, __ATOMIC_RELAXED);
}

int disk_maker_loop(int dev_fd, int control_fd, int image, bool read_only, struct err *err)
{
    uint32_t flags = LO_FLAGS_AUTOCLEAR | (read_only ? LO_FLAGS_READ_ONLY : 0u);

    /* Another program may take the free device first: then there is another free one. */
    for (int tries = 0; tries < LOOP_TRIES; tries++) {
        struct loop_config config = { .fd = (uint32_t) image,
                                      .block_size = 4096,
                                      .info.lo_flags = flags };
        int guess = tries < LOOP_GUESSES ? take_guess() : -1;
        int number = guess >= 0 ? guess : ioctl(control_fd, LOOP_CTL_GET_FREE);
        auto_close int fd = -1;
        char name[32];

        if (number < 0)
            return err_sys(err, errno, "find a free loop device");
        (void) snprintf(name, sizeof name, "loop%d", number);
        fd = openat(dev_fd, name, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
        if (fd < 0 && guess < 0)
            return err_sys(err, errno, "open %s", name);
        if (fd < 0 || guess < 0)
            set_guess(fd < 0 ? -1 : number + 1);
        if (fd < 0)
            continue;
        if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
            return take_fd(&fd);
        if (errno != EBUSY && guess < 0)
            return err_sys(err, errno, "configure %s", name);
    }
    return err_set(err, ERR_TOO_MANY, "no free loop device: other programs use new ones at once");
}

/* The first writes to a fresh ext4 wait for its bitmaps and inode tables to be read: do it here, where
 * no caller waits, and not in the overlay mount of a create. A disk that cannot do this fails there. */
static void warm_up(int mount_fd)
{
    static const char *const places[] = { "upper/warm", "work/warm", "shm/warm" };

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        auto_close int fd = -1;

        (void) mkdirat(mount_fd, places[i], 0700);
        (void) unlinkat(mount_fd, places[i], AT_REMOVEDIR);
        fd = openat(mount_fd, places[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        IGNORE(write(fd, "x", 1));
        (void) unlinkat(mount_fd, places[i], 0);
    }
}

/* What an overlay kept for itself while it was mounted: not of use to the next one, and in its way. The names are the
 * kernel's own, two levels deep. */
static int clear_work(int at, const char *name, int depth)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir)
        return -1;
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) == 0)
            continue;
        if (errno != EISDIR || (depth > 0 && clear_work(fd, entry->d_name, depth - 1) < 0) ||
            unlinkat(fd, entry->d_name, AT_REMOVEDIR) < 0)
            return -1;
    }
    return 0;
}

#define WORK_DEPTH 3

static int open_image(struct maker *m, const struct disk_order *order, const struct blank *blank,
                      struct err *err)
{
    auto_close int fd = -1;
    char name[DISK_FILE_NAME];

    disk_file_name(order->number, name);
    if (order->job != DISK_NEW) {
        fd = openat(m->dir_fd, name,
                    (order->job == DISK_BASE ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? err_sys(err, errno, "open a disk") : take_fd(&fd);
    }
    fd = openat(m->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t) (blank->mib * MiB)) < 0) {
        err_sys(err, errno, "make an image");
        if (fd >= 0)
            (void) unlinkat(m->dir_fd, name, 0);
        return -1;
    }
    return take_fd(&fd);
}

int disk_maker_mount(int loop_fd, bool base, struct err *err)
{
    char source[32];

    (void) snprintf(source, sizeof source, "/proc/self/fd/%d", loop_fd);
    /* noinit_itable: or a kernel thread would zero the inode tables of every disk. nobarrier: what is
     * on it dies with the machine's run, unless it is saved, and then it is synced. */
    return mountfd_new("ext4",
                       (const char *const[]){ "source", source, base ? "ro" : "noinit_itable", "",
                                              "nobarrier", "", "errors", "remount-ro", NULL },
                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (base ? MOUNT_ATTR_RDONLY : 0), err);
}

static int make_disk(struct maker *m, const struct disk_order *order, const struct blank *blank,
                     struct err *err)
{
    bool base = order->job == DISK_BASE;
    auto_close int image = open_image(m, order, blank, err), loop = -1, fd = -1;

    if (image < 0)
        return -1;
    loop = disk_maker_loop(m->dev_fd, m->control_fd, image, base, err);
    if (loop < 0)
        return -1;
    /* Through the device, whose cache the file system works on. A file with data would be written to the host's disk when
     * it becomes a device, and a caller that waits for the sandbox would wait for that; most disks are gone before the kernel
     * writes anything of them. */
    if (order->job == DISK_NEW && disk_copy_data(blank->fd, loop) < 0)
        return err_sys(err, errno, "fill an image");
    fd = disk_maker_mount(loop, base, err);
    if (fd < 0)
        return -1;
    if (order->job == DISK_NEW)
        warm_up(fd);
    if (order->job == DISK_OLD && (clear_work(fd, "work", WORK_DEPTH) < 0 ||
                                   (clear_work(fd, "shm-work", WORK_DEPTH) < 0 && errno != ENOENT)))
        return err_sys(err, errno, "clear what an overlay left");
    return take_fd(&fd);
}

static int start(struct maker *m, int *sock, int host_mnt_fd, int dir_fd, int volumes_fd)
{
    /* Everything but what is needed goes, before anything else is opened. */
    int low[4] = { fcntl(*sock, F_DUPFD, 100), fcntl(host_mnt_fd, F_DUPFD, 100),
                   fcntl(dir_fd, F_DUPFD, 100), fcntl(volumes_fd, F_DUPFD, 100) };
    struct err err;

    for (int i = 0; i < 4; i++)
        if (low[i] < 0 || dup3(low[i], 3 + i, O_CLOEXEC) < 0)
            return -1;
    if (io_close_from(7, false) < 0)
        return -1;
    *sock = 3;
    m->dir_fd = 5;
    m->volumes_fd = 6;
    if (setns(4, CLONE_NEWNS) < 0)
        return -1;
    m->dev_fd = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    m->control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    for (size_t i = 0; i < BLANKS; i++)
        m->blanks[i].fd = -1;
    if (m->dev_fd < 0)
        return -1;
    share_guess();
    if (rights_of_maker(&err) < 0) {
        log_line(LOG_ERROR, "%s", err.msg);
        return -1;
    }
    return 0;
}

static struct disk_answer answer_to(const struct disk_order *order)
{
    return (struct disk_answer){ .number = order->number, .tag = order->tag, .job = order->job };
}

/* A worker that ended without an answer, killed perhaps, leaves us to give it: a caller waits. Returns
 * whether there was one. */
static bool reap(struct maker *m, int sock, int options)
{
    int status = 0;
    pid_t pid = waitpid(-1, &status, options);

    if (pid <= 0)
        return false;
    for (size_t i = 0; i < WORKERS; i++) {
        struct disk_answer answer = answer_to(&m->workers[i].order);

        if (m->workers[i].pid != pid)
            continue;
        m->workers[i].pid = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        err_set(&answer.err, ERR_UNAVAILABLE, "the maker of the disk ended before it was made");
        IGNORE(io_send_fds(sock, &answer, sizeof answer, NULL, 0) < 0);
    }
    return true;
}

static size_t free_worker(struct maker *m, int sock)
{
    for (;;) {
        for (size_t i = 0; i < WORKERS; i++)
            if (m->workers[i].pid == 0)
                return i;
        if (!reap(m, sock, 0))
            memset(m->workers, 0, sizeof m->workers); /* no children at all: no worker */
    }
}

static struct volume_place place_of(const struct maker *m)
{
    return (struct volume_place){ m->volumes_fd, m->dev_fd, m->control_fd };
}

/* A disk that is made ahead, mostly while a sandbox that was just made runs its first command: that goes first. Where
 * the scheduler groups by session, niceness counts within the session only, and the session has its own. */
static void give_way(void)
{
    (void) setpriority(PRIO_PROCESS, 0, 10);
    if (setsid() > 0)
        (void) io_write_text(AT_FDCWD, "/proc/self/autogroup", "10");
}

/* Most of the time is spent asleep, waiting for the kernel: a few at a time, each in a process. The blank
 * is made by us, once. */
static void serve_order(struct maker *m, int sock, const struct disk_order *order)
{
    struct disk_answer answer = answer_to(order);
    const struct blank *blank =
        order->job == DISK_NEW ? get_blank(m, order, &answer.err) : &m->blanks[0];
    size_t worker = free_worker(m, sock);
    pid_t pid = -1;

    if (blank) {
        pid = fork();
        if (pid < 0)
            err_sys(&answer.err, errno, "fork");
    }
    if (pid == 0) {
        struct volume_place place = place_of(m);
        struct merge_place disks = { m->dir_fd, m->dev_fd, m->control_fd };
        auto_close int fd = -1;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (order->tag < DISK_POOL) /* no caller waits for it */
            give_way();
        if (order->volume[0])
            (void) volume_maker_serve(&place, order, &fd, &answer.err);
        else if (order->job == DISK_MERGE)
            (void) merge_maker_serve(&disks, order, &answer.err);
        else
            fd = make_disk(m, order, blank, &answer.err);
        _exit(io_send_fds(sock, &answer, sizeof answer, &fd, fd >= 0 ? 1 : 0) < 0);
    }
    if (pid > 0) {
        m->workers[worker].pid = pid;
        m->workers[worker].order = *order;
    } else {
        IGNORE(io_send_fds(sock, &answer, sizeof answer, NULL, 0) < 0);
    }
}

/* The keeper removes what they were at as soon as we are gone: no worker may make it again. */
static void end_workers(const struct maker *m)
{
    for (size_t i = 0; i < WORKERS; i++)
        if (m->workers[i].pid > 0)
            (void) kill(m->workers[i].pid, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

static void on_child(int number)
{
    (void) number; /* only to end ppoll */
}

/* The next order; meanwhile workers may end. False: the keeper is gone. */
static bool next_order(struct maker *m, int sock, const sigset_t *waiting, struct disk_order *ret)
{
    struct pollfd p = { .fd = sock, .events = POLLIN };

    for (;;) {
        int n = ppoll(&p, 1, NULL, waiting);
        bool interrupted = n < 0 && errno == EINTR; /* before reaping has an errno of its own */

        while (reap(m, sock, WNOHANG))
            ;
        if (n > 0)
            return recv(sock, ret, sizeof *ret, 0) == (ssize_t) sizeof *ret;
        if (n < 0 && !interrupted)
            return false;
    }
}

_Noreturn void disk_maker_run(int sock, int host_mnt_fd, int dir_fd, int volumes_fd)
{
    struct maker m = { .dir_fd = -1 };
    struct volume_place place;
    struct disk_order order;
    struct sigaction child = { .sa_handler = on_child };
    sigset_t none, only_child;

    (void) sigemptyset(&none);
    (void) sigemptyset(&only_child);
    (void) sigaddset(&only_child, SIGCHLD);
    (void) sigprocmask(SIG_SETMASK, &only_child, NULL); /* taken while we wait, and nowhere else */
    (void) sigaction(SIGCHLD, &child, NULL);
    (void) signal(SIGINT, SIG_IGN); /* Ctrl-C is the keeper's to act on */
    (void) prctl(PR_SET_NAME, "cove-disks");
    (void) setsid();
    if (start(&m, &sock, host_mnt_fd, dir_fd, volumes_fd) < 0)
        _exit(1);
    place = place_of(&m);
    volume_maker_sweep(&place);
    while (next_order(&m, sock, &none, &order))
        serve_order(&m, sock, &order);
    end_workers(&m);
    _exit(0);
}
