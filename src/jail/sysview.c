#include "jail/sysview.h"

#include "base/io.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum content {
    DIRECTORY,
    MEMORY,
    CPU_MAX,
    QUOTA,
    PERIOD,
    PIDS,
    CORES,
    CONTROLLERS,
    MEMINFO,
    STAT,
    CPUINFO
};

/* clang-format off */
static const struct {
    const char *path;
    enum content content;
} nodes[] = {
    { "sys",                                         DIRECTORY },
    { "sys/devices",                                 DIRECTORY },
    { "sys/devices/system",                          DIRECTORY },
    { "sys/devices/system/cpu",                      DIRECTORY },
    { "sys/devices/system/cpu/online",               CORES },
    { "sys/devices/system/cpu/possible",             CORES },
    { "sys/devices/system/cpu/present",              CORES },
    { "sys/fs",                                      DIRECTORY },
    { "sys/fs/cgroup",                               DIRECTORY },
    { "sys/fs/cgroup/cgroup.controllers",            CONTROLLERS },
    { "sys/fs/cgroup/memory.max",                    MEMORY },
    { "sys/fs/cgroup/cpu.max",                       CPU_MAX },
    { "sys/fs/cgroup/pids.max",                      PIDS },
    /* where programs look when /proc/self/cgroup speaks of v1 */
    { "sys/fs/cgroup/memory",                        DIRECTORY },
    { "sys/fs/cgroup/memory/memory.limit_in_bytes",  MEMORY },
    { "sys/fs/cgroup/cpu",                           DIRECTORY },
    { "sys/fs/cgroup/cpu/cpu.cfs_quota_us",          QUOTA },
    { "sys/fs/cgroup/cpu/cpu.cfs_period_us",         PERIOD },
    { "sys/fs/cgroup/cpu,cpuacct",                   DIRECTORY },
    { "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us",  QUOTA },
    { "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", PERIOD },
    /* libuv (Node 22) takes what is behind ":cpu," in "4:cpu,cpuacct:/" for the path */
    { "sys/fs/cgroup/cpuacct:",                      DIRECTORY },
    { "sys/fs/cgroup/cpuacct:/cpu.cfs_quota_us",     QUOTA },
    { "sys/fs/cgroup/cpuacct:/cpu.cfs_period_us",    PERIOD },
    { "proc",                                        DIRECTORY },
    { "proc/meminfo",                                MEMINFO },
    { "proc/stat",                                   STAT },
    { "proc/cpuinfo",                                CPUINFO },
};
/* clang-format on */

#define TEXT_MAX  4096
#define STAT_SIZE 2048u /* of a sandbox with up to 70 processors */

int sysviews_open(struct sysviews *views, uint32_t count, struct err *err)
{
    views->count = count;
    views->view = calloc(count, sizeof *views->view);
    return views->view ? 0 : err_sys(err, ENOMEM, "make the table of views");
}

static uint64_t cores_of(const struct sysview *v)
{
    return (v->cpu_milli + 999) / 1000;
}

/* Nothing of it is live: who wants to know what is used now asks cove. Always of one size, as is stat: a process that has it
 * open is restored with other limits, too, and criu compares sizes. */
static void meminfo_text(uint64_t bytes, char *out, size_t size)
{
    static const struct {
        const char *name;
        bool all;
    } rows[] = {
        { "MemTotal:", true },        { "MemFree:", true },       { "MemAvailable:", true },
        { "Buffers:", false },        { "Cached:", false },       { "SwapCached:", false },
        { "Active:", false },         { "Inactive:", false },     { "Active(anon):", false },
        { "Inactive(anon):", false }, { "Active(file):", false }, { "Inactive(file):", false },
        { "Unevictable:", false },    { "Mlocked:", false },      { "SwapTotal:", false },
        { "SwapFree:", false },       { "Dirty:", false },        { "Writeback:", false },
        { "AnonPages:", false },      { "Mapped:", false },       { "Shmem:", false },
        { "KReclaimable:", false },   { "Slab:", false },         { "SReclaimable:", false },
        { "SUnreclaim:", false },     { "KernelStack:", false },  { "PageTables:", false },
        { "CommitLimit:", true },     { "Committed_AS:", false },
    };
    size_t used = 0;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        used += (size_t) snprintf(out + used, size - used, "%-15s %11" PRIu64 " kB\n", rows[i].name,
                                  rows[i].all ? bytes / 1024 : 0);
}

/* The number behind `name` at the start of a line of a text; 0: there is none. */
static uint64_t number_behind(const char *text, const char *name)
{
    size_t len = strlen(name);

    for (; text; text = strchr(text, '\n'), text = text ? text + 1 : NULL)
        if (strncmp(text, name, len) == 0)
            return strtoull(text + len, NULL, 10);
    return 0;
}

/* When the machine was started: what ps counts from. Behind lines as long as there are processors and interrupts. */
static uint64_t boot_time(void)
{
    auto_close int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    char text[TEXT_MAX + 1];
    uint64_t value = 0;
    size_t kept = 0;
    ssize_t n;

    while (value == 0 && fd >= 0 && (n = read(fd, text + kept, TEXT_MAX - kept)) > 0) {
        size_t have = kept + (size_t) n;

        text[have] = '\0';
        value = number_behind(text, "btime ");
        kept = have < 64 ? have : 64; /* it may have been cut */
        memmove(text, text + have - kept, kept);
    }
    return value;
}

/* As many processors as the sandbox has. The line of interrupts, which is long on every machine, fills it up. */
static int write_stat(int fd, uint64_t cores)
{
    static const char zeros[] = "0 0 0 0 0 0 0 0 0 0";
    char line[128], end[128];
    size_t size = 0, full = STAT_SIZE;

    for (uint64_t i = 0; i <= cores; i++) {
        if (i == 0)
            (void) snprintf(line, sizeof line, "cpu  %s\n", zeros);
        else
            (void) snprintf(line, sizeof line, "cpu%" PRIu64 " %s\n", i - 1, zeros);
        if (io_write_all(fd, line, strlen(line)) < 0)
            return -1;
        size += strlen(line);
    }
    (void) snprintf(end, sizeof end,
                    "\nctxt 0\nbtime %010" PRIu64
                    "\nprocesses 0\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n",
                    boot_time());
    size += strlen("intr 0") + strlen(end);
    while (full < size)
        full *= 16;
    if (io_write_all(fd, "intr 0", 6) < 0)
        return -1;
    for (; size < full; size += 2)
        if (io_write_all(fd, " 0", full - size > 1 ? 2 : 1) < 0)
            return -1;
    return io_write_all(fd, end, strlen(end));
}

/* The first blocks of the host's, an empty line ends each; but for the frequency, which changes. */
static int write_cpuinfo(int fd, uint64_t cores)
{
    auto_close int in = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    char text[TEXT_MAX];
    size_t have = 0;
    ssize_t n;

    while (in >= 0 && cores > 0 && (n = read(in, text + have, sizeof text - have)) > 0) {
        char *line = text, *end;

        have += (size_t) n;
        for (; cores > 0 && (end = memchr(line, '\n', have)); line = end + 1) {
            size_t len = (size_t) (end - line) + 1;

            if (strncmp(line, "cpu MHz", 7) != 0 && io_write_all(fd, line, len) < 0)
                return -1;
            cores -= len == 1;
            have -= len;
        }
        if (line == text && have == sizeof text) /* no line is so long */
            break;
        memmove(text, line, have);
    }
    return 0;
}

static void content_text(enum content content, const struct sysview *v, char *out, size_t size)
{
    uint64_t cores = cores_of(v);

    switch (content) {
    case DIRECTORY:
    case STAT:
    case CPUINFO:
        break;
    case MEMINFO:
        meminfo_text(v->memory_bytes, out, size);
        break;
    case MEMORY:
        (void) snprintf(out, size, "%" PRIu64 "\n", v->memory_bytes);
        break;
    case CPU_MAX:
        (void) snprintf(out, size, "%" PRIu64 " 100000\n", v->cpu_milli * 100);
        break;
    case QUOTA:
        (void) snprintf(out, size, "%" PRIu64 "\n", v->cpu_milli * 100);
        break;
    case PERIOD:
        (void) snprintf(out, size, "100000\n");
        break;
    case PIDS:
        (void) snprintf(out, size, "%" PRIu64 "\n", v->processes);
        break;
    case CORES:
        (void) snprintf(out, size, cores > 1 ? "0-%" PRIu64 "\n" : "0\n", cores - 1);
        break;
    case CONTROLLERS:
        (void) snprintf(out, size, "cpu memory pids\n");
        break;
    }
}

static int write_node(int dirfd, const char *path, enum content content, const struct sysview *v)
{
    auto_close int fd = -1;
    char text[TEXT_MAX] = "";

    if (content == DIRECTORY)
        return mkdirat(dirfd, path, 0755) < 0 && errno != EEXIST ? -1 : 0;
    content_text(content, v, text, sizeof text);
    /* A new file each time: the old tree is unused, but its pages may still be mapped somewhere. */
    (void) unlinkat(dirfd, path, 0);
    fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    if (fd < 0)
        return -1;
    if (content == STAT)
        return write_stat(fd, cores_of(v));
    if (content == CPUINFO)
        return write_cpuinfo(fd, cores_of(v));
    return io_write_all(fd, text, strlen(text));
}

static int write_view(const struct sysview *v, struct err *err)
{
    auto_close int dirfd = -1;
    char path[32];

    (void) snprintf(path, sizeof path, "/views/%s", v->name);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make %s", path);
    dirfd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dirfd < 0)
        return err_sys(err, errno, "open %s", path);
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
        if (write_node(dirfd, nodes[i].path, nodes[i].content, v) < 0)
            return err_sys(err, errno, "write %s/%s", path, nodes[i].path);
    return 0;
}

struct sysview *sysview_take(struct sysviews *views, const struct limits *limits, struct err *err)
{
    struct sysview *unused = NULL;

    for (size_t i = 0; i < views->count; i++) {
        struct sysview *v = &views->view[i];

        if (v->name[0] && v->memory_bytes == limits->memory_bytes &&
            v->cpu_milli == limits->cpu_milli && v->processes == limits->processes) {
            v->users++;
            return v;
        }
        if (!v->users && !unused)
            unused = v;
        if (!v->name[0])
            break; /* none behind it was ever used */
    }
    assert(unused); /* as many views as slots */
    *unused = (struct sysview){ .memory_bytes = limits->memory_bytes,
                                .cpu_milli = limits->cpu_milli,
                                .processes = limits->processes };
    (void) snprintf(unused->name, sizeof unused->name, "%zu", (size_t) (unused - views->view));
    if (write_view(unused, err) < 0) {
        unused->memory_bytes = 0; /* like no sandbox's limits */
        return NULL;
    }
    unused->users = 1;
    return unused;
}

void sysview_drop(struct sysviews *views, struct sysview *view)
{
    (void) views;
    if (view)
        view->users--;
}
