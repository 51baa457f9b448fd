/* What the host must have left for one more sandbox. */
#include "base/own.h"
#include "server/app/app.h"
#include "server/guard/quota.h"
#include "store/store.h"

#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

    quota_host_read("/tmp", NULL, &host);
    CHECK(host.memory_total > 0 && host.memory_available <= host.memory_total);
    CHECK(host.disk_total > 0 && host.disk_free <= host.disk_total);
    CHECK(host.pids > 0 && host.pids_most >= host.pids);
    CHECK(host.fds >= 3 && host.fds < 100);
}

static void figures_of_memory_are_taken_from_others_if_there_are_any(void)
{
    const struct quota_host before = { .memory_total = 7, .memory_available = 5, .pids_most = 1 };
    struct quota_host host;

    quota_host_read("/tmp", &before, &host);
    CHECK(host.memory_total == 7 && host.memory_available == 5);
    CHECK(host.disk_total > 0 && host.pids > 0 && host.pids_most > 1);
}

static void an_old_figure_of_memory_counts_what_was_admitted_since(void)
{
    const struct quota_host none = { 0 };

    CHECK(quota_memory_holds(&roomy, 2999, 512 * MB));
    CHECK(!quota_memory_holds(&roomy, 3000, 512 * MB));
    CHECK(quota_memory_holds(&roomy, 300, 7200 * MB));
    CHECK(!quota_memory_holds(&roomy, 300, 7201 * MB));
    CHECK(!quota_memory_holds(&roomy, 300, UINT64_MAX));
    CHECK(quota_memory_holds(&none, 300, 512 * MB));
}

static void an_open_file_is_one_descriptor_more(void)
{
    struct quota_host before, after;
    int fd;

    quota_host_read("/tmp", NULL, &before);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    quota_host_read("/tmp", NULL, &after);
    CHECK(fd >= 0 && after.fds == before.fds + 1);
    (void) close(fd);
}

#define CHILDREN 64
#define TRIES    20 /* others of the host begin and end meanwhile */

static bool children_are_seen(void)
{
    struct quota_host before, after;
    pid_t child[CHILDREN];

    quota_host_read("/tmp", NULL, &before);
    for (int i = 0; i < CHILDREN; i++) {
        child[i] = fork();
        if (child[i] == 0)
            for (;;)
                (void) pause();
    }
    quota_host_read("/tmp", NULL, &after);
    for (int i = 0; i < CHILDREN; i++)
        if (child[i] > 0) {
            (void) kill(child[i], SIGKILL);
            (void) waitpid(child[i], NULL, 0);
        }
    return after.pids > before.pids + CHILDREN / 2;
}

static void the_number_of_processes_is_that_of_now(void)
{
    bool seen = false;

    for (int i = 0; i < TRIES && !seen; i++)
        seen = children_are_seen();
    CHECK(seen);
}

/* ---- users ---- */

static struct app app;

static int ask(const char *tenant, const char *user)
{
    struct caller caller = { .app = &app, .user = user };

    (void) snprintf(caller.tenant, sizeof caller.tenant, "%s", tenant);
    return quota_request(&caller, &err);
}

static void a_crowd_of_users_of_one_tenant_does_not_widen_the_window_of_another(void)
{
    static struct config config = { .user_requests = 1, .user_window_ms = 3600000 };
    struct store_quotas none = { 0 };
    char state[] = "/tmp/cove-quota.XXXXXX", name[32], command[64];

    CHECK(mkdtemp(state) && store_open(state, &app.store, &err) == 0);
    CHECK(store_tenant_add(app.store, "crowd", &none, &err) == 0);
    CHECK(store_tenant_add(app.store, "calm", &none, &err) == 0);
    atomic_store(&app.config, &config);
    app.quota = quota_new(); /* until the end of the program */
    CHECK(app.quota && ask("calm", "me") == 0);
    CHECK(ask("calm", "me") == -1 && err.kind == ERR_TOO_MANY);
    CHECK(ask("crowd", "me") == 0);
    for (int i = 0; i < 100000; i++) {
        (void) snprintf(name, sizeof name, "user-%d", i);
        CHECK(ask("crowd", name) == 0);
    }
    CHECK(ask("calm", "me") == -1 && err.kind == ERR_TOO_MANY);
    store_close(app.store);
    (void) snprintf(command, sizeof command, "rm -rf %s", state);
    IGNORE(system(command));
}

CHECK_MAIN(T(a_crowd_of_users_of_one_tenant_does_not_widen_the_window_of_another),
           T(a_roomy_host_takes_sandboxes), T(each_shortage_is_said_by_name),
           T(a_figure_that_cannot_be_read_refuses_nothing), T(this_host_can_be_read),
           T(figures_of_memory_are_taken_from_others_if_there_are_any),
           T(an_old_figure_of_memory_counts_what_was_admitted_since),
           T(an_open_file_is_one_descriptor_more), T(the_number_of_processes_is_that_of_now))
