#include "jail/sysview.h"

#include "base/io.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum content { DIRECTORY, MEMORY, CPU_MAX, QUOTA, PERIOD, PIDS, CORES, CONTROLLERS };

/* clang-format off */
static const struct {
    const char *path;
    enum content content;
} nodes[] = {
    { "devices",                                 DIRECTORY },
    { "devices/system",                          DIRECTORY },
    { "devices/system/cpu",                      DIRECTORY },
    { "devices/system/cpu/online",               CORES },
    { "devices/system/cpu/possible",             CORES },
    { "devices/system/cpu/present",              CORES },
    { "fs",                                      DIRECTORY },
    { "fs/cgroup",                               DIRECTORY },
    { "fs/cgroup/cgroup.controllers",            CONTROLLERS },
    { "fs/cgroup/memory.max",                    MEMORY },
    { "fs/cgroup/cpu.max",                       CPU_MAX },
    { "fs/cgroup/pids.max",                      PIDS },
    /* where programs look when /proc/self/cgroup speaks of v1 */
    { "fs/cgroup/memory",                        DIRECTORY },
    { "fs/cgroup/memory/memory.limit_in_bytes",  MEMORY },
    { "fs/cgroup/cpu",                           DIRECTORY },
    { "fs/cgroup/cpu/cpu.cfs_quota_us",          QUOTA },
    { "fs/cgroup/cpu/cpu.cfs_period_us",         PERIOD },
};
/* clang-format on */

int sysviews_open(struct sysviews *views, uint32_t count, struct err *err)
{
    views->count = count;
    views->view = calloc(count, sizeof *views->view);
    return views->view ? 0 : err_sys(err, ENOMEM, "make the table of views");
}

static void content_text(enum content content, const struct sysview *v, char *out, size_t size)
{
    uint64_t cores = (v->cpu_milli + 999) / 1000;

    switch (content) {
    case DIRECTORY:
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
    char text[64] = "";

    if (content == DIRECTORY)
        return mkdirat(dirfd, path, 0755) < 0 && errno != EEXIST ? -1 : 0;
    content_text(content, v, text, sizeof text);
    /* A new file each time: nobody uses the old tree, but its pages may still be mapped somewhere. */
    (void) unlinkat(dirfd, path, 0);
    fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    return fd < 0 ? -1 : io_write_all(fd, text, strlen(text));
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
        unused->memory_bytes = 0; /* like nobody's limits */
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
