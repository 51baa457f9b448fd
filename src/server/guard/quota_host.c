/* What the host has left, and whether that is enough for one more sandbox. */
#include "base/io.h"
#include "base/own.h"
#include "server/guard/quota.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MEMORY_MS 3000 /* how old a figure of memory may be for a create */

/* A line "Name:   123 kB" of /proc/meminfo, in bytes. */
static uint64_t meminfo(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

/* Read for every create, and by the pools: opened once, for as long as the process lives. */
static struct kept {
    const char *path;
    int fd;
} threads_max = { "/proc/sys/kernel/threads-max", -1 },
  pid_max = { "/proc/sys/kernel/pid_max", -1 }, loadavg = { "/proc/loadavg", -1 };
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;

static void open_kept(void)
{
    struct kept *const all[] = { &threads_max, &pid_max, &loadavg };

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        all[i]->fd = open(all[i]->path, O_RDONLY | O_CLOEXEC);
}

/* The kernel makes the text again for a read of its beginning. */
static bool read_kept(const struct kept *kept, char *text, size_t size)
{
    ssize_t n;

    (void) pthread_once(&kept_once, open_kept);
    n = kept->fd < 0 ? -1 : pread(kept->fd, text, size - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static uint64_t read_number(const struct kept *kept)
{
    char text[64];

    return read_kept(kept, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

/* The fourth field of /proc/loadavg is "running/all": all threads of the host. */
static uint64_t threads_of_host(void)
{
    char text[128];
    const char *slash;

    if (!read_kept(&loadavg, text, sizeof text))
        return 0;
    slash = strchr(text, '/');
    return slash ? strtoull(slash + 1, NULL, 10) : 0;
}

/* From Linux 6.2 on the directory's size is their number. */
static uint64_t open_descriptors(void)
{
    auto_dir DIR *dir = NULL;
    uint64_t count = 0;
    struct stat st;

    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return (uint64_t) st.st_size;
    dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    return count > 3 ? count - 3 : 0; /* ".", "..", and the directory itself */
}

static void read_memory(struct quota_host *ret)
{
    char text[4096];

    if (io_read_text(AT_FDCWD, "/proc/meminfo", text, sizeof text) <= 0)
        return;
    ret->memory_total = meminfo(text, "MemTotal:");
    ret->memory_available = meminfo(text, "MemAvailable:");
}

void quota_host_read(const char *state, const struct quota_host *memory, struct quota_host *ret)
{
    uint64_t threads_most = read_number(&threads_max);
    struct quota_host now = { 0 };
    struct statvfs disk;
    struct rlimit files;

    if (memory) {
        now.memory_total = memory->memory_total;
        now.memory_available = memory->memory_available;
    } else {
        read_memory(&now);
    }
    *ret = now;
    if (statvfs(state, &disk) == 0) {
        ret->disk_total = (uint64_t) disk.f_blocks * disk.f_frsize;
        ret->disk_free = (uint64_t) disk.f_bavail * disk.f_frsize;
    }
    ret->pids = threads_of_host();
    ret->pids_most = read_number(&pid_max);
    if (threads_most > 0 && threads_most < ret->pids_most)
        ret->pids_most = threads_most;
    ret->fds = open_descriptors();
    ret->fds_most = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 0;
}

bool quota_memory_holds(const struct quota_host *host, uint64_t age_ms, uint64_t promised)
{
    struct quota_host left = { .memory_total = host->memory_total };
    struct err ignored;

    if (promised < host->memory_available)
        left.memory_available = host->memory_available - promised;
    return age_ms < MEMORY_MS && quota_host_check(&left, &ignored) == 0;
}

#define MiB_SHIFT 20

/* Kept free: enough for what runs already to continue, and to be cleaned up. */
int quota_host_check(const struct quota_host *host, struct err *err)
{
    const struct {
        const char *what;
        uint64_t free, total, share, least, most; /* kept: total / share, between least and most */
        unsigned shift;
        const char *unit;
        enum err_kind kind;
    } kept[] = {
        { "memory", host->memory_available, host->memory_total, 20, 128 << 20, 2048ull << 20,
          MiB_SHIFT, " MiB", ERR_UNAVAILABLE },
        { "disk", host->disk_free, host->disk_total, 50, 64 << 20, 4096ull << 20, MiB_SHIFT, " MiB",
          ERR_DISK_FULL },
        { "process ids", host->pids_most > host->pids ? host->pids_most - host->pids : 0,
          host->pids_most, 20, 128, 2048, 0, "", ERR_UNAVAILABLE },
        { "descriptors", host->fds_most > host->fds ? host->fds_most - host->fds : 0,
          host->fds_most, 20, 16, 256, 0, "", ERR_UNAVAILABLE },
    };

    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        uint64_t keep = kept[i].total / kept[i].share;

        keep = keep < kept[i].least ? kept[i].least : keep > kept[i].most ? kept[i].most : keep;
        if (kept[i].total > 0 && kept[i].free < keep)
            return err_set(err, kept[i].kind,
                           "the host is short of %s: %" PRIu64 "%s left, %" PRIu64
                           "%s are kept free",
                           kept[i].what, kept[i].free >> kept[i].shift, kept[i].unit,
                           keep >> kept[i].shift, kept[i].unit);
    }
    return 0;
}
