/* What the host must have left for one more sandbox. */
#include "server/guard/quota.h"

#include "check.h"

#define MB (1024ull * 1024)

static const struct quota_host roomy = { .memory_available = 8000 * MB,
                                         .memory_total = 16000 * MB,
                                         .disk_free = 90000 * MB,
                                         .disk_total = 200000 * MB,
                                         .pids = 300,
                                         .pids_most = 32768,
                                         .fds = 20,
                                         .fds_most = 1024 };
static struct err err;

static void a_roomy_host_takes_sandboxes(void)
{
    CHECK(quota_host_check(&roomy, &err) == 0);
}

static void each_shortage_is_said_by_name(void)
{
    struct quota_host host = roomy;

    host.memory_available = 799 * MB;
    CHECK(quota_host_check(&host, &err) == -1);
    CHECK_INT(err.kind, ERR_UNAVAILABLE);
    CHECK_STR(err.msg, "the host is short of memory: 799 MiB left, 800 MiB are kept free");
    host = roomy;
    host.disk_free = 3999 * MB;
    CHECK(quota_host_check(&host, &err) == -1);
    CHECK_STR(err.msg, "the host is short of disk: 3999 MiB left, 4000 MiB are kept free");
    CHECK_INT(err.kind, ERR_DISK_FULL);
    host = roomy;
    host.pids = 32000;
    CHECK(quota_host_check(&host, &err) == -1);
    CHECK_STR(err.msg, "the host is short of process ids: 768 left, 1638 are kept free");
    host = roomy;
    host.fds = 2000; /* a limit may be lowered below what is open */
    CHECK(quota_host_check(&host, &err) == -1);
    CHECK_STR(err.msg, "the host is short of descriptors: 0 left, 51 are kept free");
}

static void a_figure_that_cannot_be_read_refuses_nothing(void)
{
    struct quota_host none = { 0 };

    CHECK(quota_host_check(&none, &err) == 0);
}

static void this_host_can_be_read(void)
{
    struct quota_host host;

    quota_host_read("/tmp", &host);
    CHECK(host.memory_total > 0 && host.memory_available <= host.memory_total);
    CHECK(host.disk_total > 0 && host.disk_free <= host.disk_total);
    CHECK(host.pids > 0 && host.pids_most >= host.pids);
    CHECK(host.fds >= 3 && host.fds < 100);
}

CHECK_MAIN(T(a_roomy_host_takes_sandboxes), T(each_shortage_is_said_by_name),
           T(a_figure_that_cannot_be_read_refuses_nothing), T(this_host_can_be_read))
