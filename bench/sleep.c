/* A sandbox with one program in it is put to sleep and woken again, as often as asked for. A resume ends with the first
 * answer: a command run to its end. "Cold" is a resume whose image is not in the page cache; programs and libraries
 * still are. */
#include "sleep.h"

#include "base/io.h"
#include "base/own.h"
#include "client/exec.h"
#include "client/image.h"
#include "report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define FORK_LANES 8
#define MiB        (1024u * 1024u)

struct workload {
    const char *name;
    const char *command; /* says "ready" and continues */
    uint64_t memory_mib;
    unsigned target_ms; /* of a resume from disk, p50 */
};

/* The project's targets; a data frame of 200 MB is as much memory, whoever filled it. */
static const struct workload workloads[] = {
    { "bash", "echo ready; read -r line < <(sleep 100000)", 512, 60 },
    { "node",
      "exec node -e 'require(\"http\").createServer((q, r) => r.end(\"x\")).listen(8080, () => "
      "console.log(\"ready\"))'",
      512, 80 },
    { "python, 50 MB",
      "exec python3 -uc 'import os, time; x = os.urandom(50 << 20); print(\"ready\"); "
      "time.sleep(1e6)'",
      512, 200 },
    { "python, 250 MB",
      "exec python3 -uc 'import os, time; x = os.urandom(250 << 20); print(\"ready\"); "
      "time.sleep(1e6)'",
      1024, 350 },
    { "python, 1 GB",
      "exec python3 -uc 'import os, time; x = os.urandom(1000 << 20); print(\"ready\"); "
      "time.sleep(1e6)'",
      2048, 500 },
};

/* Starts the program and waits for its word; it continues without us. */
static int start(struct lane *lane, const char *id, const struct workload *w, struct err *err)
{
    const char *const argv[] = { "/bin/bash", "-c", w->command };
    struct agent_request request = { .op = AGENT_EXEC };
    struct exec exec = EXEC_NONE;
    struct exec_event event;
    auto_free char *texts = NULL;
    int rc;

    if (exec_texts(argv, ARRAY_LEN(argv), &request.args, &texts, err) < 0 ||
        exec_start(&exec, &lane->link, id, &request, err) < 0)
        return -1;
    rc = exec_next(&exec, &event, err);
    if (rc == 1 && event.type != EXEC_STDOUT)
        rc = err_set(err, ERR_INTERNAL, "%s does not start", w->name);
    exec_close(&exec);
    return rc < 0 ? -1 : 0;
}

static int make(struct lane *lane, const struct workload *w, struct keeper_sandbox *ret,
                struct err *err)
{
    struct limits limits;

    limits_default(&limits);
    limits.memory_bytes = w->memory_mib * MiB;
    if (lane_create(lane, &limits, ret, err) < 0)
        return -1;
    if (start(lane, ret->id, w, err) == 0)
        return 0;
    (void) lane_destroy(lane, ret->id, &(struct err){ 0 });
    return -1;
}

/* ---- tiers ---- */

/* Out of the page cache: written first, or it would stay. */
static void evict(int dir_fd, const char *name)
{
    int own = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        auto_close int fd = openat(own, entry->d_name, O_RDONLY | O_CLOEXEC);

        if (fd >= 0 && entry->d_type == DT_REG) {
            (void) fdatasync(fd);
            (void) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        }
    }
}

static void evict_image(const struct rig *rig, const char *id)
{
    auto_close int state = open(rig->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char path[64];

    (void) snprintf(path, sizeof path, "images/%s/memory", id);
    evict(state, path);
    evict(state, "disks");
}

enum tier { HOT, WARM, DISK, COLD };

static int put_to_sleep(const struct rig *rig, struct lane *lane, enum tier tier, const char *id,
                        struct series *series, struct err *err)
{
    struct keeper_image image;
    uint64_t bytes, begin = io_now_us();
    int rc;

    if (tier == HOT || tier == WARM) {
        rc = sandbox_freeze(&lane->link, id, err);
        if (rc == 0 && tier == WARM)
            rc = sandbox_reclaim(&lane->link, id, &bytes, err);
    } else {
        rc =
            image_save(&lane->link, id, id, "", KEEPER_SAVE_STOP | KEEPER_SAVE_MEMORY, &image, err);
    }
    if (rc < 0)
        return -1;
    series_add(series, io_now_us() - begin);
    if (tier == COLD)
        evict_image(rig, id);
    return 0;
}

static int wake(struct lane *lane, enum tier tier, const char *id, struct series *series,
                struct err *err)
{
    struct image_load_spec spec = { .image = id, .id = id };
    struct keeper_sandbox sandbox;
    uint64_t begin = io_now_us();

    if ((tier == HOT || tier == WARM ? sandbox_thaw(&lane->link, id, err)
                                     : image_load(&lane->link, &spec, &sandbox, err)) < 0 ||
        lane_true(lane, id, err) < 0)
        return -1;
    series_add(series, io_now_us() - begin);
    return 0;
}

static bool has_swap(void)
{
    struct sysinfo info;

    return sysinfo(&info) == 0 && info.totalswap > 0;
}

static int measure_tier(const struct rig *rig, struct lane *lane, const struct workload *w,
                        enum tier tier, unsigned rounds, bool judge, struct err *err)
{
    static const char *const names[] = { "hot", "warm", "disk", "disk, cold" };
    struct series pause = { 0 }, resume = { 0 };
    struct keeper_sandbox sandbox;
    char label[64];
    int rc = make(lane, w, &sandbox, err);

    if (rc < 0)
        return -1;
    for (unsigned i = 0; rc == 0 && i < rounds; i++) {
        rc = put_to_sleep(rig, lane, tier, sandbox.id, &pause, err);
        if (rc == 0)
            rc = wake(lane, tier, sandbox.id, &resume, err);
    }
    (void) lane_destroy(lane, sandbox.id, &(struct err){ 0 });
    if (rc == 0 && !judge) {
        (void) snprintf(label, sizeof label, "%s: %s, pause", w->name, names[tier]);
        report_series(label, &pause, 0, NULL);
        (void) snprintf(label, sizeof label, "%s: %s, resume", w->name, names[tier]);
        report_series(label, &resume, 0, NULL);
        if (tier == DISK) {
            report_target(series_at(&resume, 50) <= w->target_ms * 1000u,
                          "%s: resume from disk p50 %.0f ms (target %u)", w->name,
                          (double) series_at(&resume, 50) / 1000, w->target_ms);
            report_target(series_at(&resume, 99) <= 500000,
                          "%s: resume from disk p99 %.0f ms (target 500)", w->name,
                          (double) series_at(&resume, 99) / 1000);
        }
    }
    series_done(&pause);
    series_done(&resume);
    return rc < 0 ? err_wrap(err, "%s, %s", w->name, names[tier]) : 0;
}

/* ---- forks ---- */

struct forks {
    const struct rig *rig;
    const char *image;
    size_t count, next; /* next: atomic */
    size_t failures;    /* atomic */
    char (*id)[ID_LEN + 1];
};

static void *fork_some(void *arg)
{
    struct forks *f = arg;
    struct lane lane;
    struct err err;
    bool opened = lane_open(&lane, f->rig, &err) == 0;

    for (size_t i; (i = __atomic_fetch_add(&f->next, 1, __ATOMIC_RELAXED)) < f->count;) {
        struct image_load_spec spec = { .image = f->image, .id = f->id[i] };
        struct keeper_sandbox sandbox;

        if (!opened || sandbox_new_id(f->id[i], &err) < 0 ||
            image_load(&lane.link, &spec, &sandbox, &err) < 0 ||
            lane_true(&lane, f->id[i], &err) < 0) {
            (void) fprintf(stderr, "cove-bench: fork: %s\n", err.msg);
            __atomic_fetch_add(&f->failures, 1, __ATOMIC_RELAXED);
        }
    }
    if (opened)
        lane_close(&lane);
    return NULL;
}

static int fork_count(const struct rig *rig, struct lane *lane, const char *image, size_t count,
                      bool judge, struct err *err)
{
    struct forks f = { .rig = rig, .image = image, .count = count };
    pthread_t threads[FORK_LANES];
    size_t started = 0;
    uint64_t begin = io_now_us(), us;

    f.id = calloc(count, sizeof *f.id);
    if (!f.id)
        return err_sys(err, ENOMEM, "%zu forks", count);
    while (started < FORK_LANES && started < count &&
           pthread_create(&threads[started], NULL, fork_some, &f) == 0)
        started++;
    for (size_t i = 0; i < started; i++)
        (void) pthread_join(threads[i], NULL);
    us = io_now_us() - begin;
    for (size_t i = 0; i < count; i++)
        (void) lane_destroy(lane, f.id[i], &(struct err){ 0 });
    free(f.id);
    if (f.failures)
        return err_set(err, ERR_INTERNAL, "%zu of %zu forks failed", f.failures, count);
    if (!judge)
        report_fact("forks of python, 50 MB, to the first answer of the last", "%zu in %.0f ms",
                    count, (double) us / 1000);
    if (!judge && count == 100)
        report_target(us <= 10000000, "100 forks in %.1f s (target 10)", (double) us / 1e6);
    return 0;
}

static int measure_forks(const struct rig *rig, struct lane *lane, bool judge, struct err *err)
{
    static const size_t counts[] = { 1, 10, 100 };
    struct keeper_sandbox sandbox;
    struct keeper_image image;
    char id[ID_LEN + 1];
    int rc;

    if (make(lane, &workloads[2], &sandbox, err) < 0)
        return -1;
    rc = sandbox_new_id(id, err);
    if (rc == 0)
        rc = image_save(&lane->link, sandbox.id, id, "", KEEPER_SAVE_MEMORY, &image, err);
    if (rc == 0 && !judge)
        report_fact("a snapshot of it: stood still for", "%.0f ms",
                    (double) image.frozen_us / 1000);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(counts) && !(judge && counts[i] > 10); i++)
        rc = fork_count(rig, lane, id, counts[i], judge, err);
    (void) image_drop(&lane->link, id, &(struct err){ 0 });
    (void) lane_destroy(lane, sandbox.id, &(struct err){ 0 });
    return rc < 0 ? err_wrap(err, "forks") : 0;
}

int sleep_run(struct rig *rig, unsigned rounds, bool judge, struct err *err)
{
    struct lane lane;
    int rc = lane_open(&lane, rig, err);

    if (rc < 0)
        return -1;
    if (!judge) {
        report_section("7. Asleep and awake");
        report_series_head("pause, and resume to the first answer");
    }
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(workloads) && !(judge && i > 0); i++)
        for (enum tier tier = HOT; rc == 0 && tier <= COLD; tier++) {
            if (tier != WARM || has_swap())
                rc = measure_tier(rig, &lane, &workloads[i], tier, rounds, judge, err);
        }
    if (rc == 0)
        rc = measure_forks(rig, &lane, judge, err);
    lane_close(&lane);
    return rc;
}
