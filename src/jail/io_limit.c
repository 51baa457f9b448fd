#include "jail/io_limit.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/major.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define PATH_SIZE 192
#define RULE_SIZE 160
#define KiB       ((uint64_t) 1024)

/* v1's files, and which limit each takes. 0 removes a rule. */
static const struct {
    const char *file;
    bool bytes;
} throttles[] = {
    { "blkio.throttle.read_bps_device", true },
    { "blkio.throttle.write_bps_device", true },
    { "blkio.throttle.read_iops_device", false },
    { "blkio.throttle.write_iops_device", false },
};

/* ---- how this host limits I/O ---- */

static bool has_word(const char *list, const char *word, const char *separators)
{
    size_t len = strlen(word);

    for (const char *at = list + strspn(list, separators); *at; at += strspn(at, separators)) {
        size_t n = strcspn(at, separators);

        if (n == len && memcmp(at, word, len) == 0)
            return true;
        at += n;
    }
    return false;
}

int io_limits_detect(const char *mounts, const char *v2_controllers, char top[128])
{
    for (const char *line = mounts; line && *line;) {
        const char *end = strchr(line, '\n');
        char type[16], options[256];

        if (sscanf(line, "%*s %127s %15s %255s", top, type, options) == 3 &&
            strcmp(type, "cgroup") == 0 && has_word(options, "blkio", ","))
            return 1;
        line = end ? end + 1 : NULL;
    }
    return has_word(v2_controllers, "io", " \n") ? 2 : 0;
}

/* Only the top cgroup of the host has this file: in a container's view there is no rule for the flusher. */
static bool is_top(int fd)
{
    return faccessat(fd, "cgroup.sane_behavior", F_OK, 0) == 0 &&
           faccessat(fd, throttles[0].file, F_OK, 0) == 0;
}

/* The keeper's own cgroup in v1's hierarchy, by the line "7:blkio:/system.slice/…" of /proc/self/cgroup. */
static int open_own(int top_fd)
{
    char text[4096], path[256];

    if (io_read_text(AT_FDCWD, "/proc/self/cgroup", text, sizeof text) < 0)
        return -1;
    for (const char *line = text; line && *line;) {
        const char *end = strchr(line, '\n');
        char controllers[128];

        if (sscanf(line, "%*d:%127[^:]:/%255[^\n]", controllers, path) == 2 &&
            has_word(controllers, "blkio", ","))
            return openat(top_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        line = end ? end + 1 : NULL;
    }
    return -1;
}

/* A loop device that nothing is bound to, or another sandbox's: its create sets or removes the rule. */
static bool has_rules(int dir_fd)
{
    char text[4096];

    for (size_t i = 0; i < ARRAY_LEN(throttles); i++)
        if (io_read_text(dir_fd, throttles[i].file, text, sizeof text) > 0)
            return true;
    return false;
}

void io_limits_open(struct io_limits *io, const struct cgroups *cgroups)
{
    static char mounts[65536]; /* static: larger than a stack should hold, used once */
    const struct cgroup_hierarchy *memory = cgroup_hierarchy_of(cgroups, CG_MEMORY);
    char v2[512] = "", top[128];

    *io = (struct io_limits){ .top_fd = -1, .own_fd = -1 };
    if (io_read_text(AT_FDCWD, "/proc/thread-self/mounts", mounts, sizeof mounts) < 0)
        return;
    if (memory->version == 2)
        (void) io_read_text(memory->root_fd, "cgroup.controllers", v2, sizeof v2);
    io->version = io_limits_detect(mounts, v2, top);
    if (io->version != 1)
        return;
    io->top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (io->top_fd < 0 || !is_top(io->top_fd)) {
        io->version = 0;
        return;
    }
    io->own_fd = open_own(io->top_fd);
    io->used = has_rules(io->top_fd) || (io->own_fd >= 0 && has_rules(io->own_fd));
}

void io_limits_close(struct io_limits *io)
{
    own_close(&io->top_fd);
    own_close(&io->own_fd);
}

int io_limit_check(const struct io_limits *io, const struct limits *limits, struct err *err)
{
    if (!limits_io(limits) || io->version)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "limit '%s': this host cannot limit disk I/O ('cove doctor' says more)",
                   limits->io_kib ? "io" : "iops");
}

uint32_t io_limit_device(int mount_fd)
{
    struct stat st;

    return fstat(mount_fd, &st) == 0 && major(st.st_dev) == LOOP_MAJOR ? minor(st.st_dev) + 1 : 0;
}

/* ---- v1 ---- */

static int throttle(int dir_fd, const struct limits *limits, uint32_t device, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(throttles); i++) {
        char rule[RULE_SIZE];

        (void) snprintf(rule, sizeof rule, "%u:%u %" PRIu64, LOOP_MAJOR, device - 1,
                        throttles[i].bytes ? limits->io_kib * KiB : (uint64_t) limits->io_ops);
        if (io_write_text(dir_fd, throttles[i].file, rule) < 0)
            return err_sys(err, errno, "write %s", throttles[i].file);
    }
    return 0;
}

static int set_v1(struct io_limits *io, const struct limits *limits, uint32_t device,
                  struct err *err)
{
    if (!limits_io(limits) && !io->used)
        return 0;
    io->used = true;
    return throttle(io->top_fd, limits, device, err) < 0 ||
                   (io->own_fd >= 0 && throttle(io->own_fd, limits, device, err) < 0)
               ? -1
               : 0;
}

/* ---- v2 ---- */

static void put_max(char *out, size_t size, uint64_t value)
{
    if (value)
        (void) snprintf(out, size, "%" PRIu64, value);
    else
        (void) snprintf(out, size, "max");
}

static int set_max(const struct cgroups *cgroups, const char *name, const struct limits *limits,
                   uint32_t device, struct err *err)
{
    char path[PATH_SIZE], rule[RULE_SIZE], bytes[24], ops[24];

    put_max(bytes, sizeof bytes, limits->io_kib * KiB);
    put_max(ops, sizeof ops, limits->io_ops);
    (void) snprintf(path, sizeof path, "%s/io.max", name);
    (void) snprintf(rule, sizeof rule, "%u:%u rbps=%s wbps=%s riops=%s wiops=%s", LOOP_MAJOR,
                    device - 1, bytes, bytes, ops, ops);
    if (io_write_text(cgroup_hierarchy_of(cgroups, CG_MEMORY)->parent_fd, path, rule) < 0)
        return errno == ENOENT
                   ? err_set(err, ERR_UNSUPPORTED, "this kernel's cgroups cannot limit disk I/O")
                   : err_sys(err, errno, "write io.max");
    return 0;
}

/* The controller is handed down when the first sandbox wants a limit: the others do not pay for it. */
static int set_v2(struct io_limits *io, const struct cgroups *cgroups, const char *name,
                  const struct limits *limits, uint32_t device, struct err *err)
{
    if (!limits_io(limits))
        return 0; /* the rule of a cgroup goes with the cgroup */
    if (!io->used)
        cgroups_hand_down(cgroups, cgroup_hierarchy_of(cgroups, CG_MEMORY), "+io");
    io->used = true;
    return set_max(cgroups, name, limits, device, err);
}

/* ---- both ---- */

int io_limit_set(struct io_limits *io, const struct cgroups *cgroups, const char *name,
                 const struct limits *limits, uint32_t device, struct err *err)
{
    if (!device) /* a disk in memory has no I/O */
        return 0;
    if (io->version == 1)
        return set_v1(io, limits, device, err);
    return io->version == 2 ? set_v2(io, cgroups, name, limits, device, err) : 0;
}

void io_limit_lift(const struct io_limits *io, const struct cgroups *cgroups, const char *name,
                   uint32_t device)
{
    const struct limits none = { 0 };
    struct err ignored;

    if (!device)
        return;
    if (io->version == 2) {
        (void) set_max(cgroups, name, &none, device, &ignored);
    } else if (io->version == 1) {
        (void) throttle(io->top_fd, &none, device, &ignored);
        if (io->own_fd >= 0)
            (void) throttle(io->own_fd, &none, device, &ignored);
    }
}
