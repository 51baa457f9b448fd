#include "jail/cgroup.h"

#include "base/io.h"
#include "base/own.h"
#include "jail/device_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CPU_PERIOD_US 100000u
#define PATH_SIZE     192

#define APART_NS           2000000
#define LINKS_OF_ONE_BELOW 3 /* of a directory with one directory in it */

static const char *const controllers[CG_CONTROLLER_COUNT] = {
    [CG_MEMORY] = "memory",   [CG_PIDS] = "pids",       [CG_CPU] = "cpu",
    [CG_CPUACCT] = "cpuacct", [CG_FREEZER] = "freezer", [CG_DEVICES] = "devices",
};

/* v2 has these in every cgroup, without a controller of that name. */
static const bool v2_builtin[CG_CONTROLLER_COUNT] = {
    [CG_CPUACCT] = true,
    [CG_FREEZER] = true,
    [CG_DEVICES] = true, /* by a BPF program: device_filter.c */
};

enum value { MEMORY, NOTHING, PIDS, CPU_V1, CPU_V2, TEXT };

/* Written once to the parent of all, to each, or to each by cgroup_share(). */
enum level { INSTANCE, SANDBOX, SHARE };

struct knob {
    enum level level;
    enum cgroup_controller controller;
    int version;
    const char *file;
    enum value value;
    const char *text;
    bool optional; /* some kernels lack the file */
};

/* Written in this order. What an instance's cgroup refuses is refused below it too. */
/* clang-format off */
static const struct knob knobs[] = {
    { SANDBOX,  CG_MEMORY,  1, "memory.limit_in_bytes",       MEMORY,  NULL, false },
    { SANDBOX,  CG_MEMORY,  1, "memory.memsw.limit_in_bytes", MEMORY,  NULL, true }, /* swap accounting */
    { SANDBOX,  CG_MEMORY,  1, "memory.kmem.tcp.limit_in_bytes", MEMORY, NULL, true }, /* v2: in memory.max */
    { SANDBOX,  CG_MEMORY,  2, "memory.max",                  MEMORY,  NULL, false },
    { SANDBOX,  CG_MEMORY,  2, "memory.swap.max",             NOTHING, NULL, true },
    { SANDBOX,  CG_PIDS,    1, "pids.max",                    PIDS,    NULL, false },
    { SANDBOX,  CG_PIDS,    2, "pids.max",                    PIDS,    NULL, false },
    { SHARE,    CG_CPU,     1, "cpu.cfs_quota_us",            CPU_V1,  NULL, true }, /* CFS_BANDWIDTH */
    { SHARE,    CG_CPU,     2, "cpu.max",                     CPU_V2,  NULL, true },
    { INSTANCE, CG_DEVICES, 1, "devices.deny",                TEXT,    "a", false },
    { INSTANCE, CG_DEVICES, 1, "devices.allow",               TEXT,    "c 1:3 rw", false },   /* null */
    { INSTANCE, CG_DEVICES, 1, "devices.allow",               TEXT,    "c 1:5 rw", false },   /* zero */
    { INSTANCE, CG_DEVICES, 1, "devices.allow",               TEXT,    "c 1:7 rw", false },   /* full */
    { INSTANCE, CG_DEVICES, 1, "devices.allow",               TEXT,    "c 1:8 rw", false },   /* random */
    { INSTANCE, CG_DEVICES, 1, "devices.allow",               TEXT,    "c 1:9 rw", false },   /* urandom */
    { INSTANCE, CG_DEVICES, 1, "devices.allow",               TEXT,    "c 5:0 rw", false },   /* tty */
    { INSTANCE, CG_DEVICES, 1, "devices.allow",               TEXT,    "c 5:2 rw", false },   /* ptmx */
    { INSTANCE, CG_DEVICES, 1, "devices.allow",               TEXT,    "c 136:* rw", false }, /* pts */
};
/* clang-format on */

/* Is `word` one of the words of `list`, which `separator` parts? */
static bool has_word(const char *list, const char *word, char separator)
{
    size_t len = strlen(word);

    for (const char *at = list; at && *at;) {
        const char *end = strchr(at, separator);
        size_t n = end ? (size_t) (end - at) : strlen(at);

        if (n == len && memcmp(at, word, len) == 0)
            return true;
        at = end ? end + 1 : NULL;
    }
    return false;
}

static int find_hierarchy(struct cgroups *cgroups, const char *mount, int version)
{
    for (size_t i = 0; i < cgroups->count; i++)
        if (strcmp(cgroups->hierarchy[i].mount, mount) == 0)
            return (int) i;
    if (cgroups->count == CG_HIERARCHIES_MAX)
        return -1;
    cgroups->hierarchy[cgroups->count] =
        (struct cgroup_hierarchy){ .version = version, .root_fd = -1, .parent_fd = -1 };
    (void) snprintf(cgroups->hierarchy[cgroups->count].mount, sizeof cgroups->hierarchy[0].mount,
                    "%s", mount);
    return (int) cgroups->count++;
}

/* Rules for devices are the instance's. */
static void find_shared(struct cgroups *cgroups)
{
    int devices = cgroups->of[CG_DEVICES];

    if (devices < 0 || cgroups->hierarchy[devices].version != 1)
        return;
    cgroups->hierarchy[devices].shared = true;
    for (int c = 0; c < CG_CONTROLLER_COUNT; c++)
        if (c != CG_DEVICES && cgroups->of[c] == devices)
            cgroups->hierarchy[devices].shared = false;
}

void cgroups_detect(struct cgroups *cgroups, const char *mounts, const char *v2_controllers)
{
    cgroups->count = 0;
    for (int c = 0; c < CG_CONTROLLER_COUNT; c++)
        cgroups->of[c] = -1;
    for (int version = 1; version <= 2; version++) {
        for (const char *line = mounts; line && *line;) {
            const char *end = strchr(line, '\n');
            char dir[128], type[16], options[256];

            if (sscanf(line, "%*s %127s %15s %255s", dir, type, options) == 3 &&
                strcmp(type, version == 1 ? "cgroup" : "cgroup2") == 0)
                for (int c = 0; c < CG_CONTROLLER_COUNT; c++)
                    if (cgroups->of[c] < 0 &&
                        (version == 1
                             ? has_word(options, controllers[c], ',')
                             : v2_builtin[c] || has_word(v2_controllers, controllers[c], ' ')))
                        cgroups->of[c] = find_hierarchy(cgroups, dir, version);
            line = end ? end + 1 : NULL;
        }
    }
    find_shared(cgroups);
}

/* On v2 a controller must be handed down level by level. */
static void enable_v2(int dirfd, const char *const *wanted)
{
    for (; *wanted; wanted++)
        (void) io_write_text(dirfd, "cgroup.subtree_control", *wanted);
}

static void knob_text(const struct knob *knob, const struct limits *limits, char *out, size_t size)
{
    uint64_t quota = limits ? limits->cpu_milli * CPU_PERIOD_US / 1000u : 0;

    switch (knob->value) {
    case MEMORY:
        (void) snprintf(out, size, "%" PRIu64, limits->memory_bytes);
        break;
    case NOTHING:
        (void) snprintf(out, size, "0");
        break;
    case PIDS:
        (void) snprintf(out, size, "%" PRIu64, limits->processes);
        break;
    case CPU_V1:
        (void) snprintf(out, size, "%" PRIu64, quota);
        break;
    case CPU_V2:
        (void) snprintf(out, size, "%" PRIu64 " %u", quota, CPU_PERIOD_US);
        break;
    case TEXT:
        (void) snprintf(out, size, "%s", knob->text);
        break;
    }
}

static bool applies(const struct cgroups *cgroups, const struct knob *knob, enum level level,
                    int index)
{
    return knob->level == level && cgroups->of[knob->controller] == index &&
           cgroups->hierarchy[index].version == knob->version;
}

static bool has_knobs(const struct cgroups *cgroups, enum level level, int index)
{
    for (size_t i = 0; i < ARRAY_LEN(knobs); i++)
        if (applies(cgroups, &knobs[i], level, index))
            return true;
    return false;
}

static int write_knobs(const struct cgroups *cgroups, enum level level, int index, int dirfd,
                       const struct limits *limits, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(knobs); i++) {
        char text[64];

        if (!applies(cgroups, &knobs[i], level, index))
            continue;
        knob_text(&knobs[i], limits, text, sizeof text);
        if (io_write_text(dirfd, knobs[i].file, text) < 0 &&
            !(knobs[i].optional && errno == ENOENT))
            return err_sys(err, errno, "write %s", knobs[i].file);
    }
    return 0;
}

/* The mount, and the slice if the instance is in that. */
static void enable_above(int root_fd, const char *instance, const char *const *wanted)
{
    auto_close int slice = -1;

    enable_v2(root_fd, wanted);
    if (!strchr(instance, '/'))
        return;
    slice = openat(root_fd, CG_SLICE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (slice >= 0)
        enable_v2(slice, wanted);
}

void cgroups_hand_down(const struct cgroups *cgroups, const struct cgroup_hierarchy *h,
                       const char *controller)
{
    const char *const wanted[] = { controller, NULL };

    enable_above(h->root_fd, cgroups->instance, wanted);
    enable_v2(h->parent_fd, wanted);
}

static int open_parent(struct cgroups *cgroups, int index, const char *instance, struct err *err)
{
    static const char *const wanted[] = { "+memory", "+pids", "+cpu", NULL };
    struct cgroup_hierarchy *h = &cgroups->hierarchy[index];
    bool fresh;

    h->root_fd = open(h->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (h->root_fd < 0)
        return err_sys(err, errno, "open %s", h->mount);
    if (h->version == 2)
        enable_above(h->root_fd, instance, wanted);
    fresh = mkdirat(h->root_fd, instance, 0755) == 0;
    if (!fresh && errno != EEXIST)
        return err_sys(err, errno, "make %s/%s", h->mount, instance);
    h->parent_fd = openat(h->root_fd, instance, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (h->parent_fd < 0)
        return err_sys(err, errno, "open %s/%s", h->mount, instance);
    if (h->version == 2)
        enable_v2(h->parent_fd, wanted);
    if (h->shared)
        (void) unlinkat(h->parent_fd, CGROUP_ALL, AT_REMOVEDIR); /* of a keeper that was killed */
    /* v1 takes no new device rules while sandboxes live below; they are there already then. */
    if (write_knobs(cgroups, INSTANCE, index, h->parent_fd, NULL, err) < 0 && fresh) {
        (void) unlinkat(h->root_fd, instance,
                        AT_REMOVEDIR); /* or the next start would pass over this */
        return err_wrap(err, "cgroup %s/%s", h->mount, instance);
    }
    if (cgroups->of[CG_DEVICES] == index && h->version == 2)
        return device_filter_attach(h->parent_fd, err);
    /* Last: it has the rules that are above it when it is made. */
    if (h->shared && mkdirat(h->parent_fd, CGROUP_ALL, 0755) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make %s/%s/" CGROUP_ALL, h->mount, instance);
    return 0;
}

bool cgroups_in_slice(const char *own)
{
    const char *at = strstr(own, "0::/" CG_SLICE "/");

    return at && (at == own || at[-1] == '\n');
}

static bool is_there(const struct cgroups *cgroups, const char *name)
{
    char path[PATH_SIZE + CG_INSTANCE_MAX];

    (void) snprintf(path, sizeof path, "%s/%s", cgroups->hierarchy[0].mount, name);
    return access(path, F_OK) == 0;
}

/* A service in a slice of its own has its sandboxes there, beside it: limits of the slice count for all of them, and what
 * systemd does to the service does nothing to them. Not in the service's own cgroup: with sandboxes below it systemd could not start the
 * service again. Sandboxes that are there already stay where they are, however this keeper was started. */
static void choose_place(struct cgroups *cgroups, const char *instance)
{
    char own[1024], in_slice[CG_INSTANCE_MAX];

    (void) snprintf(cgroups->instance, sizeof cgroups->instance, "%s", instance);
    if (cgroups->count != 1 || cgroups->hierarchy[0].version != 2)
        return;
    (void) snprintf(in_slice, sizeof in_slice, CG_SLICE "/%s", instance);
    if (is_there(cgroups, in_slice) ||
        (!is_there(cgroups, instance) && is_there(cgroups, CG_SLICE) &&
         io_read_text(AT_FDCWD, "/proc/self/cgroup", own, sizeof own) > 0 && cgroups_in_slice(own)))
        memcpy(cgroups->instance, in_slice, sizeof in_slice);
}

int cgroups_open(struct cgroups *cgroups, const char *instance, struct err *err)
{
    static char mounts[65536]; /* static: larger than a stack should hold, used once */
    char v2[512] = "";

    if (io_read_text(AT_FDCWD, "/proc/thread-self/mounts", mounts, sizeof mounts) < 0)
        return err_sys(err, errno, "read /proc/thread-self/mounts");
    cgroups_detect(cgroups, mounts, "");
    for (size_t i = 0; i < cgroups->count; i++) {
        char path[PATH_SIZE];

        if (cgroups->hierarchy[i].version != 2)
            continue;
        (void) snprintf(path, sizeof path, "%s/cgroup.controllers", cgroups->hierarchy[i].mount);
        if (io_read_text(AT_FDCWD, path, v2, sizeof v2) > 0)
            v2[strcspn(v2, "\n")] = '\0';
        cgroups_detect(cgroups, mounts, v2);
        break;
    }
    if (cgroups->of[CG_MEMORY] < 0 || cgroups->of[CG_PIDS] < 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "no cgroup controller for memory or processes: sandboxes could not be "
                       "limited ('cove doctor' says more)");
    choose_place(cgroups, instance);
    for (size_t i = 0; i < cgroups->count; i++)
        if (open_parent(cgroups, (int) i, cgroups->instance, err) < 0)
            return -1;
    return 0;
}

/* Processes in it bring memory to sandboxes. Where no sandbox is left, they are about to end. */
static void remove_apart(int parent_fd, uint64_t until_ms)
{
    const struct timespec moment = { .tv_nsec = APART_NS };
    struct stat parent;

    while (unlinkat(parent_fd, CGROUP_APART, AT_REMOVEDIR) < 0 && errno == EBUSY &&
           fstat(parent_fd, &parent) == 0 && parent.st_nlink == LINKS_OF_ONE_BELOW &&
           io_now_ms() < until_ms)
        (void) nanosleep(&moment, NULL);
}

void cgroups_close(struct cgroups *cgroups)
{
    uint64_t until_ms = io_now_ms() + CGROUP_APART_MS;

    for (size_t i = 0; i < cgroups->count; i++) {
        struct cgroup_hierarchy *h = &cgroups->hierarchy[i];

        if (h->parent_fd >= 0 && h->shared)
            (void) unlinkat(h->parent_fd, CGROUP_ALL, AT_REMOVEDIR);
        else if (h->parent_fd >= 0)
            remove_apart(h->parent_fd, until_ms);
        own_close(&h->parent_fd);
        if (h->root_fd >= 0) /* refused while sandboxes are in it, as it should be */
            (void) unlinkat(h->root_fd, cgroups->instance, AT_REMOVEDIR);
        own_close(&h->root_fd);
    }
}

int cgroup_bound(const struct cgroups *cgroups, const char *name, const struct limits *limits,
                 struct err *err)
{
    for (size_t i = 0; i < cgroups->count; i++) {
        auto_close int fd = -1;

        if (!has_knobs(cgroups, SANDBOX, (int) i)) /* three of six hierarchies of v1 */
            continue;
        fd = openat(cgroups->hierarchy[i].parent_fd, name,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            err_sys(err, errno, "open it in %s", cgroups->hierarchy[i].mount);
        else if (write_knobs(cgroups, SANDBOX, (int) i, fd, limits, err) == 0)
            continue;
        return err_wrap(err, "cgroup '%s'", name);
    }
    return 0;
}

static void unmake(const struct cgroups *cgroups, const char *name, size_t made)
{
    while (made-- > 0)
        (void) unlinkat(cgroups->hierarchy[made].parent_fd, name, AT_REMOVEDIR);
}

int cgroup_make(const struct cgroups *cgroups, const char *name, struct err *err)
{
    for (size_t i = 0; i < cgroups->count; i++)
        if (!cgroups->hierarchy[i].shared &&
            mkdirat(cgroups->hierarchy[i].parent_fd, name, 0755) < 0) {
            err_sys(err, errno, "make it in %s", cgroups->hierarchy[i].mount);
            unmake(cgroups, name, i);
            return err_wrap(err, "cgroup '%s'", name);
        }
    return 0;
}

int cgroup_create(const struct cgroups *cgroups, const char *name, const struct limits *limits,
                  struct err *err)
{
    if (cgroup_make(cgroups, name, err) < 0)
        return -1;
    if (cgroup_bound(cgroups, name, limits, err) == 0)
        return 0;
    unmake(cgroups, name, cgroups->count);
    return -1;
}

int cgroup_share(const struct cgroups *cgroups, const char *name, const struct limits *limits,
                 struct err *err)
{
    int index = cgroups->of[CG_CPU];
    auto_close int fd = -1;

    if (index < 0)
        return 0;
    fd = openat(cgroups->hierarchy[index].parent_fd, name,
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        err_sys(err, errno, "open it in %s", cgroups->hierarchy[index].mount);
    else if (write_knobs(cgroups, SHARE, index, fd, limits, err) == 0)
        return 0;
    return err_wrap(err, "cgroup '%s'", name);
}

static int write_limits(const struct cgroups *cgroups, int index, int dirfd,
                        const struct limits *limits, struct err *err)
{
    return write_knobs(cgroups, SANDBOX, index, dirfd, limits, err) < 0
               ? -1
               : write_knobs(cgroups, SHARE, index, dirfd, limits, err);
}

static int limit_in(const struct cgroups *cgroups, int index, const char *name,
                    const struct limits *limits, struct err *err)
{
    const struct cgroup_hierarchy *h = &cgroups->hierarchy[index];
    auto_close int fd = openat(h->parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? err_sys(err, errno, "open it in %s", h->mount)
                  : write_limits(cgroups, index, fd, limits, err);
}

/* One that cannot be set (memory that is in use beyond it) does not leave the others as they were. */
int cgroup_limit(const struct cgroups *cgroups, const char *name, const struct limits *limits,
                 struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < cgroups->count; i++) {
        struct err why;

        if (cgroups->hierarchy[i].shared || limit_in(cgroups, (int) i, name, limits, &why) == 0 ||
            rc < 0)
            continue;
        *err = why;
        rc = err_wrap(err, "cgroup '%s'", name);
    }
    return rc;
}

void cgroup_entry_close(struct cgroup_entry *entry)
{
    for (size_t i = 0; i < entry->count; i++)
        own_close(&entry->tasks_fd[i]);
    own_close(&entry->v2_fd);
    entry->count = 0;
}

int cgroup_entry_open(const struct cgroups *cgroups, const char *name, struct cgroup_entry *ret,
                      struct err *err)
{
    struct cgroup_entry entry = { .v2_fd = -1 };

    for (size_t i = 0; i < cgroups->count; i++) {
        bool v2 = cgroups->hierarchy[i].version == 2;
        char path[PATH_SIZE];
        int fd;

        (void) snprintf(path, sizeof path, v2 ? "%s" : "%s/tasks",
                        cgroups->hierarchy[i].shared ? CGROUP_ALL : name);
        fd = openat(cgroups->hierarchy[i].parent_fd, path,
                    (v2 ? O_RDONLY | O_DIRECTORY : O_WRONLY) | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) {
            err_sys(err, errno, "open %s in %s", path, cgroups->hierarchy[i].mount);
            cgroup_entry_close(&entry);
            return -1;
        }
        if (v2)
            entry.v2_fd = fd;
        else
            entry.tasks_fd[entry.count++] = fd;
    }
    *ret = entry;
    return 0;
}

/* Found and killed by CG_PIDS; counted, and limited, by the others. */
static bool is_of_sides(const struct cgroups *cgroups, int index)
{
    return index == cgroups->of[CG_PIDS] || index == cgroups->of[CG_MEMORY] ||
           index == cgroups->of[CG_CPU];
}

static int open_side(const struct cgroups *cgroups, int index, const char *side,
                     const struct limits *limits, struct err *err)
{
    const struct cgroup_hierarchy *h = &cgroups->hierarchy[index];
    auto_close int fd = -1;
    int tasks;

    if (mkdirat(h->parent_fd, side, 0755) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make it in %s", h->mount);
    fd = openat(h->parent_fd, side, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, errno, "open it in %s", h->mount);
    if (limits && write_limits(cgroups, index, fd, limits, err) < 0)
        return -1;
    if (h->version == 2)
        return take_fd(&fd);
    tasks = openat(fd, "tasks", O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    return tasks < 0 ? err_sys(err, errno, "open tasks in %s", h->mount) : tasks;
}

int cgroup_side_open(const struct cgroups *cgroups, const char *side, const struct limits *limits,
                     struct cgroup_entry *ret, struct err *err)
{
    struct cgroup_entry entry = { .v2_fd = -1 };

    for (int i = 0; i < (int) cgroups->count; i++) {
        int fd = is_of_sides(cgroups, i) ? open_side(cgroups, i, side, limits, err) : -1;

        if (fd < 0 && is_of_sides(cgroups, i)) {
            cgroup_entry_close(&entry);
            return err_wrap(err, "cgroup '%s'", side);
        }
        if (fd >= 0 && cgroups->hierarchy[i].version == 2)
            entry.v2_fd = fd;
        else if (fd >= 0)
            entry.tasks_fd[entry.count++] = fd;
    }
    *ret = entry;
    return 0;
}

int cgroup_remove(const struct cgroups *cgroups, const char *name, struct err *err)
{
    int gone = 1;

    for (size_t i = 0; i < cgroups->count; i++) {
        if (unlinkat(cgroups->hierarchy[i].parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            continue;
        if (errno != EBUSY)
            return err_sys(err, errno, "remove cgroup '%s' in %s", name,
                           cgroups->hierarchy[i].mount);
        gone = 0;
    }
    return gone;
}

void cgroup_each(const struct cgroups *cgroups, void (*fn)(const char *name, void *arg), void *arg)
{
    for (size_t i = 0; i < cgroups->count; i++) {
        int fd = openat(cgroups->hierarchy[i].parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        while (dir && (entry = readdir(dir)))
            if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
                fn(entry->d_name, arg);
    }
}
