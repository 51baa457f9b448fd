/* resources.c - more than one's share: priorities, limits, terminals, disk. The floods themselves
 * are in tests/e2e/abuse_test. */
#include "escape.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAP_RESOURCE 24

static struct outcome nice_up(const struct attempt *attempt)
{
    return by_call(setpriority(PRIO_PROCESS, 0, (int) attempt->number), "setpriority");
}

static struct outcome real_time(const struct attempt *attempt)
{
    struct sched_param param = { .sched_priority = 1 };

    return by_call(syscall(SYS_sched_setscheduler, 0L, attempt->number, &param), attempt->name);
}

static struct outcome deadline(const struct attempt *attempt)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr = {
        .size = 48, .policy = 6, .runtime = 1000000, .deadline = 100000000, .period = 100000000
    };

    (void) attempt;
    return by_call(syscall(SYS_sched_setattr, 0L, &attr, 0L), "sched_setattr");
}

static struct outcome io_priority(const struct attempt *attempt)
{
    (void) attempt;
    return by_call(syscall(SYS_ioprio_set, 1L, 0L, 1L << 13 /* real time */), "ioprio_set");
}

/* One more than the hard limit. */
static struct outcome raise_limit(const struct attempt *attempt)
{
    struct rlimit limit;

    if (bait.outside && !has_cap(CAP_RESOURCE))
        return impossible("root of this host has no CAP_SYS_RESOURCE");
    if (bait.outside) { /* as a shell would have it, so that there is something to raise */
        limit = (struct rlimit){ 512, 512 };
        (void) setrlimit((int) attempt->number, &limit);
    }
    if (getrlimit((int) attempt->number, &limit) < 0)
        return by_call(-1, "getrlimit");
    if (limit.rlim_max == RLIM_INFINITY)
        return escaped("%s is without bounds", attempt->name);
    limit.rlim_max++;
    return by_call(setrlimit((int) attempt->number, &limit), attempt->name);
}

static struct outcome core_file(const struct attempt *attempt)
{
    struct rlimit limit;

    (void) attempt;
    if (getrlimit(RLIMIT_CORE, &limit) < 0)
        return by_call(-1, "getrlimit");
    return limit.rlim_max ? escaped("core files may be written") : held(0, "no core files");
}

static struct outcome lock_memory(const struct attempt *attempt)
{
    size_t size = (size_t) attempt->number << 20;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return by_call(-1, "mmap");
    return by_call(mlock(at, size), "mlock");
}

static struct outcome spare_me(const struct attempt *attempt)
{
    int fd = open(attempt->path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return by_call(-1, attempt->path);
    if (bait.outside && !has_cap(CAP_RESOURCE))
        return impossible("root of this host has no CAP_SYS_RESOURCE");
    return by_call(write(fd, "-900", 4), attempt->path);
}

/* Whether PID 1 can be made the first victim: its file can be opened for writing. */
static struct outcome blame_init(const struct attempt *attempt)
{
    return by_call(open(attempt->path, O_WRONLY | O_CLOEXEC), attempt->path);
}

static struct outcome many_terminals(const struct attempt *attempt)
{
    struct rlimit files = { 1024, 1024 };
    long count = 0;

    (void) setrlimit(RLIMIT_NOFILE, &files);
    while (count < attempt->number && open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0)
        count++;
    if (count == attempt->number)
        return escaped("opened %ld terminals", count);
    return held(errno, "%ld terminals, then: %s", count, strerror(errno));
}

static struct outcome more_disk(const struct attempt *attempt)
{
    off_t size = (off_t) (bait.disk_mib << 20);
    int fd = open("big", O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc, errnum;

    (void) attempt;
    if (fd < 0 || !size)
        return held(errno, "no file");
    (void) signal(SIGXFSZ, SIG_IGN); /* EFBIG instead */
    rc = fallocate(fd, 0, 0, size);
    errnum = errno;
    (void) ftruncate(fd, 0);
    (void) unlink("big");
    errno = errnum;
    return by_call(rc, "fallocate beyond the limit");
}

#define HOST .outside = ON_HOST

/* clang-format off */
const struct attempt resource_attempts[] = {
    { "nice",             "more of the processor than a neighbour", nice_up, .number = -20, HOST },
    { "real-time-fifo",   "a processor nobody else gets", real_time, .number = 1, HOST },
    { "real-time-rr",     "a processor nobody else gets", real_time, .number = 2, HOST },
    { "deadline",         "a processor nobody else gets", deadline, HOST, .lacking = { EBUSY, EINVAL, EPERM }, .reason = "this cgroup or cpuset has no deadline budget" },
    { "io-real-time",     "the disk before everybody", io_priority, HOST },
    { "limit-files",      "descriptors beyond the limit", raise_limit, .number = RLIMIT_NOFILE, HOST },
    { "limit-processes",  "processes beyond the limit", raise_limit, .number = RLIMIT_NPROC, HOST },
    { "limit-memlock",    "locked memory beyond the limit", raise_limit, .number = RLIMIT_MEMLOCK, HOST },
    { "limit-msgqueue",   "kernel memory beyond the limit", raise_limit, .number = RLIMIT_MSGQUEUE, HOST },
    { "limit-sigpending", "kernel memory beyond the limit", raise_limit, .number = RLIMIT_SIGPENDING, HOST },
    { "limit-rtprio",     "real time", raise_limit, .number = RLIMIT_RTPRIO, HOST },
    { "limit-nice",       "priority", raise_limit, .number = RLIMIT_NICE, HOST },
    { "core-file",        "a file written by the kernel", core_file, HOST },
    { "lock-memory",      "memory that cannot be reclaimed", lock_memory, .number = 64, HOST },
    { "oom-spare-self",   "the neighbour killed instead", spare_me, .path = "/proc/self/oom_score_adj", HOST },
    { "oom-blame-init",   "PID 1 killed first", blame_init, .path = "/proc/1/oom_score_adj", .outside = IN_SPACES },
    { "terminals",        "every terminal of the host", many_terminals, .number = 300, HOST },
    { "disk-beyond",      "the host's disk", more_disk, HOST },
};
/* clang-format on */
const size_t resource_attempt_count = ARRAY_LEN(resource_attempts);
