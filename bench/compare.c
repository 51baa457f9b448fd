#include "compare.h"

#include "base/io.h"
#include "base/own.h"
#include "launch.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL_READY   4
#define POOL_SETTING "host:4-4"

/* What a contender does in a round; `which` tells peers and ways of using cove apart. */
struct contender {
    void (*round)(struct compare *compare, size_t which);
    size_t which;
    unsigned every;
};

static void bare_round(struct compare *compare, size_t which)
{
    static char *const argv[] = { (char *) "/usr/bin/true", NULL };
    struct launch_result result;
    uint64_t begin = io_now_us();
    pid_t pid = fork();
    int status;

    (void) which;
    if (pid == 0) {
        (void) execv(argv[0], argv);
        _exit(127);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
        series_add(&compare->fork_true, io_now_us() - begin);
    if (launch_run(argv, LAUNCH_NULL, &result) == 0)
        series_add(&compare->spawn_true, result.total_us);
}

/* create, echo, destroy, each step timed. */
static int cove_echo(struct compare *compare, struct cove_times *times, struct err *err)
{
    struct keeper_sandbox sandbox;
    uint64_t begin = io_now_us(), created, first, ended;

    if (lane_create(&compare->lane, &times->limits, &sandbox, err) < 0)
        return -1;
    created = io_now_us();
    if (lane_echo(&compare->lane, sandbox.id, &first, err) < 0) {
        struct err ignored;

        (void) lane_destroy(&compare->lane, sandbox.id, &ignored);
        return -1;
    }
    ended = io_now_us();
    if (lane_destroy(&compare->lane, sandbox.id, err) < 0)
        return -1;
    series_add(&times->destroy, io_now_us() - ended);
    series_add(&times->create, created - begin);
    series_add(&times->first, first - begin);
    return 0;
}

static int cove_true(struct compare *compare, struct cove_times *times, struct err *err)
{
    struct keeper_sandbox sandbox;
    uint64_t begin = io_now_us();
    struct err first_err;
    int rc;

    if (lane_create(&compare->lane, &times->limits, &sandbox, err) < 0)
        return -1;
    rc = lane_true(&compare->lane, sandbox.id, err);
    if (lane_destroy(&compare->lane, sandbox.id, rc < 0 ? &first_err : err) < 0 || rc < 0)
        return -1;
    series_add(&times->whole, io_now_us() - begin);
    return 0;
}

static int cove_exec(struct compare *compare, struct cove_times *times, struct err *err)
{
    uint64_t begin = io_now_us();

    if (lane_true(&compare->lane, times->living, err) < 0)
        return -1;
    series_add(&times->exec, io_now_us() - begin);
    return 0;
}

static void cove_round(struct compare *compare, size_t which)
{
    struct cove_times *times = &compare->cove[which];

    launch_settle();
    times->failures += cove_echo(compare, times, &times->why) < 0;
    launch_settle();
    times->failures += cove_true(compare, times, &times->why) < 0;
}

static void exec_round(struct compare *compare, size_t which)
{
    struct cove_times *times = &compare->cove[which];

    times->failures += cove_exec(compare, times, &times->why) < 0;
}

static void cli_failed(struct cli_times *times, const char *why)
{
    times->failures++;
    (void) snprintf(times->why, sizeof times->why, "%s", why);
}

static size_t pool_size(const struct cli_times *times)
{
    return strcmp(times->pool, "off") == 0 ? 0 : POOL_READY;
}

/* The next is made ahead before anything else is measured: that work is part of no other's time. */
static void cli_round(struct compare *compare, size_t which)
{
    struct cli_times *times = &compare->cli[which];
    char *const echo[] = { times->rig.cove,    (char *) "run",
                           (char *) "--state", times->rig.state,
                           (char *) "--",      (char *) "/usr/bin/echo",
                           (char *) "x",       NULL };
    char *const plain[] = { times->rig.cove,
                            (char *) "run",
                            (char *) "--state",
                            times->rig.state,
                            (char *) "--",
                            (char *) "/usr/bin/true",
                            NULL };
    struct launch_result result;
    struct err err;

    launch_settle();
    if (launch_run(echo, LAUNCH_FIRST_BYTE, &result) == 0)
        series_add(&times->first, result.first_us);
    else
        cli_failed(times, result.said);
    if (lane_await_pool(&times->lane, pool_size(times), &err) < 0)
        cli_failed(times, err.msg);
    launch_settle();
    if (launch_run(plain, LAUNCH_NULL, &result) == 0)
        series_add(&times->whole, result.total_us);
    else
        cli_failed(times, result.said);
    if (lane_await_pool(&times->lane, pool_size(times), &err) < 0)
        cli_failed(times, err.msg);
}

static void peer_round(struct compare *compare, size_t which)
{
    if (compare->peers && which < compare->peers->count && compare->peers->times[which].works)
        peers_round(compare->peers, &compare->peers->times[which]);
}

static int cli_init(struct cli_times *times, struct err *err)
{
    if (rig_init(&times->rig, err) < 0 ||
        server_coved(&times->server, &times->rig, times->pool, err) < 0 ||
        lane_open(&times->lane, &times->rig, err) < 0)
        return -1;
    return lane_await_pool(&times->lane, pool_size(times), err);
}

static void cli_done(struct cli_times *times)
{
    server_stop(&times->server);
    if (times->lane.link.fd >= 0)
        lane_close(&times->lane);
    if (times->rig.dir[0])
        rig_done(&times->rig);
    series_done(&times->first);
    series_done(&times->whole);
}

int compare_init(struct compare *compare, const struct rig *rig, struct peers *peers,
                 struct err *err)
{
    static const struct cli_times cli[] = {
        [CLI_MADE] = { .name = "cove run, no pool", .pool = "off" },
        [CLI_POOL] = { .name = "cove run, from the pool", .pool = POOL_SETTING },
    };
    static const char *const names[] = {
        [COVE_DISK] = "cove, client library",
        [COVE_MEMORY] = "cove, client library, disk 64m",
    };

    *compare = (struct compare){ .rig = rig, .peers = peers };
    for (size_t i = 0; i < CLI_WAYS; i++) {
        compare->cli[i] = cli[i];
        compare->cli[i].server = SERVER_NONE;
        compare->cli[i].lane.link.fd = -1;
    }
    if (lane_open(&compare->lane, rig, err) < 0)
        return -1;
    for (size_t i = 0; i < CLI_WAYS; i++)
        if (cli_init(&compare->cli[i], err) < 0)
            return err_wrap(err, "%s", compare->cli[i].name);
    for (size_t i = 0; i < COVE_WAYS; i++) {
        struct cove_times *times = &compare->cove[i];
        struct keeper_sandbox sandbox;

        times->name = names[i];
        limits_default(&times->limits);
        if (i == COVE_MEMORY)
            times->limits.disk_bytes = 64u << 20;
        if (lane_create(&compare->lane, &times->limits, &sandbox, err) < 0)
            return err_wrap(err, "the living sandbox");
        (void) snprintf(times->living, sizeof times->living, "%s", sandbox.id);
    }
    return 0;
}

void compare_round(struct compare *compare, unsigned round)
{
    const struct contender fixed[] = {
        /* An exec stands beside what it is compared with, and not behind a destroy, whose clean-up in
         * the kernel continues for a while. */
        { bare_round, 0, 1 },           { exec_round, COVE_DISK, 1 },
        { exec_round, COVE_MEMORY, 1 }, { cove_round, COVE_DISK, 1 },
        { cove_round, COVE_MEMORY, 1 }, { cli_round, CLI_MADE, 1 },
        { cli_round, CLI_POOL, 1 },
    };
    size_t peer_count = compare->peers ? compare->peers->count : 0;
    size_t count = ARRAY_LEN(fixed) + peer_count;

    for (size_t i = 0; i < count; i++) {
        size_t which = (i + round) % count;
        struct contender one = { peer_round, which - ARRAY_LEN(fixed), 1 };

        if (which < ARRAY_LEN(fixed))
            one = fixed[which];
        else
            one.every = compare->peers->times[one.which].peer->every;
        if (round % one.every == 0)
            one.round(compare, one.which);
    }
}

static void report_peers(const struct compare *compare, size_t offset, uint64_t base)
{
    for (size_t i = 0; compare->peers && i < compare->peers->count; i++) {
        struct peer_times *times = &compare->peers->times[i];
        struct series *series = (struct series *) (void *) ((char *) times + offset);
        char note[260];

        (void) snprintf(note, sizeof note, "%s", times->note);
        if (times->works && !series->count)
            (void) snprintf(note, sizeof note, "has none");
        if (times->failures)
            (void) snprintf(note, sizeof note, "%u failed", times->failures);
        report_series(times->peer->name, series, base, note);
    }
}

static struct peer_times *find_peer(const struct compare *compare, const char *program)
{
    for (size_t i = 0; compare->peers && i < compare->peers->count; i++)
        if (strcmp(compare->peers->times[i].peer->program, program) == 0 &&
            compare->peers->times[i].works)
            return &compare->peers->times[i];
    return NULL;
}

static double ratio_at(struct series *a, struct series *b, double percent)
{
    uint64_t below = series_at(b, percent);

    return below ? (double) series_at(a, percent) / (double) below : 0;
}

static void report_create(struct compare *compare)
{
    struct cove_times *cove = &compare->cove[COVE_DISK];
    uint64_t base = series_at(&cove->first, 50);
    struct peer_times *bwrap = find_peer(compare, "bwrap"), *runc = find_peer(compare, "runc");

    report_series_head("Create to the first byte of `echo`");
    for (size_t i = 0; i < COVE_WAYS; i++)
        report_series(compare->cove[i].name, &compare->cove[i].first, base, NULL);
    for (size_t i = 0; i < CLI_WAYS; i++)
        report_series(compare->cli[i].name, &compare->cli[i].first, base, NULL);
    report_peers(compare, offsetof(struct peer_times, first), base);
    if (bwrap) {
        double ratio = ratio_at(&cove->first, &bwrap->whole, 50);

        report_target(
            ratio <= 1.0,
            "create to first byte / bwrap's whole `true`: %.2f (<= 1.0); of the minima %.2f", ratio,
            ratio_at(&cove->first, &bwrap->whole, 0));
    }
    if (runc) {
        double times = ratio_at(&runc->first, &cove->first, 50);

        report_target(times >= 5.0, "faster than runc: %.1f times (>= 5); by the minima %.1f",
                      times, ratio_at(&runc->first, &cove->first, 0));
    }
}

/* The whole command line beside the whole of bwrap's. */
static void report_cli(struct compare *compare, struct peer_times *bwrap)
{
    static const double most[] = { [CLI_MADE] = 1.5, [CLI_POOL] = 1.0 };

    for (size_t i = 0; bwrap && i < CLI_WAYS; i++) {
        struct cli_times *times = &compare->cli[i];
        double ratio = ratio_at(&times->whole, &bwrap->whole, 50);

        report_target(ratio <= most[i], "%s / bwrap: %.2f (<= %.1f); of the minima %.2f",
                      times->name, ratio, most[i], ratio_at(&times->whole, &bwrap->whole, 0));
    }
}

static void report_whole(struct compare *compare)
{
    uint64_t base = series_at(&compare->cove[COVE_DISK].whole, 50);

    report_series_head("Create, `true`, everything removed");
    report_series("no sandbox: fork, exec, wait", &compare->fork_true, base, NULL);
    for (size_t i = 0; i < COVE_WAYS; i++)
        report_series(compare->cove[i].name, &compare->cove[i].whole, base, NULL);
    for (size_t i = 0; i < CLI_WAYS; i++)
        report_series(compare->cli[i].name, &compare->cli[i].whole, base, NULL);
    report_peers(compare, offsetof(struct peer_times, whole), base);
    report_cli(compare, find_peer(compare, "bwrap"));
    report_series_head("Create alone, until the reply");
    for (size_t i = 0; i < COVE_WAYS; i++)
        report_series(compare->cove[i].name, &compare->cove[i].create,
                      series_at(&compare->cove[COVE_DISK].create, 50), NULL);
}

static void report_exec(struct compare *compare)
{
    struct cove_times *cove = &compare->cove[COVE_DISK];
    uint64_t base = series_at(&cove->exec, 50);
    double ratio = ratio_at(&cove->exec, &compare->fork_true, 50);

    report_section("2. exec of `true` in a living sandbox");
    report_series_head("");
    report_series("no sandbox: fork, exec, wait", &compare->fork_true, base, NULL);
    report_series("no sandbox: vfork, exec, wait", &compare->spawn_true, base, NULL);
    for (size_t i = 0; i < COVE_WAYS; i++)
        report_series(compare->cove[i].name, &compare->cove[i].exec, base, NULL);
    report_peers(compare, offsetof(struct peer_times, exec), base);
    report_target(base && base <= 1500, "exec p50: %.2f ms (<= 1.5); least %.2f",
                  (double) base / 1e3, (double) series_at(&cove->exec, 0) / 1e3);
    report_target(base && ratio <= 1.4, "exec / bare fork+exec: %.2f (<= 1.4); of the minima %.2f",
                  ratio, ratio_at(&cove->exec, &compare->fork_true, 0));
}

static void report_destroy(struct compare *compare)
{
    uint64_t base = series_at(&compare->cove[COVE_DISK].destroy, 50);

    report_section("3. destroy of a living sandbox");
    report_series_head("");
    for (size_t i = 0; i < COVE_WAYS; i++)
        report_series(compare->cove[i].name, &compare->cove[i].destroy, base, NULL);
    report_peers(compare, offsetof(struct peer_times, remove), base);
}

void compare_report(struct compare *compare)
{
    const char *why;
    unsigned failures = compare_failures(compare, &why);

    report_section("1. cold create");
    report_create(compare);
    report_whole(compare);
    report_exec(compare);
    report_destroy(compare);
    report_target(failures == 0, "failures of cove in all these rounds: %u%s%s", failures,
                  failures ? ": " : "", failures ? why : "");
}

unsigned compare_failures(const struct compare *compare, const char **ret_why)
{
    unsigned failures = 0;

    *ret_why = "";
    for (size_t i = 0; i < CLI_WAYS; i++) {
        failures += compare->cli[i].failures;
        if (compare->cli[i].failures)
            *ret_why = compare->cli[i].why;
    }
    for (size_t i = 0; i < COVE_WAYS; i++) {
        failures += compare->cove[i].failures;
        if (compare->cove[i].failures)
            *ret_why = compare->cove[i].why.msg;
    }
    return failures;
}

void compare_done(struct compare *compare)
{
    struct err ignored;

    for (size_t i = 0; i < CLI_WAYS; i++)
        cli_done(&compare->cli[i]);
    for (size_t i = 0; i < COVE_WAYS; i++) {
        struct cove_times *times = &compare->cove[i];

        if (times->living[0])
            (void) lane_destroy(&compare->lane, times->living, &ignored);
        series_done(&times->create);
        series_done(&times->first);
        series_done(&times->whole);
        series_done(&times->exec);
        series_done(&times->destroy);
    }
    series_done(&compare->fork_true);
    series_done(&compare->spawn_true);
    lane_close(&compare->lane);
}
