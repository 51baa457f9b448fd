#include "check.h"

#include "base/io.h"
#include "base/own.h"
#include "jail/cgroup.h"
#include "jail/device_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

static struct cgroups c;
static struct err err;

/* ---- where controllers are ---- */

static void check_at(enum cgroup_controller controller, int version, const char *mount)
{
    int index = c.of[controller];

    CHECK(index >= 0 && (size_t) index < c.count);
    if (index < 0)
        return;
    CHECK_INT(c.hierarchy[index].version, version);
    CHECK_STR(c.hierarchy[index].mount, mount);
}

static void v1_has_a_hierarchy_per_controller(void)
{
    cgroups_detect(&c,
                   "tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0\n"
                   "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n"
                   "cgroup /sys/fs/cgroup/cpuacct cgroup rw,relatime,cpuacct 0 0\n"
                   "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n"
                   "cgroup /sys/fs/cgroup/devices cgroup rw,relatime,devices 0 0\n"
                   "cgroup /sys/fs/cgroup/freezer cgroup rw,relatime,freezer 0 0\n"
                   "cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0\n"
                   "cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n",
                   "");
    CHECK_INT(c.count, 6);
    check_at(CG_MEMORY, 1, "/sys/fs/cgroup/memory");
    check_at(CG_CPU, 1, "/sys/fs/cgroup/cpu");
    check_at(CG_CPUACCT, 1, "/sys/fs/cgroup/cpuacct");
    check_at(CG_DEVICES, 1, "/sys/fs/cgroup/devices");
    for (size_t i = 0; i < c.count; i++)
        CHECK(c.hierarchy[i].shared == ((int) i == c.of[CG_DEVICES]));
}

static void a_hierarchy_with_more_than_devices_is_not_shared(void)
{
    cgroups_detect(&c, "cgroup /cg/both cgroup rw,devices,pids 0 0\n", "");
    CHECK_INT(c.of[CG_DEVICES], c.of[CG_PIDS]);
    CHECK(!c.hierarchy[c.of[CG_DEVICES]].shared);
}

static void v2_has_everything_in_one_place(void)
{
    cgroups_detect(&c, "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n",
                   "cpuset cpu io memory hugetlb pids rdma misc");
    CHECK_INT(c.count, 1);
    for (int i = 0; i < CG_CONTROLLER_COUNT; i++)
        check_at((enum cgroup_controller) i, 2, "/sys/fs/cgroup");
    CHECK(!c.hierarchy[0].shared);
}

/* systemd's hybrid: all controllers on v1, joined cpu,cpuacct; v2 has only its own. */
static void in_systemds_hybrid_v1_has_the_controllers(void)
{
    cgroups_detect(&c,
                   "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
                   "cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n"
                   "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
                   "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
                   "cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n"
                   "cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n"
                   "cgroup /sys/fs/cgroup/devices cgroup rw,devices 0 0\n",
                   "");
    CHECK_INT(c.of[CG_CPU], c.of[CG_CPUACCT]);
    check_at(CG_CPU, 1, "/sys/fs/cgroup/cpu,cpuacct");
    check_at(CG_FREEZER, 1, "/sys/fs/cgroup/freezer");
    CHECK_INT(c.count, 5);
    for (size_t i = 0; i < c.count; i++)
        CHECK_INT(c.hierarchy[i].version, 1);
}

static void a_mixture_is_taken_controller_by_controller(void)
{
    cgroups_detect(&c,
                   "cgroup2 /cg2 cgroup2 rw 0 0\n"
                   "cgroup /cg1/memory cgroup rw,memory 0 0\n",
                   "pids cpu");
    check_at(CG_MEMORY, 1, "/cg1/memory");
    check_at(CG_PIDS, 2, "/cg2");
    check_at(CG_CPU, 2, "/cg2");
    check_at(CG_FREEZER, 2, "/cg2");
    check_at(CG_DEVICES, 2, "/cg2");
    CHECK_INT(c.count, 2);
}

static void words_that_only_look_like_controllers_are_none(void)
{
    cgroups_detect(&c,
                   "cgroup /cg/cpuset cgroup rw,cpuset 0 0\n"
                   "cgroup /cg/name cgroup rw,name=memory 0 0\n"
                   "memory /cg/odd ext4 rw,memory 0 0\n",
                   "");
    for (int i = 0; i < CG_CONTROLLER_COUNT; i++)
        CHECK_INT(c.of[i], -1);
    CHECK_INT(c.count, 0);
}

static void nothing_mounted_is_nothing_found(void)
{
    cgroups_detect(&c, "", "memory pids");
    CHECK_INT(c.count, 0);
    CHECK_INT(c.of[CG_MEMORY], -1);
}

/* ---- directories that stand in for cgroups ---- */

static char dir[] = "/tmp/cove-cgroup.XXXXXX";
static int scratch[2] = { -1, -1 };
static const struct limits some = { .memory_bytes = 64u << 20, .processes = 100, .cpu_milli = 500 };

static void stand_in(int version)
{
    char path[64];

    if (scratch[0] < 0 && !mkdtemp(dir))
        abort();
    c = (struct cgroups){ .instance = "test", .count = 2 };
    for (int i = 0; i < 2; i++) {
        (void) snprintf(path, sizeof path, "%s/%d", dir, i);
        (void) mkdir(path, 0755);
        own_close(&scratch[i]);
        scratch[i] = open(path, O_RDONLY | O_DIRECTORY);
        c.hierarchy[i].version = version;
        c.hierarchy[i].root_fd = -1;
        c.hierarchy[i].parent_fd = scratch[i];
        (void) snprintf(c.hierarchy[i].mount, sizeof c.hierarchy[i].mount, "/fake/%d", i);
    }
    for (int i = 0; i < CG_CONTROLLER_COUNT; i++)
        c.of[i] = i == CG_PIDS; /* the second hierarchy has processes, the first all else */
}

static void put(int at, const char *path, const char *text)
{
    int fd = openat(at, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    IGNORE(write(fd, text, strlen(text)) < 0);
    (void) close(fd);
}

static const char *get(int at, const char *path)
{
    static char text[256];

    return io_read_text(at, path, text, sizeof text) < 0 ? "(none)" : text;
}

static void remove_stand_in(void)
{
    char command[64];

    (void) snprintf(command, sizeof command, "rm -rf %s/*", dir);
    CHECK(system(command) == 0);
}

static void failed_create_leaves_nothing_behind(void)
{
    stand_in(1);
    CHECK(cgroup_create(&c, "k7f2", &some, &err) == -1);
    CHECK_STR(err.msg, "cgroup 'k7f2': write memory.limit_in_bytes: No such file or directory");
    CHECK(faccessat(scratch[0], "k7f2", F_OK, 0) == -1);
    CHECK(faccessat(scratch[1], "k7f2", F_OK, 0) == -1);
    stand_in(2);
    CHECK(cgroup_create(&c, "k7f2", &some, &err) == -1);
    CHECK_STR(err.msg, "cgroup 'k7f2': write memory.max: No such file or directory");
    CHECK(faccessat(scratch[0], "k7f2", F_OK, 0) == -1);
}

static void a_cgroup_that_is_there_already_is_not_taken_nor_removed(void)
{
    stand_in(1);
    CHECK(mkdirat(scratch[0], "k7f2", 0755) == 0);
    CHECK(cgroup_create(&c, "k7f2", &some, &err) == -1);
    CHECK_STR(err.msg, "cgroup 'k7f2': make it in /fake/0: File exists");
    CHECK(faccessat(scratch[0], "k7f2", F_OK, 0) == 0);
    CHECK(unlinkat(scratch[0], "k7f2", AT_REMOVEDIR) == 0);
}

/* The first hierarchy has devices alone here. */
static void a_shared_hierarchy_has_one_cgroup_for_all(void)
{
    struct cgroup_entry entry;

    stand_in(1);
    for (int i = 0; i < CG_CONTROLLER_COUNT; i++)
        c.of[i] = i != CG_DEVICES;
    c.hierarchy[0].shared = true;
    CHECK(cgroup_create(&c, "k7f2", &some, &err) == -1); /* no files where a cgroup has them */
    CHECK_STR(err.msg, "cgroup 'k7f2': write memory.limit_in_bytes: No such file or directory");
    CHECK(mkdirat(scratch[1], "k7f2", 0755) == 0);
    put(scratch[1], "k7f2/tasks", "");
    put(scratch[1], "k7f2/memory.limit_in_bytes", "");
    put(scratch[1], "k7f2/pids.max", "");
    CHECK(cgroup_entry_open(&c, "k7f2", &entry, &err) == -1);
    CHECK_STR(err.msg, "open .all/tasks in /fake/0: No such file or directory");
    CHECK(mkdirat(scratch[0], CGROUP_ALL, 0755) == 0);
    put(scratch[0], CGROUP_ALL "/tasks", "");
    CHECK(cgroup_entry_open(&c, "k7f2", &entry, &err) == 0);
    CHECK_INT(entry.count, 2);
    CHECK(write(entry.tasks_fd[0], "0", 1) == 1);
    cgroup_entry_close(&entry);
    CHECK_STR(get(scratch[0], CGROUP_ALL "/tasks"), "0");
    CHECK(cgroup_limit(&c, "k7f2", &some, &err) == 0);
    CHECK_STR(get(scratch[1], "k7f2/pids.max"), "100");
    CHECK(faccessat(scratch[0], "k7f2", F_OK, 0) == -1);
    remove_stand_in();
}

static void freezing_writes_the_words_of_each_version(void)
{
    stand_in(1);
    CHECK(mkdirat(scratch[0], "box", 0755) == 0);
    CHECK(cgroup_freeze(&c, "box", true, &err) == -1); /* no file: gone */
    put(scratch[0], "box/freezer.state", "");
    CHECK(cgroup_freeze(&c, "box", true, &err) == 0);
    CHECK_STR(get(scratch[0], "box/freezer.state"), "FROZEN");
    put(scratch[0], "box/freezer.state", "FREEZING\n");
    CHECK_INT(cgroup_freeze_done(&c, "box", true), 0);
    put(scratch[0], "box/freezer.state", "FROZEN\n");
    CHECK_INT(cgroup_freeze_done(&c, "box", true), 1);
    CHECK_INT(cgroup_freeze_done(&c, "box", false), 0);
    stand_in(2);
    put(scratch[0], "box/cgroup.freeze", "");
    CHECK(cgroup_freeze(&c, "box", true, &err) == 0);
    CHECK_STR(get(scratch[0], "box/cgroup.freeze"), "1");
    put(scratch[0], "box/cgroup.events", "populated 1\nfrozen 0\n");
    CHECK_INT(cgroup_freeze_done(&c, "box", true), 0);
    put(scratch[0], "box/cgroup.events", "populated 1\nfrozen 1\n");
    CHECK_INT(cgroup_freeze_done(&c, "box", true), 1);
    CHECK_INT(cgroup_freeze_done(&c, "gone", true), -1);
}

static void lay_out(const char *const *files)
{
    (void) mkdirat(scratch[0], "box", 0755);
    (void) mkdirat(scratch[1], "box", 0755);
    for (; *files; files++)
        for (int i = 0; i < 2; i++)
            put(scratch[i], *files, "");
}

static void nothing_holds_up_what_is_to_die(void)
{
    static const char *const v1[] = { "box/pids.max", "box/freezer.state", "box/cpu.cfs_quota_us",
                                      "box/memory.limit_in_bytes", NULL };
    static const char *const v2[] = { "box/cgroup.kill", "box/cgroup.freeze", "box/cpu.max",
                                      "box/pids.max",    "box/memory.max",    NULL };

    stand_in(1);
    lay_out(v1);
    CHECK_INT(cgroup_end(&c, "box", false), 0); /* no list of processes here, so none */
    CHECK_STR(get(scratch[1], "box/pids.max"), "0");
    CHECK_STR(get(scratch[0], "box/freezer.state"), "THAWED");
    CHECK_STR(get(scratch[0], "box/cpu.cfs_quota_us"), "-1");
    CHECK_STR(get(scratch[0], "box/memory.limit_in_bytes"), ""); /* not at once */
    CHECK_INT(cgroup_end(&c, "box", true), 0);
    CHECK_STR(get(scratch[0], "box/memory.limit_in_bytes"), "-1");
    stand_in(2);
    lay_out(v2);
    CHECK_INT(cgroup_end(&c, "box", true), 0);
    CHECK_STR(get(scratch[1], "box/cgroup.kill"), "1");
    CHECK_STR(get(scratch[1], "box/pids.max"), "0");
    CHECK_STR(get(scratch[0], "box/cgroup.freeze"), "0");
    CHECK_STR(get(scratch[0], "box/cpu.max"), "max");
    CHECK_STR(get(scratch[0], "box/memory.max"), "max");
}

static void a_limit_of_processor_time_that_held_nothing_up_is_not_lifted(void)
{
    static const char *const files[] = { "box/cpu.cfs_quota_us", "box/cpu.max", NULL };

    for (int version = 1; version <= 2; version++) {
        const char *file = version == 1 ? "box/cpu.cfs_quota_us" : "box/cpu.max";

        stand_in(version);
        lay_out(files);
        put(scratch[0], "box/cpu.stat", "nr_periods 7\nnr_throttled 0\nthrottled_time 0\n");
        CHECK_INT(cgroup_end(&c, "box", false), 0);
        CHECK_STR(get(scratch[0], file), "");
        put(scratch[0], "box/cpu.stat", "nr_periods 7\nnr_throttled 1\nthrottled_time 99\n");
        CHECK_INT(cgroup_end(&c, "box", false), 0);
        CHECK_STR(get(scratch[0], file), version == 1 ? "-1" : "max");
        put(scratch[0], file, "");
        put(scratch[0], "box/cpu.stat", "nr_periods 7\nnr_throttled 0\n");
        CHECK_INT(cgroup_end(&c, "box", true), 0); /* it takes long */
        CHECK_STR(get(scratch[0], file), version == 1 ? "-1" : "max");
    }
    CHECK(unlinkat(scratch[0], "box/cpu.stat", 0) == 0); /* not of the next test */
}

static void processor_time_is_limited_apart(void)
{
    stand_in(1);
    (void) mkdirat(scratch[0], "box", 0755);
    (void) unlinkat(scratch[0], "box/cpu.cfs_quota_us", 0);
    CHECK(cgroup_share(&c, "box", &some, &err) == 0); /* a kernel without the file limits nothing */
    put(scratch[0], "box/cpu.cfs_quota_us", "");
    CHECK(cgroup_share(&c, "box", &some, &err) == 0);
    CHECK_STR(get(scratch[0], "box/cpu.cfs_quota_us"), "50000");
    CHECK(cgroup_share(&c, "none", &some, &err) == -1);
    CHECK_STR(err.msg, "cgroup 'none': open it in /fake/0: No such file or directory");
    stand_in(2);
    put(scratch[0], "box/cpu.max", "");
    CHECK(cgroup_share(&c, "box", &some, &err) == 0);
    CHECK_STR(get(scratch[0], "box/cpu.max"), "50000 100000");
    c.of[CG_CPU] = -1;
    CHECK(cgroup_share(&c, "box", &some, &err) == 0); /* no such controller */
}

static void figures_are_read_from_each_version(void)
{
    struct keeper_stats s = { 0 };

    stand_in(1);
    (void) mkdirat(scratch[1], "box", 0755);
    put(scratch[0], "box/memory.usage_in_bytes", "1000\n");
    put(scratch[0], "box/memory.max_usage_in_bytes", "2000\n");
    put(scratch[0], "box/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    put(scratch[0], "box/cpuacct.usage", "5000000\n");
    put(scratch[1], "box/pids.current", "7\n");
    CHECK(cgroup_stats(&c, "box", false, &s, &err) == 0);
    CHECK(s.memory_bytes == 1000 && s.memory_peak_bytes == 2000 && s.oom_kills == 3);
    CHECK(s.cpu_us == 5000 && s.processes == 7);
    stand_in(2);
    s = (struct keeper_stats){ 0 };
    put(scratch[0], "box/memory.current", "11\n");
    put(scratch[0], "box/memory.peak", "22\n");
    put(scratch[0], "box/memory.events",
        "low 0\nhigh 0\nmax 9\noom 5\noom_kill 4\noom_group_kill 0\n");
    put(scratch[0], "box/cpu.stat", "usage_usec 123\nuser_usec 100\n");
    CHECK(cgroup_stats(&c, "box", false, &s, &err) == 0);
    CHECK(s.memory_bytes == 11 && s.memory_peak_bytes == 22 && s.oom_kills == 4 && s.cpu_us == 123);
    CHECK(cgroup_stats(&c, "gone", false, &s, &err) == -1);
    s = (struct keeper_stats){ 0 };
    CHECK(cgroup_stats(&c, "box", true, &s, &err) == 0);
    CHECK(s.memory_bytes == 0 && s.memory_peak_bytes == 22 && s.oom_kills == 4 && s.cpu_us == 123);
}

static size_t seen;
static void count_name(const char *name, void *arg)
{
    seen += strcmp(name, arg) == 0;
}

static void names_come_from_every_hierarchy_and_files_are_none(void)
{
    char want[] = "box";
    char command[64];

    stand_in(1);
    put(scratch[0], "tasks", "");
    seen = 0;
    cgroup_each(&c, count_name, want);
    CHECK_INT(seen, 2);
    (void) snprintf(command, sizeof command, "rm -rf %s", dir);
    CHECK(system(command) == 0);
}

/* ---- the kernel's own ---- */

/* In the cgroups of a sandbox, as root. */
static bool devices_are_limited(void)
{
    int fd = open("/dev/zero", O_RDONLY);

    return fd >= 0 && open("/dev/loop-control", O_RDWR) < 0 && errno == EPERM;
}

static void real_limits_arrive_in_the_kernel_and_go_again(void)
{
    struct cgroup_entry entry;
    char instance[64], path[300];
    const struct cgroup_hierarchy *memory, *pids, *devices;
    int status, pipes[2];
    bool rules;
    pid_t pid;

    (void) snprintf(instance, sizeof instance, "cove-unit-%d", (int) getpid());
    if (geteuid() != 0 || cgroups_open(&c, instance, &err) < 0) {
        SKIP("no cgroups here: %s", err.msg);
        return;
    }
    memory = &c.hierarchy[c.of[CG_MEMORY]];
    pids = &c.hierarchy[c.of[CG_PIDS]];
    devices = c.of[CG_DEVICES] < 0 ? NULL : &c.hierarchy[c.of[CG_DEVICES]];
    rules = devices && devices->version == 1 && access("/dev/loop-control", F_OK) == 0;
    CHECK(cgroup_create(&c, "box", &some, &err) == 0);
    CHECK_STR(get(memory->parent_fd,
                  memory->version == 1 ? "box/memory.limit_in_bytes" : "box/memory.max"),
              "67108864\n");
    CHECK_STR(get(pids->parent_fd, "box/pids.max"), "100\n");
    CHECK(cgroup_create(&c, "box", &some, &err) == -1);
    CHECK(pipe(pipes) == 0);
    CHECK(cgroup_entry_open(&c, "box", &entry, &err) == 0);
    pid = fork();
    if (pid == 0) { /* enters by itself, as a child does, and waits to be killed */
        for (size_t i = 0; i < entry.count; i++)
            if (write(entry.tasks_fd[i], "0", 1) != 1)
                _exit(1);
        IGNORE(write(pipes[1], !rules || devices_are_limited() ? "x" : "!", 1) < 0);
        for (;;)
            (void) pause();
    }
    cgroup_entry_close(&entry);
    CHECK(read(pipes[0], path, 1) == 1);
    CHECK_INT(path[0], 'x');
    if (devices && devices->shared)
        CHECK(faccessat(devices->parent_fd, "box", F_OK, 0) == -1);
    if (memory->version == 1) {
        CHECK_INT(cgroup_remove(&c, "box", &err), 0); /* somebody is in it */
        CHECK(cgroup_kill(&c, "box") > 0);
    } else if (pid > 1) {
        (void) kill(pid, SIGKILL); /* v2 is entered by clone, not by writing */
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK_INT(cgroup_remove(&c, "box", &err), 1);
    CHECK_INT(cgroup_remove(&c, "box", &err), 1); /* nothing left is nothing left */
    for (size_t i = 0; i < c.count; i++) {
        (void) snprintf(path, sizeof path, "%s/%s", c.hierarchy[i].mount, instance);
        CHECK(access(path, F_OK) == 0);
    }
    cgroups_close(&c);
    for (size_t i = 0; i < c.count; i++) {
        (void) snprintf(path, sizeof path, "%s/%s", c.hierarchy[i].mount, instance);
        CHECK(access(path, F_OK) == -1);
    }
}

static void those_who_work_on_a_box_are_found_by_its_name(void)
{
    char instance[64], name[KEEPER_NAME_MAX];
    const struct limits limits = { .memory_bytes = 64u << 20, .processes = 8, .cpu_milli = 500 };
    const struct cgroup_hierarchy *memory;
    struct cgroup_entry entry;
    char text[64];
    int status, pipes[2];
    pid_t pid;

    (void) snprintf(instance, sizeof instance, "cove-unit-%d", (int) getpid());
    if (geteuid() != 0 || cgroups_open(&c, instance, &err) < 0) {
        SKIP("no cgroups here: %s", err.msg);
        return;
    }
    CHECK_INT(cgroup_work_remove(&c, "box"), 1); /* never was */
    CHECK_INT(cgroup_work_kill(&c, "box"), 0);
    CHECK(cgroup_work_open(&c, "box", &limits, &entry, &err) == 0);
    memory = cgroup_hierarchy_of(&c, CG_MEMORY);
    CHECK(io_read_text(memory->parent_fd,
                       memory->version == 1 ? "box.work/memory.limit_in_bytes"
                                            : "box.work/memory.max",
                       text, sizeof text) > 0);
    CHECK_STR(text, "67108864\n");
    CHECK(pipe(pipes) == 0);
    pid = cgroup_fork(&entry);
    if (pid == 0) {
        if (fork() == 0) {
            (void) setsid(); /* what a worker starts is found, too */
            IGNORE(write(pipes[1], "x", 1) < 0);
        }
        for (;;)
            (void) pause();
    }
    cgroup_entry_close(&entry);
    CHECK(read(pipes[0], name, 1) == 1);
    CHECK(cgroup_work_open(&c, "box", &limits, &entry, &err) == 0); /* a second one joins */
    cgroup_entry_close(&entry);
    CHECK(io_read_text(memory->parent_fd, "box.work/cgroup.procs", text, sizeof text) >
          0); /* counted there */
    CHECK_INT(atoi(text), pid);
    while (cgroup_work_remove(&c, "box") == 0)
        (void) cgroup_work_kill(&c, "box");
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK(cgroup_is_work("iabc.work", name));
    CHECK_STR(name, "iabc");
    CHECK(!cgroup_is_work("iabc", name) && !cgroup_is_work(".work", name));
    cgroups_close(&c);
}

static void on_v2_a_child_is_born_in_its_cgroup(void)
{
    struct cgroup_entry entry = { .v2_fd = -1 };
    char mount[128] = "", path[300], text[1024];
    auto_file FILE *mounts = fopen("/proc/self/mounts", "re");
    int status;
    pid_t pid;

    while (mounts && fgets(text, sizeof text, mounts))
        if (sscanf(text, "%*s %127s cgroup2 ", mount) == 1 && strstr(text, " cgroup2 "))
            break;
        else
            mount[0] = '\0';
    (void) snprintf(path, sizeof path, "%s/cove-unit-%d", mount, (int) getpid());
    if (!mount[0] || mkdir(path, 0755) < 0) {
        SKIP("no v2 cgroup can be made here");
        return;
    }
    entry.v2_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pid = cgroup_fork(&entry);
    if (pid == 0) {
        for (;;)
            (void) pause();
    }
    CHECK(pid > 0);
    CHECK(io_read_text(entry.v2_fd, "cgroup.procs", text, sizeof text) > 0 && atoi(text) == pid);
    if (pid > 0)
        (void) kill(pid, SIGKILL);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    cgroup_entry_close(&entry);
    CHECK(rmdir(path) == 0);
}

/* Runs inside the v2 cgroup; each bit that is set is a device rule that did not hold. */
static int try_devices(const char *cgroup)
{
    char path[128], node[64];
    int bad = 0, fd, procs;

    (void) snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
    procs = open(path, O_WRONLY);
    if (procs < 0 || write(procs, "0", 1) != 1)
        return 64;
    bad |= (fd = open("/dev/null", O_RDWR)) < 0 ? 1 : 0;
    bad |= open("/dev/zero", O_RDONLY) < 0 ? 1 : 0;
    bad |= open("/dev/urandom", O_RDONLY) < 0 ? 1 : 0;
    bad |= open("/dev/loop-control", O_RDWR) >= 0 || errno != EPERM ? 2 : 0;
    bad |= access("/dev/kmsg", F_OK) == 0 && (open("/dev/kmsg", O_RDONLY) >= 0 || errno != EPERM)
               ? 4
               : 0;
    bad |= access("/dev/loop0", F_OK) == 0 && (open("/dev/loop0", O_RDONLY) >= 0 || errno != EPERM)
               ? 8
               : 0;
    (void) snprintf(node, sizeof node, "/tmp/cove-node-%d", (int) getpid());
    if (mknod(node, S_IFCHR | 0600, makedev(1, 3)) == 0 ||
        errno != EPERM) /* not even an allowed one */
        bad |= 16;
    (void) unlink(node);
    return bad;
}

static void on_v2_only_listed_devices_open(void)
{
    static const char *const mounts[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
    char cgroup[96] = "", file[128];
    int fd, status = -1;
    pid_t pid;

    for (size_t i = 0; i < ARRAY_LEN(mounts) && !cgroup[0]; i++) {
        (void) snprintf(file, sizeof file, "%s/cgroup.controllers", mounts[i]);
        if (access(file, F_OK) == 0)
            (void) snprintf(cgroup, sizeof cgroup, "%s/cove-unit-%d", mounts[i], (int) getpid());
    }
    if (!cgroup[0] || mkdir(cgroup, 0755) < 0) {
        SKIP("no cgroup v2 here");
        return;
    }
    fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    err.msg[0] = '\0';
    for (int i = 0; i < 70;
         i++) /* a keeper that starts again attaches again: the kernel takes 64 of them */
        if (device_filter_attach(fd, &err) < 0 && i > 0)
            CHECK_STR(err.msg, "");
        else if (err.msg[0])
            SKIP("this kernel takes no device filter: %s", err.msg);
    if (!check_skip[0]) {
        pid = fork();
        if (pid == 0)
            _exit(try_devices(cgroup));
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status));
        CHECK_INT(WEXITSTATUS(status), 0);
    }
    (void) close(fd);
    for (int i = 0; i < 1000 && rmdir(cgroup) < 0 && errno == EBUSY; i++)
        (void) usleep(1000);
    CHECK(access(cgroup, F_OK) == -1);
}

static void only_a_service_in_its_own_slice_is_in_that(void)
{
    CHECK(cgroups_in_slice("0::/cove.slice/cove.service\n"));
    CHECK(cgroups_in_slice("1:name=systemd:/x\n0::/cove.slice/cove.service\n"));
    CHECK(!cgroups_in_slice("0::/system.slice/cove.service\n"));
    CHECK(!cgroups_in_slice("0::/user.slice/0::/cove.slice/x\n"));
    CHECK(!cgroups_in_slice("0::/cove.slice\n"));
    CHECK(!cgroups_in_slice("0::/\n"));
    CHECK(!cgroups_in_slice(""));
}

CHECK_MAIN(T(v1_has_a_hierarchy_per_controller), T(v2_has_everything_in_one_place),
           T(a_hierarchy_with_more_than_devices_is_not_shared),
           T(in_systemds_hybrid_v1_has_the_controllers),
           T(a_mixture_is_taken_controller_by_controller),
           T(words_that_only_look_like_controllers_are_none), T(nothing_mounted_is_nothing_found),
           T(failed_create_leaves_nothing_behind),
           T(a_cgroup_that_is_there_already_is_not_taken_nor_removed),
           T(a_shared_hierarchy_has_one_cgroup_for_all),
           T(freezing_writes_the_words_of_each_version), T(nothing_holds_up_what_is_to_die),
           T(a_limit_of_processor_time_that_held_nothing_up_is_not_lifted),
           T(processor_time_is_limited_apart), T(figures_are_read_from_each_version),
           T(names_come_from_every_hierarchy_and_files_are_none),
           T(real_limits_arrive_in_the_kernel_and_go_again),
           T(those_who_work_on_a_box_are_found_by_its_name), T(on_v2_a_child_is_born_in_its_cgroup),
           T(on_v2_only_listed_devices_open), T(only_a_service_in_its_own_slice_is_in_that))
