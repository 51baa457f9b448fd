#include "check.h"

#include "base/io.h"
#include "base/own.h"
#include "jail/sysview.h"

#include <fcntl.h>
#include <sys/stat.h>

static char dir[] = "/tmp/cove-sysview.XXXXXX";
static int old_root = -1;
static struct sysviews views;
static struct err err;

/* The keeper's views are at /views of its own small root. */
static void enter(void)
{
    char path[64];

    if (!mkdtemp(dir))
        abort();
    (void) snprintf(path, sizeof path, "%s/views", dir);
    (void) mkdir(path, 0755);
    old_root = open("/", O_RDONLY | O_DIRECTORY);
    if (chroot(dir) < 0 || chdir("/") < 0)
        SKIP("chroot needs root");
    CHECK(sysviews_open(&views, 4, &err) == 0);
}

static const char *file(const struct sysview *v, const char *name)
{
    static char text[4096];
    char path[128];

    (void) snprintf(path, sizeof path, "/views/%s/%s", v->name, name);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) < 0)
        (void) snprintf(text, sizeof text, "(none)");
    return text;
}

static struct limits limits_of(uint64_t memory, uint64_t cpu, uint64_t processes)
{
    return (struct limits){ .memory_bytes = memory, .cpu_milli = cpu, .processes = processes };
}

static void files_show_the_sandboxs_own_limits(void)
{
    struct limits l = limits_of(512u << 20, 2500, 77);
    struct sysview *v = sysview_take(&views, &l, &err);

    CHECK(v != NULL);
    if (!v)
        return;
    CHECK_STR(file(v, "sys/devices/system/cpu/online"), "0-2\n"); /* 2.5 cores are three */
    CHECK_STR(file(v, "sys/devices/system/cpu/possible"), "0-2\n");
    CHECK_STR(file(v, "sys/devices/system/cpu/present"), "0-2\n");
    CHECK_STR(file(v, "sys/fs/cgroup/memory.max"), "536870912\n");
    CHECK_STR(file(v, "sys/fs/cgroup/cpu.max"), "250000 100000\n");
    CHECK_STR(file(v, "sys/fs/cgroup/pids.max"), "77\n");
    CHECK_STR(file(v, "sys/fs/cgroup/cgroup.controllers"), "cpu memory pids\n");
    CHECK_STR(file(v, "sys/fs/cgroup/memory/memory.limit_in_bytes"), "536870912\n");
    CHECK_STR(file(v, "sys/fs/cgroup/cpu/cpu.cfs_quota_us"), "250000\n");
    CHECK_STR(file(v, "sys/fs/cgroup/cpu/cpu.cfs_period_us"), "100000\n");
    CHECK_STR(file(v, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us"), "250000\n");
    CHECK_STR(file(v, "sys/fs/cgroup/cpuacct:/cpu.cfs_quota_us"), "250000\n");
    CHECK_STR(file(v, "sys/fs/cgroup/cpuacct:/cpu.cfs_period_us"), "100000\n");
    CHECK(strncmp(file(v, "proc/meminfo"),
                  "MemTotal:            524288 kB\nMemFree:             524288 kB\n", 62) == 0);
    CHECK(strstr(file(v, "proc/meminfo"), "SwapTotal:                0 kB\n") != NULL);
    CHECK(strstr(file(v, "proc/stat"), "\ncpu2 0") && !strstr(file(v, "proc/stat"), "\ncpu3 "));
    CHECK_INT(strlen(file(v, "proc/stat")), 2048); /* whatever the limits are */
    sysview_drop(&views, v);
}

static void a_fraction_of_a_core_is_one_core(void)
{
    struct limits l = limits_of(64u << 20, 100, 10);
    struct sysview *v = sysview_take(&views, &l, &err);

    CHECK(v != NULL);
    if (v)
        CHECK_STR(file(v, "sys/devices/system/cpu/online"), "0\n");
    sysview_drop(&views, v);
}

static void the_same_limits_share_a_view_and_others_do_not(void)
{
    struct limits a = limits_of(1u << 30, 1000, 50), b = limits_of(1u << 30, 1000, 51);
    struct sysview *first = sysview_take(&views, &a, &err);
    struct sysview *again = sysview_take(&views, &a, &err);
    struct sysview *other = sysview_take(&views, &b, &err);

    CHECK(first && first == again);
    CHECK(other && other != first);
    CHECK_INT(first->users, 2);
    CHECK_STR(file(other, "sys/fs/cgroup/pids.max"), "51\n");
    CHECK_STR(file(first, "sys/fs/cgroup/pids.max"), "50\n");
    sysview_drop(&views, first);
    sysview_drop(&views, again);
    sysview_drop(&views, other);
    sysview_drop(&views, NULL);
}

static void as_many_views_as_slots_and_a_dropped_one_is_written_over(void)
{
    struct sysview *v[4];

    for (uint64_t i = 0; i < 4; i++) {
        struct limits l = limits_of((i + 10) << 20, 1000, 100 + i);

        v[i] = sysview_take(&views, &l, &err);
        CHECK(v[i] != NULL);
        for (uint64_t j = 0; j < i; j++)
            CHECK(v[i] != v[j]);
    }
    for (int round = 0; round < 20; round++) {
        struct limits l = limits_of((uint64_t) (round + 100) << 20, 2000, 9);
        char want[32];

        sysview_drop(&views, v[1]);
        v[1] = sysview_take(&views, &l, &err);
        CHECK(v[1] != NULL);
        (void) snprintf(want, sizeof want, "%llu\n", (unsigned long long) l.memory_bytes);
        CHECK_STR(file(v[1], "sys/fs/cgroup/memory.max"), want);
        CHECK(v[1] != v[0] && v[1] != v[2] && v[1] != v[3]);
    }
    CHECK_STR(file(v[0], "sys/fs/cgroup/pids.max"), "100\n"); /* in use: untouched */
    for (int i = 0; i < 4; i++)
        sysview_drop(&views, v[i]);
}

static void a_view_that_cannot_be_written_says_which_file(void)
{
    struct limits l = limits_of(7u << 20, 3000, 3);

    CHECK(rename("/views", "/away") == 0);
    CHECK(sysview_take(&views, &l, &err) == NULL);
    CHECK(strstr(err.msg, "/views/") != NULL);
    CHECK(rename("/away", "/views") == 0);
    CHECK(sysview_take(&views, &l, &err) != NULL); /* and the next try is not fooled by the first */
}

static void leave(void)
{
    char command[64];

    CHECK(fchdir(old_root) == 0 && chroot(".") == 0);
    (void) snprintf(command, sizeof command, "rm -rf %s", dir);
    CHECK(system(command) == 0);
    free(views.view);
}

CHECK_MAIN(T(enter), T(files_show_the_sandboxs_own_limits), T(a_fraction_of_a_core_is_one_core),
           T(the_same_limits_share_a_view_and_others_do_not),
           T(as_many_views_as_slots_and_a_dropped_one_is_written_over),
           T(a_view_that_cannot_be_written_says_which_file), T(leave))
