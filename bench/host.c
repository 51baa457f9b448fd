#include "host.h"

#include "base/io.h"
#include "base/own.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

/* clang-format off */
static const char *const memory_names[] = {
    [HOST_AVAILABLE]        = "MemAvailable",
    [HOST_FREE]             = "MemFree",
    [HOST_CACHED]           = "Cached",
    [HOST_SHMEM]            = "Shmem",
    [HOST_ANON]             = "AnonPages",
    [HOST_SLAB_RECLAIMABLE] = "SReclaimable",
    [HOST_SLAB_KEPT]        = "SUnreclaim",
    [HOST_PERCPU]           = "Percpu",
    [HOST_PAGE_TABLES]      = "PageTables",
    [HOST_KERNEL_STACK]     = "KernelStack",
};
/* clang-format on */
static_assert(ARRAY_LEN(memory_names) == HOST_MEMORY_ROWS, "every row has its name");

const char *host_memory_name(enum host_memory_row row)
{
    return memory_names[row];
}

void host_memory_read(struct host_memory *ret)
{
    auto_file FILE *file = fopen("/proc/meminfo", "re");
    char line[128], name[64];
    long long kib;

    *ret = (struct host_memory){ 0 };
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%63[^:]: %lld", name, &kib) != 2)
            continue;
        for (size_t i = 0; i < HOST_MEMORY_ROWS; i++)
            if (strcmp(name, memory_names[i]) == 0)
                ret->kib[i] = kib;
    }
}

static uint64_t status_kib(int pid, const char *row)
{
    auto_file FILE *file = NULL;
    char path[64], line[128];
    size_t len = strlen(row);

    (void) snprintf(path, sizeof path, "/proc/%d/status", pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, row, len) == 0)
            return strtoull(line + len, NULL, 10);
    return 0;
}

uint64_t host_resident_kib(int pid)
{
    return status_kib(pid, "VmRSS:");
}

uint64_t host_anonymous_kib(int pid)
{
    return status_kib(pid, "RssAnon:");
}

/* Entries but "." and ".." */
static size_t count_entries(const char *path)
{
    auto_dir DIR *dir = opendir(path);
    size_t count = 0;

    while (dir) {
        struct dirent *entry = readdir(dir);

        if (!entry)
            break;
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    return count;
}

size_t host_open_files(int pid)
{
    char path[64];

    (void) snprintf(path, sizeof path, "/proc/%d/fd", pid);
    return count_entries(path);
}

/* nftw and bsearch take no context. */
static struct {
    struct host_trace *traces;
    size_t count, found;
} search;

static int compare_ids(const void *a, const void *b)
{
    return strncmp(((const struct host_trace *) a)->id, ((const struct host_trace *) b)->id,
                   ID_LEN);
}

/* Does one of our ids stand anywhere in the text? */
static int has_our_id(const char *text)
{
    for (const char *at = text; (at = strchr(at, 'i')) && strlen(at) >= ID_LEN; at++) {
        struct host_trace key = { 0 };

        memcpy(key.id, at, ID_LEN);
        if (bsearch(&key, search.traces, search.count, sizeof key, compare_ids))
            return 1;
    }
    return 0;
}

static int visit_cgroup(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void) stat;
    if (type == FTW_D && has_our_id(path + ftw->base))
        search.found++;
    return 0;
}

static size_t count_cgroups(void)
{
    search.found = 0;
    (void) nftw("/sys/fs/cgroup", visit_cgroup, 32, FTW_PHYS);
    return search.found;
}

static size_t count_mounts(const char *state, int pid)
{
    auto_file FILE *file = NULL;
    char path[64], line[8192], sandboxes[300];
    size_t count = 0;

    (void) snprintf(sandboxes, sizeof sandboxes, "%s/sandboxes", state);
    (void) snprintf(path, sizeof path, "/proc/%d/mountinfo", pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        count += strstr(line, sandboxes) || has_our_id(line);
    return count;
}

static size_t count_loops(const char *state)
{
    auto_dir DIR *dir = opendir("/sys/block");
    size_t count = 0;

    while (dir) {
        struct dirent *entry = readdir(dir);
        char path[400], file[4096];

        if (!entry)
            break;
        if (strncmp(entry->d_name, "loop", 4) != 0)
            continue;
        (void) snprintf(path, sizeof path, "/sys/block/%s/loop/backing_file", entry->d_name);
        if (io_read_text(AT_FDCWD, path, file, sizeof file) > 0)
            count += strncmp(file, state, strlen(state)) == 0;
    }
    return count;
}

/* The parent of a process that is known by its descriptor; 0 when it is reaped. */
static int parent_of(int pidfd)
{
    char path[64], text[512];
    const char *at;
    int pid = 0, parent = 0;

    (void) snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) > 0 && (at = strstr(text, "\nPid:")))
        (void) sscanf(at, "\nPid: %d", &pid);
    if (pid <= 0)
        return 0;
    (void) snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) > 0 && (at = strrchr(text, ')')))
        (void) sscanf(at, ") %*c %d", &parent);
    return parent;
}

static size_t count_processes(int keeper_pid)
{
    size_t count = 0;

    for (size_t i = 0; i < search.count; i++) {
        struct pollfd ended = { .fd = search.traces[i].pidfd, .events = POLLIN };

        if (ended.fd < 0)
            continue;
        if (poll(&ended, 1, 0) == 0 || (keeper_pid && parent_of(ended.fd) == keeper_pid))
            count++;
    }
    return count;
}

void host_left(const char *state, int keeper_pid, struct host_trace *traces, size_t count,
               struct host_left *ret)
{
    char path[300];

    search.traces = traces;
    search.count = count;
    qsort(traces, count, sizeof *traces, compare_ids);
    (void) snprintf(path, sizeof path, "%s/sandboxes", state);
    *ret = (struct host_left){
        .processes = count_processes(keeper_pid),
        .cgroups = count_cgroups(),
        .loops = count_loops(state),
        .mounts =
            count_mounts(state, getpid()) + (keeper_pid ? count_mounts(state, keeper_pid) : 0),
        .files = count_entries(path),
    };
}

void host_describe(char *out, size_t size)
{
    struct utsname name;
    struct sysinfo info;
    bool pure_v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;

    (void) uname(&name);
    (void) sysinfo(&info);
    (void) snprintf(out, size, "%d cores, %.1f GiB memory, kernel %s, cgroup %s", get_nprocs(),
                    (double) info.totalram * info.mem_unit / (1024.0 * 1024 * 1024), name.release,
                    pure_v2 ? "v2" : "v1");
}
