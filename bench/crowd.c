#include "crowd.h"

#include "base/io.h"
#include "base/own.h"
#include "report.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How long the kernel gets to return what it frees late (RCU, per-CPU lists) before memory is read.
 */
#define SETTLE_US 1500000

/* Work on one member over a thread's own lane; 0 or -1. */
typedef int member_fn(struct crowd *crowd, struct lane *lane, size_t index, struct err *err);

struct crew {
    struct crowd *crowd;
    member_fn *work;
    size_t next; /* the next member that nobody has taken; atomic */
    pthread_mutex_t lock;
    struct series *series; /* under the lock, as the next two */
    size_t failures;
    struct err why;
};

static void crew_note(struct crew *crew, int rc, uint64_t us, const struct err *err)
{
    (void) pthread_mutex_lock(&crew->lock);
    if (rc == 0) {
        series_add(crew->series, us);
    } else if (crew->failures++ == 0) {
        crew->why = *err;
    }
    (void) pthread_mutex_unlock(&crew->lock);
}

static void *crew_member(void *arg)
{
    struct crew *crew = arg;
    struct lane lane;
    struct err err;
    int opened = lane_open(&lane, crew->crowd->rig, &err);

    for (;;) {
        size_t index = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED);
        uint64_t begin = io_now_us();
        int rc = opened;

        if (index >= crew->crowd->count)
            break;
        if (opened == 0)
            rc = crew->work(crew->crowd, &lane, index, &err);
        crew_note(crew, rc, io_now_us() - begin, &err);
    }
    if (opened == 0)
        lane_close(&lane);
    return NULL;
}

/* Everybody once, with so many in flight; the time of all, failures and the time of each. */
static uint64_t everybody(struct crowd *crowd, unsigned lanes, member_fn *work,
                          struct series *series, size_t *ret_failures)
{
    struct crew crew = { .crowd = crowd, .work = work, .series = series };
    pthread_t threads[CROWD_LANES];
    unsigned started = 0;
    uint64_t begin = io_now_us();

    (void) pthread_mutex_init(&crew.lock, NULL);
    while (started < lanes && pthread_create(&threads[started], NULL, crew_member, &crew) == 0)
        started++;
    if (!started) /* nobody to do it in the background */
        (void) crew_member(&crew);
    for (unsigned i = 0; i < started; i++)
        (void) pthread_join(threads[i], NULL);
    (void) pthread_mutex_destroy(&crew.lock);
    *ret_failures += crew.failures;
    if (crew.failures && !crowd->why.kind)
        crowd->why = crew.why;
    return io_now_us() - begin;
}

static int make_member(struct crowd *crowd, struct lane *lane, size_t index, struct err *err)
{
    struct host_trace *member = &crowd->members[index];
    struct keeper_sandbox sandbox;

    if (lane_create(lane, &crowd->limits, &sandbox, err) < 0)
        return -1;
    (void) snprintf(member->id, sizeof member->id, "%s", sandbox.id);
    member->pid = sandbox.pid;
    member->pidfd = (int) syscall(SYS_pidfd_open, sandbox.pid, 0);
    return 0;
}

static int ask_member(struct crowd *crowd, struct lane *lane, size_t index, struct err *err)
{
    if (!crowd->members[index].id[0])
        return err_set(err, ERR_NO_SANDBOX, "it was never made");
    return lane_true(lane, crowd->members[index].id, err);
}

static int end_member(struct crowd *crowd, struct lane *lane, size_t index, struct err *err)
{
    if (!crowd->members[index].id[0])
        return err_set(err, ERR_NO_SANDBOX, "it was never made");
    return lane_destroy(lane, crowd->members[index].id, err);
}

int crowd_init(struct crowd *crowd, struct rig *rig, size_t count, uint64_t disk_bytes,
               struct err *err)
{
    *crowd = (struct crowd){ .rig = rig, .count = count };
    limits_default(&crowd->limits);
    if (disk_bytes)
        crowd->limits.disk_bytes = disk_bytes;
    crowd->members = calloc(count, sizeof *crowd->members);
    if (!crowd->members)
        return err_sys(err, ENOMEM, "a crowd of %zu", count);
    for (size_t i = 0; i < count; i++)
        crowd->members[i].pidfd = -1;
    return 0;
}

/* kill -9 of the keeper, and the time until a new one has them all. */
static int restart(struct crowd *crowd, struct err *err)
{
    struct series ignored = { 0 };
    size_t failures = 0;

    if (rig_kill(crowd->rig, err) < 0 ||
        rig_start(crowd->rig, crowd->created, &crowd->adopt_us, err) < 0)
        return err_wrap(err, "restart of the keeper");
    crowd->keeper_restarted_kib = host_resident_kib(crowd->rig->keeper);
    (void) everybody(crowd, CROWD_LANES, ask_member, &ignored, &failures);
    crowd->adopted = ignored.count;
    series_done(&ignored);
    return 0;
}

static int list(struct crowd *crowd, struct err *err)
{
    uint64_t begin = io_now_us();
    struct lane lane;
    int rc;

    if (lane_open(&lane, crowd->rig, err) < 0)
        return -1;
    rc = lane_list(&lane, &crowd->listed, err);
    lane_close(&lane);
    crowd->list_us = io_now_us() - begin;
    return rc;
}

static void read_memory(struct crowd *crowd, enum crowd_moment moment)
{
    (void) usleep(SETTLE_US);
    host_memory_read(&crowd->memory[moment]);
}

int crowd_run(struct crowd *crowd, struct err *err)
{
    int rc;

    read_memory(crowd, CROWD_BEFORE);
    crowd->create_us =
        everybody(crowd, CROWD_LANES, make_member, &crowd->create, &crowd->create_failures);
    crowd->created = crowd->create.count;
    read_memory(crowd, CROWD_ALIVE);
    for (size_t i = 0; i < crowd->count; i++)
        if (crowd->members[i].pid > 0)
            crowd->own_anonymous_kib += host_anonymous_kib(crowd->members[i].pid);
    crowd->keeper_kib = host_resident_kib(crowd->rig->keeper);
    crowd->keeper_fds = host_open_files(crowd->rig->keeper);
    crowd->exec_all_us = everybody(crowd, 1, ask_member, &crowd->exec, &crowd->exec_failures);
    read_memory(crowd, CROWD_ASKED);
    rc = list(crowd, err);
    if (rc == 0)
        rc = restart(crowd, err);
    crowd->destroy_us =
        everybody(crowd, CROWD_LANES, end_member, &crowd->destroy, &crowd->destroy_failures);
    crowd->destroyed = crowd->destroy.count;
    read_memory(crowd, CROWD_GONE);
    host_left(crowd->rig->state, crowd->rig->keeper, crowd->members, crowd->count, &crowd->left);
    crowd->left.loops -= crowd->left.loops < CROWD_POOL_MAX ? crowd->left.loops : CROWD_POOL_MAX;
    rig_stop(crowd->rig);
    (void) usleep(SETTLE_US);
    host_left(crowd->rig->state, 0, crowd->members, crowd->count, &crowd->after);
    return rc;
}

static double mib(int64_t kib)
{
    return (double) kib / 1024.0;
}

static void report_memory(const struct crowd *crowd)
{
    const struct host_memory *memory = crowd->memory;
    double each = (double) (crowd->created ? crowd->created : 1);

    printf("\n%-44s %16s %16s %16s\n", "Host memory, more than before", "KiB per sandbox",
           "after an exec", "MiB when gone");
    for (size_t i = 0; i < HOST_MEMORY_ROWS; i++) {
        int64_t before = memory[CROWD_BEFORE].kib[i];

        printf("  %-42s %16.1f %16.1f %16.1f\n", host_memory_name((enum host_memory_row) i),
               (double) (memory[CROWD_ALIVE].kib[i] - before) / each,
               (double) (memory[CROWD_ASKED].kib[i] - before) / each,
               mib(memory[CROWD_GONE].kib[i] - before));
    }
}

/* MiB of host memory for each, found in two ways of which the greater counts: what the host has less
 * (without the anonymous memory that other programs took meanwhile), and the sum of its parts. */
static double memory_of_each(const struct crowd *crowd)
{
    static const enum host_memory_row parts[] = { HOST_SHMEM,       HOST_SLAB_RECLAIMABLE,
                                                  HOST_SLAB_KEPT,   HOST_PERCPU,
                                                  HOST_PAGE_TABLES, HOST_KERNEL_STACK };
    const int64_t *before = crowd->memory[CROWD_BEFORE].kib,
                  *alive = crowd->memory[CROWD_ALIVE].kib;
    int64_t own = (int64_t) crowd->own_anonymous_kib, sum = own;
    int64_t others = alive[HOST_ANON] - before[HOST_ANON] - own;
    int64_t less = before[HOST_AVAILABLE] - alive[HOST_AVAILABLE] - others;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        sum += alive[parts[i]] - before[parts[i]];
    return mib(less > sum ? less : sum) / (double) (crowd->created ? crowd->created : 1);
}

static void report_targets(struct crowd *crowd)
{
    double each = memory_of_each(crowd);
    size_t failures = crowd->create_failures + crowd->exec_failures + crowd->destroy_failures;

    report_target(crowd->create_us <= 10000000 && crowd->created == crowd->count,
                  "%zu of %zu created in %.2f s (<= 10)", crowd->created, crowd->count,
                  (double) crowd->create_us / 1e6);
    report_target(failures == 0, "failures: %zu%s%s", failures, failures ? ", the first: " : "",
                  failures ? crowd->why.msg : "");
    report_target(each <= 1.0, "host memory of each: %.2f MiB (<= 1)", each);
    report_target(crowd->adopt_us && crowd->adopt_us < 5000000 && crowd->adopted == crowd->created,
                  "adopted by a new keeper: %.2f s (< 5), %zu answered",
                  (double) crowd->adopt_us / 1e6, crowd->adopted);
    report_target(crowd->destroy_us <= 10000000 && crowd->destroyed == crowd->created,
                  "%zu destroyed in %.2f s (<= 10)", crowd->destroyed,
                  (double) crowd->destroy_us / 1e6);
    report_target(host_left_total(&crowd->left) + host_left_total(&crowd->after) == 0,
                  "left: %zu processes, %zu cgroups, %zu loop devices, %zu mounts, %zu files",
                  crowd->left.processes, crowd->left.cgroups, crowd->left.loops, crowd->left.mounts,
                  crowd->left.files);
}

void crowd_report(struct crowd *crowd)
{
    char title[100];

    (void) snprintf(title, sizeof title, "5. %zu sandboxes alive at once", crowd->count);
    report_section(title);
    report_series_head("Each of them (create, destroy: 8 in flight)");
    report_series("create", &crowd->create, 0, NULL);
    report_series("exec of `true`, one after the other", &crowd->exec, 0, NULL);
    report_series("destroy", &crowd->destroy, 0, NULL);
    report_memory(crowd);
    printf("\n");
    report_fact("created", "%zu in %.2f s", crowd->created, (double) crowd->create_us / 1e6);
    report_fact("all answered an exec", "%zu in %.2f s", crowd->exec.count,
                (double) crowd->exec_all_us / 1e6);
    report_fact("list", "%zu in %.1f ms", crowd->listed, (double) crowd->list_us / 1e3);
    report_fact("anonymous memory of each PID 1", "%.0f KiB",
                (double) crowd->own_anonymous_kib / (double) (crowd->created ? crowd->created : 1));
    report_fact("keeper", "%.1f MiB resident, %zu descriptors", mib((int64_t) crowd->keeper_kib),
                crowd->keeper_fds);
    report_fact("keeper killed and started again", "adopted all in %.2f s, %.1f MiB resident",
                (double) crowd->adopt_us / 1e6, mib((int64_t) crowd->keeper_restarted_kib));
    report_fact("destroyed", "%zu in %.2f s", crowd->destroyed, (double) crowd->destroy_us / 1e6);
    report_targets(crowd);
}

void crowd_done(struct crowd *crowd)
{
    for (size_t i = 0; crowd->members && i < crowd->count; i++)
        own_close(&crowd->members[i].pidfd);
    free(crowd->members);
    series_done(&crowd->create);
    series_done(&crowd->exec);
    series_done(&crowd->destroy);
}
