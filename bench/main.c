/* cove-bench - measures cove, side by side with its peers. docs/benchmarks.md says how to read it.
 *
 *   cove-bench            everything. BENCH_ROUNDS=200 and BENCH_COUNT=1000 say how much (0: leave
 *                         that part out), BENCH_DISK=64m the disk of the crowd's sandboxes,
 *                         BENCH_API=1 whether the server is measured, BENCH_FILE=1g its large file,
 *                         BENCH_SLEEP=30 rounds of pause and resume, BENCH_GROWTH=2000 how many are
 *                         alive when a create is compared with one beside few, BENCH_PAUSE=10 ms
 *                         before each create that is compared with peers
 *   cove-bench --check    a short run that judges correctness only, as a test: no peers, no times
 */
#include "api.h"
#include "base/io.h"
#include "base/own.h"
#include "compare.h"
#include "crowd.h"
#include "growth.h"
#include "report.h"
#include "sleep.h"
#include "steps.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define TRANSFER_TURNS 3

static volatile sig_atomic_t stop_asked;

static void ask_stop(int number)
{
    (void) number;
    stop_asked = 1;
}

static uint64_t setting(const char *name, uint64_t preset)
{
    const char *text = getenv(name);
    struct err err;
    uint64_t value;

    if (!text || !*text)
        return preset;
    if (parse_u64(text, &value, &err) < 0) {
        (void) fprintf(stderr, "cove-bench: %s: %s\n", name, err.msg);
        exit(2);
    }
    return value;
}

static uint64_t setting_size(const char *name, uint64_t preset)
{
    const char *text = getenv(name);
    struct err err;
    uint64_t bytes = preset;

    if (text && *text && parse_size(text, &bytes, &err) < 0) {
        (void) fprintf(stderr, "cove-bench: %s: %s\n", name, err.msg);
        exit(2);
    }
    return bytes;
}

static int report_failure(const struct err *err)
{
    (void) fprintf(stderr, "cove-bench: %s\n", err->msg);
    return 1;
}

/* Sections 1 to 4. */
static int run_compare(struct rig *rig, unsigned rounds, struct err *err)
{
    char dir[140];
    struct peers peers;
    struct compare compare;
    int rc;

    (void) snprintf(dir, sizeof dir, "%s/peers", rig->dir);
    if (mkdir(dir, 0700) < 0)
        return err_sys(err, errno, "make %s", dir);
    peers_init(&peers, dir);
    rc = compare_init(&compare, rig, &peers, err);
    for (unsigned i = 0; rc == 0 && i < rounds && !stop_asked; i++)
        compare_round(&compare, i);
    if (rc == 0)
        compare_report(&compare);
    compare_done(&compare);
    peers_done(&peers);
    if (rc == 0)
        steps_report(rig->log);
    return rc;
}

/* Section 5. */
static int run_crowd(struct rig *rig, size_t count, struct err *err)
{
    struct crowd crowd;
    int rc = crowd_init(&crowd, rig, count, setting_size("BENCH_DISK", 0), err);

    if (rc == 0) {
        rc = crowd_run(&crowd, err);
        crowd_report(&crowd);
    }
    crowd_done(&crowd);
    return rc;
}

static int run_growth(struct rig *rig, size_t many, struct err *err)
{
    uint64_t ignored;

    if (rig->up < 0 && rig_start(rig, 0, &ignored, err) < 0)
        return -1;
    return growth_run(rig, many, 40, false, err);
}

/* Section 7. */
static int run_asleep(struct rig *rig, unsigned rounds, struct err *err)
{
    uint64_t ignored;

    if (rig->up < 0 && rig_start(rig, 0, &ignored, err) < 0)
        return -1;
    if (sleep_run(rig, rounds, false, err) < 0)
        return -1;
    steps_report_loads(rig->log);
    return 0;
}

/* Section 6. */
static int run_api(struct rig *rig, unsigned rounds, size_t count, struct err *err)
{
    struct api api;
    uint64_t ignored;
    int rc;

    /* The crowd ends with its keeper's end. */
    if (rig->up < 0 && rig_start(rig, 0, &ignored, err) < 0)
        return -1;
    rc = api_init(&api, rig, true, err);

    for (unsigned i = 0; rc == 0 && i < rounds && !stop_asked; i++)
        api_round(&api, i);
    if (rc == 0 && count && !stop_asked)
        api_crowd(&api, count, API_CLIENTS);
    if (rc == 0 && !stop_asked) {
        api_requests(&api, 40000);
        api_idle(&api, 5000);
        api_transfer(&api, setting_size("BENCH_FILE", 1u << 30), TRANSFER_TURNS);
        api_report(&api);
    }
    api_done(&api);
    return rc;
}

static int bench(struct rig *rig)
{
    uint64_t rounds = setting("BENCH_ROUNDS", 200), count = setting("BENCH_COUNT", 1000);
    uint64_t asleep = setting("BENCH_SLEEP", 30), many = setting("BENCH_GROWTH", 2000);
    char host[200], date[32];
    time_t now = time(NULL);
    double load = 0;
    struct tm tm;
    struct err err;

    (void) getloadavg(&load, 1);
    host_describe(host, sizeof host);
    (void) strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &tm));
    printf("cove %s, %s, on %s; load %.1f at the start\n", COVE_VERSION, date, host, load);
    printf("%llu rounds, interleaved; ratio: p50 to that of cove's client library\n",
           (unsigned long long) rounds);
    (void) fflush(stdout);
    if (rounds && run_compare(rig, (unsigned) rounds, &err) < 0)
        return report_failure(&err);
    if (count && !stop_asked && run_crowd(rig, count, &err) < 0)
        return report_failure(&err);
    if (many > 1 && !stop_asked && run_growth(rig, many, &err) < 0)
        return report_failure(&err);
    if (setting("BENCH_API", 1) && !stop_asked &&
        run_api(rig, rounds ? (unsigned) rounds : 50, count, &err) < 0)
        return report_failure(&err);
    if (asleep && !stop_asked && run_asleep(rig, (unsigned) asleep, &err) < 0)
        return report_failure(&err);
    report_verdicts();
    return 0;
}

static unsigned bad;

static void judge(bool good, const char *sentence, const char *why)
{
    if (good)
        printf("ok - %s\n", sentence);
    else
        printf("not ok - %s: %s\n", sentence, why);
    (void) fflush(stdout);
    bad += !good;
}

#define CHECK_CREATES 20
#define CHECK_EXECS   30
#define CHECK_CROWD   50
#define CHECK_API     10

static void check_compare(struct rig *rig)
{
    struct compare compare;
    struct err err = { 0 };
    const char *why = err.msg;
    unsigned failures = 0;

    if (compare_init(&compare, rig, NULL, &err) < 0) {
        judge(false, "a sandbox starts", err.msg);
    } else {
        /* Each round creates twice in each way of using the library, and twice by command line. */
        for (unsigned i = 0; i < CHECK_CREATES / (2 * COVE_WAYS); i++)
            compare_round(&compare, i);
        failures = compare_failures(&compare, &why);
        judge(failures == 0, "20 sandboxes are created, used and destroyed without a failure", why);
        for (unsigned i = 0; i < CHECK_EXECS && failures == 0; i++)
            failures += lane_true(&compare.lane, compare.cove[0].living, &err) < 0;
        judge(failures == 0, "30 commands run in a living sandbox without a failure", err.msg);
    }
    compare_done(&compare);
}

static void check_crowd(struct rig *rig)
{
    struct crowd crowd;
    struct err err = { 0 };
    char why[200];

    if (crowd_init(&crowd, rig, CHECK_CROWD, 0, &err) < 0 || crowd_run(&crowd, &err) < 0)
        judge(false, "50 sandboxes are measured to the end", err.msg);
    judge(crowd.create_failures == 0, "50 sandboxes are created, 8 at a time", crowd.why.msg);
    judge(crowd.exec_failures == 0, "each of 50 sandboxes answers an exec", crowd.why.msg);
    judge(crowd.listed == CHECK_CROWD, "all 50 are listed", "the list is short");
    judge(crowd.adopted == CHECK_CROWD, "each answers again after kill -9 of the keeper",
          "some were not adopted");
    judge(crowd.destroy_failures == 0, "50 sandboxes are destroyed, 8 at a time", crowd.why.msg);
    (void) snprintf(why, sizeof why, "%zu processes, %zu cgroups, %zu loops, %zu mounts, %zu files",
                    crowd.left.processes, crowd.left.cgroups, crowd.left.loops, crowd.left.mounts,
                    crowd.left.files);
    judge(host_left_total(&crowd.left) == 0, "nothing is left of them", why);
    (void) snprintf(why, sizeof why, "%zu loops, %zu mounts", crowd.after.loops,
                    crowd.after.mounts);
    judge(host_left_total(&crowd.after) == 0, "nothing is left of the keeper", why);
    crowd_done(&crowd);
}

/* The server's measurements, small: every answer must be the right one. */
static void check_api(struct rig *rig)
{
    struct api api;
    struct err err;

    if (api_init(&api, rig, false, &err) < 0) {
        judge(false, "the server starts and makes a sandbox", err.msg);
        api_done(&api);
        return;
    }
    for (unsigned i = 0; i < CHECK_API; i++)
        api_round(&api, i);
    judge(api.create.count == CHECK_API && api.exec.count == CHECK_API && !api.failures,
          "10 sandboxes are made and 10 commands run through the server", api.why.msg);
    api_crowd(&api, CHECK_CROWD, API_CLIENTS);
    judge(api.crowd_created == CHECK_CROWD && !api.crowd_failures,
          "50 sandboxes are made and removed by 32 clients", api.why.msg);
    api_requests(&api, 400);
    judge(api.load.answered == 400 && api.load_sandbox.answered == 400,
          "800 short requests over 16 connections are answered", "some are not");
    api_idle(&api, 200);
    judge(api.idle_count == 200, "200 idle connections stay and are answered", api.why.msg);
    api_transfer(&api, 32u << 20, 1);
    judge(api.transfer.up_us && api.transfer.down_us && !api.failures,
          "32 MiB go into a sandbox and come back", api.why.msg);
    api_done(&api);
}

/* Percentiles are values that were measured. */
static void check_series(void)
{
    struct series series = { 0 };

    for (uint64_t i = 100; i > 0; i--)
        series_add(&series, i);
    judge(series_at(&series, 0) == 1 && series_at(&series, 50) == 50 &&
              series_at(&series, 99) == 99 && series_at(&series, 100) == 100,
          "percentiles of 1 to 100 are their own rank", "they are not");
    series_done(&series);
}

static void check_asleep(struct rig *rig)
{
    struct err err = { 0 };

    judge(sleep_run(rig, 2, true, &err) == 0,
          "a sandbox is paused and resumed in every tier, and forked eleven times", err.msg);
}

static int check(struct rig *rig)
{
    check_series();
    check_compare(rig);
    check_asleep(rig);
    check_api(rig);
    check_crowd(rig);
    return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
    bool short_run = argc == 2 && strcmp(argv[1], "--check") == 0;
    struct sigaction stop = { .sa_handler = ask_stop };
    struct rlimit files;
    struct rig rig;
    struct err err;
    int rc;

    if (argc > 1 && !short_run) {
        (void) fprintf(stderr, "usage: cove-bench [--check]\n");
        return 2;
    }
    /* One descriptor per sandbox is kept, to see that its PID 1 is gone. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &files);
    }
    /* `echo` reads the locale's files: the peers' commands get the one that cove's templates set. */
    (void) unsetenv("LC_ALL");
    (void) setenv("LANG", "C.UTF-8", 1);
    (void) sigaction(SIGINT, &stop, NULL);
    (void) sigaction(SIGTERM, &stop, NULL);
    (void) signal(SIGPIPE, SIG_IGN);
    if (rig_init(&rig, &err) < 0)
        rc = report_failure(&err);
    else
        rc = short_run ? check(&rig) : bench(&rig);
    rig_done(&rig);
    return rc;
}
