/* What runs in a sandbox's cgroups: frozen, counted, pressed out of memory, killed. Making them is cgroup.c's. */
#include "jail/cgroup.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_SIZE 192

int cgroup_freeze(const struct cgroups *cgroups, const char *name, bool frozen, struct err *err)
{
    const struct cgroup_hierarchy *h = cgroup_hierarchy_of(cgroups, CG_FREEZER);
    char path[PATH_SIZE];

    if (!h)
        return err_set(err, ERR_UNSUPPORTED, "this host has no cgroup freezer");
    if (h->version == 1) {
        (void) snprintf(path, sizeof path, "%s/freezer.state", name);
        if (io_write_text(h->parent_fd, path, frozen ? "FROZEN" : "THAWED") < 0)
            return err_sys(err, errno, "write freezer.state");
        return 0;
    }
    (void) snprintf(path, sizeof path, "%s/cgroup.freeze", name);
    if (io_write_text(h->parent_fd, path, frozen ? "1" : "0") < 0)
        return err_sys(err, errno, "write cgroup.freeze");
    return 0;
}

int cgroup_freeze_done(const struct cgroups *cgroups, const char *name, bool frozen)
{
    const struct cgroup_hierarchy *h = cgroup_hierarchy_of(cgroups, CG_FREEZER);
    char path[PATH_SIZE], text[256];

    if (!h)
        return -1;
    (void) snprintf(path, sizeof path, "%s/%s", name,
                    h->version == 1 ? "freezer.state" : "cgroup.events");
    if (io_read_text(h->parent_fd, path, text, sizeof text) < 0)
        return -1;
    if (h->version == 1)
        return strcmp(text, frozen ? "FROZEN\n" : "THAWED\n") == 0;
    return strstr(text, frozen ? "frozen 1" : "frozen 0") != NULL;
}

#define AT(field) offsetof(struct keeper_stats, field)

/* What a controller counts, and where each version has it. */
/* clang-format off */
static const struct figure {
    size_t field;
    enum cgroup_controller controller;
    int version;
    const char *file;
    const char *key;   /* of a file of "key number" lines; NULL: the number is all there is */
    unsigned unit;     /* how many of the kernel's make one of ours */
    bool brief;        /* also in a brief answer */
} figures[] = {
    { AT(memory_bytes),       CG_MEMORY,  1, "memory.usage_in_bytes",     NULL,          1,    false },
    { AT(memory_bytes),       CG_MEMORY,  2, "memory.current",            NULL,          1,    false },
    { AT(memory_peak_bytes),  CG_MEMORY,  1, "memory.max_usage_in_bytes", NULL,          1,    true },
    { AT(memory_peak_bytes),  CG_MEMORY,  2, "memory.peak",               NULL,          1,    true },
    { AT(memory_cache_bytes), CG_MEMORY,  1, "memory.stat",               "cache ",      1,    false },
    { AT(memory_cache_bytes), CG_MEMORY,  2, "memory.stat",               "file ",       1,    false },
    { AT(oom_kills),          CG_MEMORY,  1, "memory.oom_control",        "oom_kill ",   1,    true },
    { AT(oom_kills),          CG_MEMORY,  2, "memory.events",             "oom_kill ",   1,    true },
    { AT(cpu_us),             CG_CPUACCT, 1, "cpuacct.usage",             NULL,          1000, true },
    { AT(cpu_us),             CG_CPUACCT, 2, "cpu.stat",                  "usage_usec ", 1,    true },
    { AT(processes),          CG_PIDS,    1, "pids.current",              NULL,          1,    false },
    { AT(processes),          CG_PIDS,    2, "pids.current",              NULL,          1,    false },
};
/* clang-format on */

/* 0 for what this kernel does not count. */
static uint64_t read_figure(const struct figure *figure, int parent_fd, const char *name)
{
    char path[PATH_SIZE], text[2048];
    const char *at = text;
    uint64_t value = 0;

    (void) snprintf(path, sizeof path, "%s/%s", name, figure->file);
    if (io_read_text(parent_fd, path, text, sizeof text) < 0)
        return 0;
    if (figure->key) {
        at = strstr(text, figure->key);
        if (!at)
            return 0;
        at += strlen(figure->key);
    }
    (void) sscanf(at, "%" SCNu64, &value);
    return value / figure->unit;
}

/* In both versions; pages of files in memory, which no disk has, count as pages of files there. */
static const struct figure shmem = { .file = "memory.stat", .key = "shmem ", .unit = 1 };

int cgroup_stats(const struct cgroups *cgroups, const char *name, bool brief,
                 struct keeper_stats *ret, struct err *err)
{
    const struct cgroup_hierarchy *memory = cgroup_hierarchy_of(cgroups, CG_MEMORY);

    if (faccessat(memory->parent_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "cgroup '%s'", name);
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        const struct cgroup_hierarchy *h = cgroup_hierarchy_of(cgroups, figures[i].controller);

        if (h && h->version == figures[i].version && (!brief || figures[i].brief))
            *(uint64_t *) ((char *) ret + figures[i].field) =
                read_figure(&figures[i], h->parent_fd, name);
    }
    if (!brief) {
        uint64_t held = read_figure(&shmem, memory->parent_fd, name);

        ret->memory_cache_bytes -= held < ret->memory_cache_bytes ? held : ret->memory_cache_bytes;
    }
    return 0;
}

#define RECLAIM_STEP  (UINT64_C(32) << 20)  /* between two looks at the clock */
#define RECLAIM_LEAST (UINT64_C(256) << 10) /* a step that moves less was the last */

/* One write, tried once: EAGAIN is memory.reclaim's word for "not all of it went". */
static int write_once(int dirfd, const char *name, const char *file, const char *text)
{
    char path[PATH_SIZE];
    auto_close int fd = -1;

    (void) snprintf(path, sizeof path, "%s/%s", name, file);
    fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

static uint64_t memory_now(const struct cgroups *cgroups, const char *name)
{
    struct keeper_stats stats = { 0 };
    struct err ignored;

    return cgroup_stats(cgroups, name, false, &stats, &ignored) < 0 ? 0 : stats.memory_bytes;
}

/* Step by step: of a write for all of it the kernel says nothing until it gives up. */
static int press_v2(const struct cgroups *cgroups, const char *name, int parent_fd,
                    uint64_t until_ms, struct err *err)
{
    uint64_t before = memory_now(cgroups, name), after;
    char bytes[32];

    for (; before > RECLAIM_LEAST && io_now_ms() < until_ms; before = after) {
        (void) snprintf(bytes, sizeof bytes, "%" PRIu64,
                        before < RECLAIM_STEP ? before : RECLAIM_STEP);
        if (write_once(parent_fd, name, "memory.reclaim", bytes) < 0 && errno != EAGAIN &&
            errno != EBUSY && errno != EINTR)
            return errno == ENOENT
                       ? err_set(err, ERR_UNSUPPORTED, "moving memory to swap needs Linux 5.19")
                       : err_sys(err, errno, "reclaim memory");
        after = memory_now(cgroups, name);
        if (after + RECLAIM_LEAST > before)
            break;
    }
    return 0;
}

/* A sandbox has no swap, but for as long as this takes: what went there stays until it is touched. */
static int reclaim_v2(const struct cgroups *cgroups, const char *name, uint64_t swap_bytes,
                      uint64_t until_ms, struct err *err)
{
    int parent_fd = cgroup_hierarchy_of(cgroups, CG_MEMORY)->parent_fd;
    char bytes[32];
    int rc;

    (void) snprintf(bytes, sizeof bytes, "%" PRIu64, swap_bytes);
    if (write_once(parent_fd, name, "memory.swap.max", bytes) < 0)
        return errno == ENOENT ? err_set(err, ERR_UNSUPPORTED, "this kernel does not limit swap")
                               : err_sys(err, errno, "write memory.swap.max");
    rc = press_v2(cgroups, name, parent_fd, until_ms, err);
    if (write_once(parent_fd, name, "memory.swap.max", "0") < 0 && rc == 0)
        rc = err_sys(err, errno, "write memory.swap.max");
    return rc;
}

uint64_t cgroup_memory(const struct cgroups *cgroups, const char *name)
{
    const struct cgroup_hierarchy *h = cgroup_hierarchy_of(cgroups, CG_MEMORY);

    for (size_t i = 0; i < ARRAY_LEN(figures); i++)
        if (figures[i].field == AT(memory_bytes) && figures[i].version == h->version)
            return read_figure(&figures[i], h->parent_fd, name);
    return 0;
}

int cgroup_reclaim(const struct cgroups *cgroups, const char *name, uint64_t swap_bytes,
                   uint64_t patience_ms, struct err *err)
{
    const struct cgroup_hierarchy *h = cgroup_hierarchy_of(cgroups, CG_MEMORY);

    if (h->version == 2)
        return reclaim_v2(cgroups, name, swap_bytes, io_now_ms() + patience_ms, err);
    /* EBUSY: not all of it went, which is no failure. */
    if (write_once(h->parent_fd, name, "memory.force_empty", "0") < 0 && errno != EAGAIN &&
        errno != EBUSY && errno != EINTR)
        return err_sys(err, errno, "reclaim memory");
    return 0;
}

/* How many there are; 0 in the list is a process of an outer pid namespace. Without a heap: those who bring pages share theirs with one
 * that was killed (image/fill.c). */
static size_t each_in(const struct cgroup_hierarchy *h, const char *name,
                      void (*fn)(pid_t pid, const void *arg), const void *arg)
{
    char path[PATH_SIZE], text[1024];
    auto_close int fd = -1;
    size_t count = 0;
    ssize_t n;
    int pid = 0;

    (void) snprintf(path, sizeof path, "%s/cgroup.procs", name);
    fd = openat(h->parent_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    while (fd >= 0 && (n = read(fd, text, sizeof text)) > 0)
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] != '\n') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            count++;
            if (pid > 1)
                fn((pid_t) pid, arg);
            pid = 0;
        }
    return count;
}

void cgroup_each_process(const struct cgroups *cgroups, const char *name,
                         void (*fn)(pid_t pid, const void *arg), const void *arg)
{
    (void) each_in(cgroup_hierarchy_of(cgroups, CG_PIDS), name, fn, arg);
}

/* ---- the end ---- */

static void kill_one(pid_t pid, const void *arg)
{
    (void) arg;
    (void) kill(pid, SIGKILL);
}

/* On v2 the kernel kills by itself, forks in flight included (since Linux 5.14). */
static size_t kill_in(const struct cgroup_hierarchy *h, const char *name)
{
    char path[PATH_SIZE];

    if (h->version == 2) {
        (void) snprintf(path, sizeof path, "%s/cgroup.kill", name);
        (void) io_write_text(h->parent_fd, path, "1");
    }
    return each_in(h, name, kill_one, NULL);
}

enum when { BEFORE, AFTER, HELD, LATE };

/* What is written to the cgroup of processes that are killed. Before: none is born any more, so that one look finds all. After: frozen
 * ones thaw. Held, where the limit of processor time ever held them up, or they are many: whatever waits for its share gets it;
 * with the signal pending they do nothing but die. Not of all: to lift that limit the kernel looks at every cgroup of the machine. Late,
 * of those that take long: a memory limit is no reason to wait, either. */
/* clang-format off */
static const struct last_word {
    enum when when;
    enum cgroup_controller controller;
    int version;
    const char *file, *text;
} last_words[] = {
    { BEFORE, CG_PIDS,    1, "pids.max",                    "0" },
    { BEFORE, CG_PIDS,    2, "pids.max",                    "0" },
    { AFTER,  CG_FREEZER, 1, "freezer.state",               "THAWED" },
    { AFTER,  CG_FREEZER, 2, "cgroup.freeze",               "0" },
    { HELD,   CG_CPU,     1, "cpu.cfs_quota_us",            "-1" },
    { HELD,   CG_CPU,     2, "cpu.max",                     "max" },
    { LATE,   CG_CPU,     1, "cpu.shares",                  "262144" }, /* the most there is */
    { LATE,   CG_CPU,     2, "cpu.weight",                  "10000" },
    { LATE,   CG_MEMORY,  1, "memory.memsw.limit_in_bytes", "-1" }, /* the larger of the two first */
    { LATE,   CG_MEMORY,  1, "memory.limit_in_bytes",       "-1" },
    { LATE,   CG_MEMORY,  2, "memory.max",                  "max" },
};
/* clang-format on */

/* A file that this kernel does not have holds no process back. */
static void say_last(const struct cgroups *cgroups, const char *name, enum when when)
{
    for (size_t i = 0; i < ARRAY_LEN(last_words); i++) {
        const struct last_word *w = &last_words[i];
        const struct cgroup_hierarchy *h = cgroup_hierarchy_of(cgroups, w->controller);
        char path[PATH_SIZE];

        if (w->when != when || !h || h->version != w->version)
            continue;
        (void) snprintf(path, sizeof path, "%s/%s", name, w->file);
        (void) io_write_text(h->parent_fd, path, w->text);
    }
}

#define MANY_PROCESSES 16

/* The kernel counts this at the end of a period of 100 ms: who is held up for the first time waits no longer than that. */
static bool was_held(const struct cgroups *cgroups, const char *name)
{
    const struct cgroup_hierarchy *h = cgroup_hierarchy_of(cgroups, CG_CPU);
    char path[PATH_SIZE], text[1024];
    const char *at;

    if (!h)
        return false;
    (void) snprintf(path, sizeof path, "%s/cpu.stat", name);
    if (io_read_text(h->parent_fd, path, text, sizeof text) < 0)
        return true; /* not known */
    at = strstr(text, "nr_throttled ");
    return !at || strtoull(at + strlen("nr_throttled "), NULL, 10) > 0;
}

size_t cgroup_end(const struct cgroups *cgroups, const char *name, bool late)
{
    size_t count;

    say_last(cgroups, name, BEFORE);
    count = kill_in(cgroup_hierarchy_of(cgroups, CG_PIDS), name);
    say_last(cgroups, name, AFTER);
    if (late || count > MANY_PROCESSES || was_held(cgroups, name))
        say_last(cgroups, name, HELD);
    if (late)
        say_last(cgroups, name, LATE);
    return count;
}

size_t cgroup_kill(const struct cgroups *cgroups, const char *name)
{
    const struct cgroup_hierarchy *pids = cgroup_hierarchy_of(cgroups, CG_PIDS);
    size_t count = cgroup_end(cgroups, name, true);

    /* Half-made ones: a child enters one hierarchy after the other. */
    for (size_t i = 0; i < cgroups->count; i++)
        if (&cgroups->hierarchy[i] != pids)
            count += kill_in(&cgroups->hierarchy[i], name);
    return count;
}

/* ---- those who work on a sandbox ---- */

static void work_name(const char *name, char out[PATH_SIZE])
{
    (void) snprintf(out, PATH_SIZE, "%s" CGROUP_WORK, name);
}

int cgroup_work_open(const struct cgroups *cgroups, const char *name, const struct limits *limits,
                     struct cgroup_entry *ret, struct err *err)
{
    char work[PATH_SIZE];

    work_name(name, work);
    return cgroup_side_open(cgroups, work, limits, ret, err);
}

int cgroup_apart_open(const struct cgroups *cgroups, struct cgroup_entry *ret, struct err *err)
{
    return cgroup_side_open(cgroups, CGROUP_APART, NULL, ret, err);
}

size_t cgroup_work_kill(const struct cgroups *cgroups, const char *name)
{
    char work[PATH_SIZE];

    work_name(name, work);
    return kill_in(cgroup_hierarchy_of(cgroups, CG_PIDS), work);
}

int cgroup_work_remove(const struct cgroups *cgroups, const char *name)
{
    char work[PATH_SIZE];
    struct err ignored;

    work_name(name, work);
    return cgroup_remove(cgroups, work, &ignored) == 1;
}

bool cgroup_is_work(const char *side, char ret_name[KEEPER_NAME_MAX])
{
    size_t len = strlen(side), tail = sizeof CGROUP_WORK - 1;

    if (len <= tail || len - tail >= KEEPER_NAME_MAX || strcmp(side + len - tail, CGROUP_WORK) != 0)
        return false;
    memcpy(ret_name, side, len - tail);
    ret_name[len - tail] = '\0';
    return true;
}

/* On v2 the child is born there; to move there, also by itself, would wait for the whole machine. */
pid_t cgroup_fork(const struct cgroup_entry *entry)
{
    struct clone_args args = { .flags = CLONE_INTO_CGROUP,
                               .exit_signal = SIGCHLD,
                               .cgroup = (uint64_t) entry->v2_fd };
    pid_t pid = entry->v2_fd < 0 ? fork() : (pid_t) syscall(__NR_clone3, &args, sizeof args);

    if (pid == 0)
        for (size_t i = 0; i < entry->count; i++)
            if (write(entry->tasks_fd[i], "0", 1) != 1)
                _exit(126);
    return pid;
}
