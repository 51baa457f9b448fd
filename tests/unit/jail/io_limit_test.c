#include "check.h"

#include "base/io.h"
#include "base/own.h"
#include "jail/io_limit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct err err;

/* ---- how a host limits I/O ---- */

static void v1_is_found_by_its_mount(void)
{
    char top[128];

    CHECK_INT(io_limits_detect("tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
                               "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
                               "cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n",
                               "", top),
              1);
    CHECK_STR(top, "/sys/fs/cgroup/blkio");
}

static void v2_is_found_by_its_controllers(void)
{
    char top[128];

    CHECK_INT(io_limits_detect("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
                               "cpuset cpu io memory pids\n", top),
              2);
}

static void a_host_with_neither_has_no_limits(void)
{
    char top[128];

    CHECK_INT(
        io_limits_detect("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "cpu memory radio io2\n", top),
        0);
    CHECK_INT(io_limits_detect("cgroup /x cgroup rw,name=blkio 0 0\n", "", top), 0);
    CHECK_INT(io_limits_detect("", "", top), 0);
}

static void a_limit_that_cannot_be_held_is_refused(void)
{
    struct io_limits io = { .version = 0, .top_fd = -1, .own_fd = -1 };
    struct limits limits;

    limits_default(&limits);
    CHECK_INT(io_limit_check(&io, &limits, &err), 0);
    limits.io_ops = 100;
    CHECK_INT(io_limit_check(&io, &limits, &err), -1);
    CHECK_INT(err.kind, ERR_UNSUPPORTED);
    CHECK_STR(err.msg, "limit 'iops': this host cannot limit disk I/O ('cove doctor' says more)");
    limits.io_kib = 2048;
    CHECK_INT(io_limit_check(&io, &limits, &err), -1);
    CHECK_STR(err.msg, "limit 'io': this host cannot limit disk I/O ('cove doctor' says more)");
    io.version = 2;
    CHECK_INT(io_limit_check(&io, &limits, &err), 0);
}

static void what_is_on_no_loop_device_has_no_rule(void)
{
    int fd = open("/proc", O_RDONLY | O_DIRECTORY);

    CHECK_INT(io_limit_device(fd), 0);
    CHECK_INT(io_limit_device(-1), 0);
    (void) close(fd);
}

/* ---- a directory that stands in for a cgroup: each file holds the last rule that was written ---- */

static char dir[] = "/tmp/cove-io-limit.XXXXXX";
static const char *const files[] = { "blkio.throttle.read_bps_device",
                                     "blkio.throttle.write_bps_device",
                                     "blkio.throttle.read_iops_device",
                                     "blkio.throttle.write_iops_device", "io.max" };

static int stand_in(void)
{
    int fd;

    if (!mkdtemp(dir) || (fd = open(dir, O_RDONLY | O_DIRECTORY)) < 0)
        abort();
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        (void) close(openat(fd, files[i], O_WRONLY | O_CREAT, 0600));
    return fd;
}

static void take_down(int fd)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        (void) unlinkat(fd, files[i], 0);
    (void) close(fd);
    (void) rmdir(dir);
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
}

static const char *rule(int fd, const char *file)
{
    static char text[256];

    text[0] = '\0';
    (void) io_read_text(fd, file, text, sizeof text);
    return text;
}

static void v1_has_a_rule_per_direction_and_unit(void)
{
    int fd = stand_in();
    struct io_limits io = { .version = 1, .top_fd = fd, .own_fd = -1 };
    struct limits limits = { .io_kib = 1024, .io_ops = 300 }, none = { .io_kib = 0 };
    struct cgroups unused = { .count = 0 };

    CHECK_INT(io_limit_set(&io, &unused, "box", &none, 5, &err),
              0); /* no rule ever: nothing is written */
    CHECK_STR(rule(fd, files[0]), "");
    CHECK_INT(io_limit_set(&io, &unused, "box", &limits, 5, &err), 0);
    CHECK_STR(rule(fd, files[0]), "7:4 1048576");
    CHECK_STR(rule(fd, files[1]), "7:4 1048576");
    CHECK_STR(rule(fd, files[2]), "7:4 300");
    CHECK_STR(rule(fd, files[3]), "7:4 300");
    CHECK_INT(io_limit_set(&io, &unused, "other", &none, 9, &err),
              0); /* it may have had another's rule */
    CHECK_STR(rule(fd, files[1])[2] == '8' ? "7:8" : rule(fd, files[1]), "7:8");
    take_down(fd);
}

static void v2_has_one_line(void)
{
    int fd = stand_in();
    struct io_limits io = { .version = 2, .top_fd = -1, .own_fd = -1, .used = true };
    struct limits limits = { .io_ops = 300 };
    struct cgroups cgroups = { .count = 1, .hierarchy[0] = { .version = 2, .parent_fd = fd } };

    CHECK_INT(io_limit_set(&io, &cgroups, ".", &limits, 1, &err), 0);
    CHECK_STR(rule(fd, "io.max"), "7:0 rbps=max wbps=max riops=300 wiops=300");
    CHECK_INT(io_limit_set(&io, &cgroups, ".", &limits, 0, &err), 0); /* a disk in memory */
    CHECK_INT(io_limit_set(&io, &cgroups, "nowhere", &limits, 1, &err), -1);
    CHECK_STR(err.msg, "this kernel's cgroups cannot limit disk I/O");
    take_down(fd);
}

CHECK_MAIN(T(v1_is_found_by_its_mount), T(v2_is_found_by_its_controllers),
           T(a_host_with_neither_has_no_limits), T(a_limit_that_cannot_be_held_is_refused),
           T(what_is_on_no_loop_device_has_no_rule), T(v1_has_a_rule_per_direction_and_unit),
           T(v2_has_one_line))
