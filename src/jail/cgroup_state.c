/* What runs in a sandbox's cgroups: frozen, counted, pressed out of memory, killed. Making them is cgroup.c's. */
#include "jail/cgroup.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

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
} figures[] = {
    { AT(memory_bytes),       CG_MEMORY,  1, "memory.usage_in_bytes",     NULL,          1 },
    { AT(memory_bytes),       CG_MEMORY,  2, "memory.current",            NULL,          1 },
    { AT(memory_peak_bytes),  CG_MEMORY,  1, "memory.max_usage_in_bytes", NULL,          1 },
    { AT(memory_peak_bytes),  CG_MEMORY,  2, "memory.peak",               NULL,          1 },
    { AT(memory_cache_bytes), CG_MEMORY,  1, "memory.stat",               "cache ",      1 },
    { AT(memory_cache_bytes), CG_MEMORY,  2, "memory.stat",               "file ",       1 },
    { AT(oom_kills),          CG_MEMORY,  1, "memory.oom_control",        "oom_kill ",   1 },
    { AT(oom_kills),          CG_MEMORY,  2, "memory.events",             "oom_kill ",   1 },
    { AT(cpu_us),             CG_CPUACCT, 1, "cpuacct.usage",             NULL,          1000 },
    { AT(cpu_us),             CG_CPUACCT, 2, "cpu.stat",                  "usage_usec ", 1 },
    { AT(processes),          CG_PIDS,    1, "pids.current",              NULL,          1 },
    { AT(processes),          CG_PIDS,    2, "pids.current",              NULL,          1 },
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

int cgroup_stats(const struct cgroups *cgroups, const char *name, struct keeper_stats *ret,
                 struct err *err)
{
    const struct cgroup_hierarchy *memory = cgroup_hierarchy_of(cgroups, CG_MEMORY);

    if (faccessat(memory->parent_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "cgroup '%s'", name);
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        const struct cgroup_hierarchy *h = cgroup_hierarchy_of(cgroups, figures[i].controller);

        if (h && h->version == figures[i].version)
            *(uint64_t *) ((char *) ret + figures[i].field) =
                read_figure(&figures[i], h->parent_fd, name);
    }
    return 0;
}

int cgroup_reclaim(const struct cgroups *cgroups, const char *name, struct err *err)
{
    const struct cgroup_hierarchy *h = cgroup_hierarchy_of(cgroups, CG_MEMORY);
    bool first = h->version == 1;
    struct keeper_stats stats = { 0 };
    char path[PATH_SIZE], bytes[32] = "0";

    if (!first) {
        if (cgroup_stats(cgroups, name, &stats, err) < 0)
            return -1;
        (void) snprintf(bytes, sizeof bytes, "%" PRIu64, stats.memory_bytes);
    }
    (void) snprintf(path, sizeof path, "%s/%s", name, first ? "memory.force_empty" : "memory.reclaim");
    /* EAGAIN: not all of it went, which is no failure. EBUSY: likewise. */
    if (io_write_text(h->parent_fd, path, bytes) < 0 && errno != EAGAIN && errno != EBUSY)
        return err_sys(err, errno, "reclaim memory");
    return 0;
}

/* How many there are; 0 in the list is a process of an outer pid namespace. */
static size_t each_in(const struct cgroup_hierarchy *h, const char *name,
                      void (*fn)(pid_t pid, const void *arg), const void *arg)
{
    char path[PATH_SIZE];
    auto_file FILE *procs = NULL;
    auto_close int fd = -1;
    size_t count = 0;
    int pid;

    (void) snprintf(path, sizeof path, "%s/cgroup.procs", name);
    fd = openat(h->parent_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || !(procs = fdopen(fd, "r")))
        return 0;
    (void) take_fd(&fd);
    while (fscanf(procs, "%d", &pid) == 1) {
        count++;
        if (pid > 1)
            fn((pid_t) pid, arg);
    }
    return count;
}

void cgroup_each_process(const struct cgroups *cgroups, const char *name,
                         void (*fn)(pid_t pid, const void *arg), const void *arg)
{
    (void) each_in(cgroup_hierarchy_of(cgroups, CG_PIDS), name, fn, arg);
}

static void kill_one(pid_t pid, const void *arg)
{
    (void) arg;
    (void) kill(pid, SIGKILL);
}

/* On v2 the kernel kills by itself, forks in flight included. */
static size_t kill_in(const struct cgroup_hierarchy *h, const char *name)
{
    char path[PATH_SIZE];

    if (h->version == 2) {
        (void) snprintf(path, sizeof path, "%s/cgroup.kill", name);
        (void) io_write_text(h->parent_fd, path, "1");
    }
    return each_in(h, name, kill_one, NULL);
}

size_t cgroup_kill(const struct cgroups *cgroups, const char *name)
{
    struct err ignored;
    size_t count = 0;

    for (size_t i = 0; i < cgroups->count; i++)
        count += kill_in(&cgroups->hierarchy[i], name);
    /* v1: a frozen process dies only when it is thawed. */
    if (count > 0)
        (void) cgroup_freeze(cgroups, name, false, &ignored);
    return count;
}
