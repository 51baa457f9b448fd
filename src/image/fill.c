/* Three processes with the same memory and the same descriptors (CLONE_VM, CLONE_FILES): what one of them maps or opens the others
 * have, and none of it is gone before all three are. A signal for one is none for the others.
 *
 *   cove-pages    brings the pages
 *   cove-filler   is the parent of both: starts cove-pages again when that is killed, kills the sandbox when pages cannot come
 *   cove-hold     waits for the end of cove-filler; then it does what cove-filler would have done
 *
 * A userfaultfd that the last of them closes gives zeros to a thread that waits for a page. So with one of them left the sandbox is killed first.
 * If all three are killed at once, the keeper sees that (fill_watch), or the next keeper does. */
#include "image/fill.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "image/image_own.h"
#include "image/pagemap.h"
#include "image/pages.h"
#include "image/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEAST       (48ull << 20) /* below, handing over costs more than it saves */
#define DOUBLE_MOST (16ull << 20)
#define KILL_MS     10000
#define STARTS_MAX  100
#define HOLD_MS     200
#define SOCKET_NAME "lazy-pages.socket" /* criu's */

/* ---- what comes later ---- */

static int open_pages(struct pages *p, int memory_fd, uint32_t id, uint32_t *ret, struct err *err)
{
    struct pages_file *f = &p->file[p->file_count];
    char name[CHUNKS_NAME_ROOM];

    (void) snprintf(name, sizeof name, "pages-%u.img", id);
    if (p->file_count == PAGES_FILES)
        return err_set(err, ERR_UNSUPPORTED, "more than %d files of pages", PAGES_FILES);
    f->chunks = chunks_find(p->chunks, name);
    if (!f->chunks)
        return err_set(err, ERR_DENIED, "it has no hashes of %s", name);
    f->fd = openat(memory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (f->fd < 0)
        return err_sys(err, errno, "open %s", name);
    *ret = p->file_count++;
    return 0;
}

static int read_process(struct pages *p, int memory_fd, const char *name, int pid, struct err *err)
{
    struct space *s = &p->space[p->space_count];
    auto_close int fd = openat(memory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    auto_free uint8_t *text = NULL;
    struct stat st;
    uint32_t id;

    if (fd < 0 || fstat(fd, &st) < 0 || !(text = malloc((size_t) st.st_size + 1)) ||
        io_read_all(fd, text, (size_t) st.st_size) < 0)
        return err_sys(err, errno, "read %s", name);
    if (p->space_count == SPACES_MAX / 2) /* the rest is for those that they fork */
        return err_set(err, ERR_UNSUPPORTED, "more than %d processes", SPACES_MAX / 2);
    s->uffd = -1;
    s->pid = pid;
    p->space_count++;
    if (pagemap_read(text, (size_t) st.st_size, &id, &s->ranges, err) < 0)
        return -1;
    return s->ranges.count ? open_pages(p, memory_fd, id, &s->file, err) : 0;
}

static int read_processes(struct pages *p, int memory_fd, struct err *err)
{
    int own = openat(memory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;

    if (!dir)
        return err_sys(err, errno, "list an image");
    while ((entry = readdir(dir))) {
        int pid, len = 0;

        if (sscanf(entry->d_name, "pagemap-%d.img%n", &pid, &len) == 1 && len &&
            !entry->d_name[len] && read_process(p, memory_fd, entry->d_name, pid, err) < 0)
            return -1;
    }
    return 0;
}

/* Chunks of which criu copies nothing. Ranges are in the order of the file, too. */
static void mark_later(const struct pages *p, const struct space *s, uint8_t *later)
{
    const struct chunk_file *f = p->file[s->file].chunks;
    const struct range *r = s->ranges.at;

    for (size_t i = 0; i < s->ranges.count; i++) {
        uint64_t begin = r[i].offset, end = begin + (r[i].end - r[i].start);

        for (; i + 1 < s->ranges.count && r[i + 1].offset == end; i++)
            end += r[i + 1].end - r[i + 1].start;
        begin = (begin + CHUNK_BYTES - 1) / CHUNK_BYTES;
        end = end >= f->bytes ? (f->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES : end / CHUNK_BYTES;
        for (; begin < end; begin++)
            later[f->first + begin] = 1;
    }
}

static int by_start(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

/* Bytes at addresses that more than one process has. Those were one page for all of them, as a rule, since the fork of one by the
 * other; criu makes it one again only when it copies itself. */
static uint64_t count_doubles(const struct pages *p)
{
    size_t count = 0, n = 0;
    auto_free struct range *all = NULL;
    uint64_t bytes = 0, end = 0;

    for (uint32_t i = 0; i < p->space_count; i++)
        count += p->space[i].ranges.count;
    all = malloc((count + 1) * sizeof *all);
    if (!all)
        return UINT64_MAX;
    for (uint32_t i = 0; i < p->space_count; i++)
        for (size_t j = 0; j < p->space[i].ranges.count; j++)
            all[n++] = p->space[i].ranges.at[j];
    qsort(all, count, sizeof *all, by_start);
    for (size_t i = 0; i < count; i++) {
        if (all[i].start < end)
            bytes += (all[i].end < end ? all[i].end : end) - all[i].start;
        if (all[i].end > end)
            end = all[i].end;
    }
    return bytes;
}

int fill_plan(int memory_fd, const struct chunks *chunks, int device_fd, struct fill *ret,
              struct err *err)
{
    struct pages *p;
    uint64_t all = 0;

    *ret = (struct fill) FILL_NONE;
    for (uint32_t i = 0; i < chunks->files; i++)
        all += chunks->file[i].bytes;
    if (all < LEAST || device_fd < 0)
        return 0;
    p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return err_sys(err, errno, "make a plan of pages");
    ret->pages = p;
    p->client = p->listener = p->alive_fd = p->device_fd = p->server_fd = -1;
    p->chunks = chunks;
    ret->later = calloc(chunks_count(chunks) + 1, 1);
    if (!ret->later || read_processes(p, memory_fd, err) < 0) {
        fill_done(ret);
        return ret->later ? -1 : err_set(err, ERR_NO_MEMORY, "no memory for a plan of pages");
    }
    for (uint32_t i = 0; i < p->space_count; i++) {
        ret->bytes += ranges_bytes(&p->space[i].ranges);
        if (p->space[i].ranges.count)
            mark_later(p, &p->space[i], ret->later);
    }
    if (ret->bytes < LEAST || count_doubles(p) > DOUBLE_MOST) {
        fill_done(ret);
        return 0;
    }
    p->device_fd = fcntl(device_fd, F_DUPFD_CLOEXEC, 3);
    return p->device_fd < 0 ? err_sys(err, errno, "dup") : 1;
}

void fill_done(struct fill *fill)
{
    struct pages *p = fill->pages;

    own_close(&fill->lock_fd);
    own_close(&fill->alive_fd);
    free(fill->later);
    fill->later = NULL;
    if (!p)
        return;
    own_close(&p->listener);
    own_close(&p->alive_fd);
    own_close(&p->device_fd);
    for (uint32_t i = 0; i < p->file_count; i++)
        own_close(&p->file[i].fd);
    for (uint32_t i = 0; i < p->space_count; i++)
        ranges_done(&p->space[i].ranges);
    (void) munmap(p, sizeof *p);
    fill->pages = NULL;
}

bool fill_possible(int device_fd)
{
    struct uffdio_api api = { .api = UFFD_API, .features = PAGES_FEATURES };
    auto_close int fd = device_fd < 0 ? -1 : ioctl(device_fd, USERFAULTFD_IOC_NEW, O_CLOEXEC);

    return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0;
}

/* ---- who brings the pages ---- */

/* It has descriptors of the image and of the memory to fill, and needs nothing else. Not by the C library, whose wrappers do more
 * than that. */
static void drop_privilege(void)
{
    (void) syscall(__NR_setgroups, 0, NULL);
    (void) syscall(__NR_setresgid, RIGHTS_NOBODY, RIGHTS_NOBODY, RIGHTS_NOBODY);
    if (syscall(__NR_setresuid, RIGHTS_NOBODY, RIGHTS_NOBODY, RIGHTS_NOBODY) < 0)
        _exit(PAGES_FAILED);
    (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

struct guard {
    struct fill *fill;
    const struct fill_box *box;
    int ready_fd;
    int self_fd;        /* pidfd of cove-filler */
    pid_t holder;       /* cove-hold */
    volatile bool done; /* nothing is left to do for cove-hold */
    uint64_t begun_us;
};

/* An empty note says that nothing is missing: a process killed in here must not leave one by accident. So the new text is
 * written over the old one first, and what is left of the old one is cut off then. */
static void write_note(const struct guard *g, const char *text)
{
    size_t len = strlen(text);

    if (pwrite(g->fill->lock_fd, text, len, 0) == (ssize_t) len)
        IGNORE(ftruncate(g->fill->lock_fd, (off_t) len) < 0);
}

static int serve(void *arg)
{
    struct guard *g = arg;
    struct pages *p = g->fill->pages;
    pid_t guard = getppid();
    enum pages_end end;

    (void) prctl(PR_SET_NAME, "cove-pages");
    end = pages_serve(p, drop_privilege);
    if (end == PAGES_DONE || end == PAGES_STOPPED)
        write_note(g, ""); /* nothing is missing, even if another is killed now */
    p->ended = 1 + (int) end;
    /* With no process left that would kill the sandbox, its processes wait where they are until one does: our end
     * would give them zeros. */
    if ((end == PAGES_CHANGED || end == PAGES_FAILED) && getppid() != guard)
        pages_hold(p);
    _exit((int) end);
}

/* ---- who looks after it ---- */

static enum pages_end look_after(struct guard *g)
{
    static _Alignas(64) unsigned char stack[256 << 10];
    struct pages *p = g->fill->pages;

    for (int starts = 0; starts < STARTS_MAX; starts++) {
        int pidfd = -1, status;
        pid_t pid = clone(serve, stack + sizeof stack,
                          CLONE_VM | CLONE_FILES | CLONE_PIDFD | SIGCHLD, g, &pidfd);
        char note[64];

        if (pid < 0)
            break;
        if (p->server_fd >= 0)
            (void) close(p->server_fd);
        p->server_fd = pidfd;
        (void) snprintf(note, sizeof note, "%d %d %d\n", (int) getpid(), (int) pid,
                        (int) g->holder);
        if (!p->ended)
            write_note(g, note);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (WIFEXITED(status))
            return (enum pages_end) WEXITSTATUS(status);
        log_line(LOG_WARNING, "sandbox=%s who brought its pages was killed%s", g->box->id,
                 p->torn ? " in the middle of a change" : "");
        if (p->torn)
            break;
    }
    return PAGES_FAILED;
}

/* All of it, before our descriptors are closed: a process without them sees zeros. */
static void kill_box(const struct guard *g, const char *why)
{
    const struct timespec moment = { .tv_nsec = 2000000 };
    uint64_t until = io_now_ms() + KILL_MS;
    char note[FILL_REASON_MAX + 1];

    (void) snprintf(note, sizeof note, "!%s", why);
    write_note(g, note);
    log_line(LOG_ERROR, "sandbox=%s killed: %s", g->box->id, why);
    do {
        if (cgroup_kill(g->box->cgroups, g->box->cgroup) == 0)
            return;
        (void) nanosleep(&moment, NULL);
    } while (io_now_ms() < until);
}

static void finish(struct guard *g, enum pages_end end)
{
    const struct pages *p = g->fill->pages;
    char name[NAME_ROOM];

    log_line(LOG_DEBUG, "filled sandbox=%s end=%d bytes=%" PRIu64 " faults=%" PRIu64 " us=%" PRIu64,
             g->box->id, (int) end, g->fill->bytes, p->faults, io_now_us() - g->begun_us);
    if (end == PAGES_CHANGED)
        kill_box(g, "its image was changed by another process, or cannot be read");
    else if (end == PAGES_FAILED)
        kill_box(g, FILL_LOST);
    (void) snprintf(name, sizeof name, "%s" FILL, g->box->id);
    if (end == PAGES_DONE || end == PAGES_STOPPED)
        (void) unlinkat(g->box->images->dir_fd, name, 0);
    g->done = true;
}

static bool has_ended(int pidfd, int wait_ms)
{
    struct pollfd watched = { .fd = pidfd, .events = POLLIN };

    return pidfd < 0 || poll(&watched, 1, wait_ms) > 0;
}

/* Does nothing as long as cove-filler lives: errno is the same variable for all three. */
static int hold(void *arg)
{
    struct guard *g = arg;
    const struct pages *p = g->fill->pages;

    (void) prctl(PR_SET_NAME, "cove-hold");
    while (!has_ended(g->self_fd, -1))
        ;
    if (g->done)
        _exit(0);
    /* One that failed without cove-filler says so, and does not end: its end would give zeros, were we killed. */
    while (!p->ended && !has_ended(p->server_fd, HOLD_MS))
        ;
    finish(g, p->ended ? (enum pages_end)(p->ended - 1) : PAGES_FAILED);
    _exit(0);
}

static int start_holder(struct guard *g, struct err *err)
{
    static _Alignas(64) unsigned char stack[64 << 10];

    g->holder = clone(hold, stack + sizeof stack, CLONE_VM | CLONE_FILES | SIGCHLD, g);
    return g->holder < 0 ? err_sys(err, errno, "start who holds its pages") : 0;
}

static int prepare(struct guard *g, struct err *err)
{
    g->self_fd = (int) syscall(__NR_pidfd_open, getpid(), 0);
    if (g->self_fd < 0)
        return err_sys(err, errno, "open ourselves");
    /* Else what will be staged for criu was mounted for as long as we live. */
    if (unshare(CLONE_NEWNS) < 0)
        return err_sys(err, errno, "new mount namespace");
    return rights_of_filler(g->box, err) < 0 ? -1 : start_holder(g, err);
}

static _Noreturn void guard(struct guard *g)
{
    struct err err;

    (void) prctl(PR_SET_NAME, "cove-filler");
    (void) setsid();
    write_note(
        g, "0 0 0\n"); /* from here on, a note without a holder tells of pages that are missing */
    if (prepare(g, &err) < 0) {
        log_line(LOG_ERROR, "sandbox=%s %s", g->box->id, err.msg);
        write_note(g, "");
        _exit(1);
    }
    if (write(g->ready_fd, "y", 1) != 1) {
        write_note(g, "");
        g->done = true;
        _exit(1);
    }
    own_close(&g->ready_fd);
    finish(g, look_after(g));
    _exit(0);
}

/* ---- begin ---- */

static int listen_for_criu(int work_fd, struct err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void) snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/" SOCKET_NAME, work_fd);
    if (fd < 0 || bind(fd, (const struct sockaddr *) &at, sizeof at) < 0 || listen(fd, 1) < 0)
        return err_sys(err, errno, "listen for criu");
    return take_fd(&fd);
}

static int open_lock(const struct fill_box *box, struct err *err)
{
    char name[NAME_ROOM];
    auto_close int fd = -1;

    (void) snprintf(name, sizeof name, "%s" FILL, box->id);
    fd = openat(box->images->dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || ftruncate(fd, 0) < 0)
        return err_sys(err, errno, "lock %s", name);
    return take_fd(&fd);
}

static void keep_own(const struct guard *g)
{
    const struct fill *fill = g->fill;
    const struct fill_box *box = g->box;
    const struct pages *p = fill->pages;
    static int keep[PAGES_FILES + 8 + 2 * CG_HIERARCHIES_MAX];
    size_t count = 0;

    keep[count++] = g->ready_fd;
    keep[count++] = p->listener;
    keep[count++] = p->alive_fd;
    keep[count++] = p->device_fd;
    keep[count++] = fill->lock_fd;
    keep[count++] = box->images->dir_fd;
    for (uint32_t i = 0; i < p->file_count; i++)
        keep[count++] = p->file[i].fd;
    for (size_t i = 0; i < box->cgroups->count; i++) {
        keep[count++] = box->cgroups->hierarchy[i].root_fd;
        keep[count++] = box->cgroups->hierarchy[i].parent_fd;
    }
    io_keep_only(keep, count);
}

int fill_start(struct fill *fill, const struct fill_box *box, struct err *err)
{
    struct guard g = { .fill = fill, .box = box, .begun_us = io_now_us() };
    struct pages *p = fill->pages;
    struct cgroup_entry apart;
    int alive[2], ready[2];
    auto_close int ready_fd = -1;
    pid_t pid;
    char word;

    fill->lock_fd = open_lock(box, err);
    if (fill->lock_fd < 0)
        return -1;
    p->listener = listen_for_criu(box->work_fd, err);
    if (p->listener < 0)
        return -1;
    if (pipe2(alive, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    p->alive_fd = alive[0];
    fill->alive_fd = alive[1];
    if (pipe2(ready, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    ready_fd = ready[0];
    g.ready_fd = ready[1];
    /* Not where the loader is: it would be killed with it, while processes that miss their pages are still alive. */
    if (cgroup_apart_open(box->cgroups, &apart, err) < 0) {
        (void) close(ready[1]);
        return -1;
    }
    pid = cgroup_fork(&apart);
    if (pid == 0) {
        keep_own(&g);
        guard(&g);
    }
    cgroup_entry_close(&apart);
    (void) close(ready[1]);
    /* From here on the lock is theirs. */
    own_close(&fill->lock_fd);
    own_close(&p->listener);
    own_close(&p->alive_fd);
    if (pid < 0)
        return err_sys(err, errno, "fork");
    if (read(ready_fd, &word, 1) != 1)
        return err_set(err, ERR_INTERNAL, "who is to bring the pages does not start");
    return 0;
}
