#include "rig.h"

#include "base/io.h"
#include "base/own.h"
#include "client/exec.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define START_LIMIT_MS 60000

static int find_programs(struct rig *rig, struct err *err)
{
    ssize_t len = readlink("/proc/self/exe", rig->programs, sizeof rig->programs - 1);
    char *slash;

    if (len < 0)
        return err_sys(err, errno, "read /proc/self/exe");
    rig->programs[len] = '\0';
    slash = strrchr(rig->programs, '/');
    if (slash)
        *slash = '\0';
    (void) snprintf(rig->cove, sizeof rig->cove, "%s/cove", rig->programs);
    if (access(rig->cove, X_OK) < 0)
        return err_sys(err, errno, "%s", rig->cove);
    return 0;
}

int rig_init(struct rig *rig, struct err *err)
{
    uint64_t us;

    *rig = (struct rig){ .up = -1, .log = -1 };
    if (find_programs(rig, err) < 0)
        return -1;
    (void) snprintf(rig->dir, sizeof rig->dir, "/var/tmp/cove-bench.XXXXXX");
    if (!mkdtemp(rig->dir)) {
        err_sys(err, errno, "make %s", rig->dir);
        rig->dir[0] = '\0';
        return -1;
    }
    (void) snprintf(rig->state, sizeof rig->state, "%s/state", rig->dir);
    if (mkdir(rig->state, 0700) < 0)
        return err_sys(err, errno, "make %s", rig->state);
    rig->log = memfd_create("keeper-log", MFD_CLOEXEC);
    if (rig->log < 0)
        return err_sys(err, errno, "make the keeper's log");
    return rig_start(rig, 0, &us, err);
}

/* Ends of lines of the log: what a keeper that does not start said. */
static void last_words(const struct rig *rig, char *out, size_t size)
{
    off_t end = lseek(rig->log, 0, SEEK_END);
    off_t from = end > (off_t) size - 1 ? end - (off_t) size + 1 : 0;
    ssize_t got = pread(rig->log, out, size - 1, from);

    out[got > 0 ? got : 0] = '\0';
}

static int await_sandboxes(struct rig *rig, size_t sandboxes, struct err *err)
{
    uint64_t begin = io_now_ms();

    for (;;) {
        struct keeper_hello hello;
        struct lane lane;
        char said[120];

        if (lane_open(&lane, rig, err) == 0) {
            int rc = lane_hello(&lane, &hello, err);

            lane_close(&lane);
            if (rc == 0 && hello.sandboxes >= sandboxes) {
                rig->keeper = (pid_t) hello.pid;
                return 0;
            }
        }
        if (waitpid(rig->up, NULL, WNOHANG) == rig->up) {
            rig->up = -1;
            last_words(rig, said, sizeof said);
            return err_set(err, ERR_UNAVAILABLE, "cove up ended: %s", said);
        }
        if (io_now_ms() - begin > START_LIMIT_MS)
            return err_wrap(err, "the keeper is not ready after %d s", START_LIMIT_MS / 1000);
        (void) usleep(1000);
    }
}

int rig_start(struct rig *rig, size_t sandboxes, uint64_t *ret_us, struct err *err)
{
    char *const argv[] = { rig->cove,
                           (char *) "up",
                           (char *) "--no-server",
                           (char *) "--state",
                           rig->state,
                           (char *) "--verbose",
                           NULL };
    uint64_t begin = io_now_us();

    rig->up = launch_background(argv, rig->log);
    if (rig->up < 0)
        return err_sys(err, errno, "start %s", rig->cove);
    if (await_sandboxes(rig, sandboxes, err) < 0)
        return -1;
    *ret_us = io_now_us() - begin;
    return 0;
}

int rig_kill(struct rig *rig, struct err *err)
{
    if (kill(rig->keeper, SIGKILL) < 0)
        return err_sys(err, errno, "kill the keeper");
    if (rig->keeper != rig->up)
        launch_end(rig->up);
    else
        (void) waitpid(rig->up, NULL, 0);
    rig->up = -1;
    return 0;
}

void rig_stop(struct rig *rig)
{
    launch_end(rig->up);
    rig->up = -1;
}

/* Sandboxes outlive their keeper: what a failed measurement left must go first, with the help of a
 * new keeper when there is none. */
static int sweep(struct rig *rig)
{
    auto_free struct keeper_sandbox *list = NULL;
    struct err err;
    struct lane lane;
    uint64_t ignored;
    size_t count = 0, left = 0;

    if (rig->up < 0 && rig_start(rig, 0, &ignored, &err) < 0)
        return -1;
    if (lane_open(&lane, rig, &err) < 0)
        return -1;
    if (sandbox_list(&lane.link, &list, &count, &err) < 0)
        left = 1;
    for (size_t i = 0; i < count; i++)
        left += lane_destroy(&lane, list[i].id, &err) < 0;
    lane_close(&lane);
    return left ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void) stat;
    (void) ftw;
    if (type == FTW_DP)
        (void) rmdir(path);
    else
        (void) unlink(path);
    return 0;
}

void rig_done(struct rig *rig)
{
    bool clean = !rig->dir[0] || sweep(rig) == 0;

    rig_stop(rig);
    own_close(&rig->log);
    if (!clean)
        (void) fprintf(stderr, "cove-bench: sandboxes are left: 'cove up --state %s' finds them\n",
                       rig->state);
    else if (rig->dir[0])
        (void) nftw(rig->dir, remove_entry, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    rig->dir[0] = '\0';
}

int lane_open(struct lane *lane, const struct rig *rig, struct err *err)
{
    return link_open(&lane->link, rig->state, err);
}

void lane_close(struct lane *lane)
{
    link_close(&lane->link);
}

int lane_hello(struct lane *lane, struct keeper_hello *ret, struct err *err)
{
    return keeper_hello(&lane->link, ret, err);
}

int lane_create(struct lane *lane, const struct limits *limits, struct keeper_sandbox *ret,
                struct err *err)
{
    struct sandbox_spec spec = { .template = "host", .limits = *limits };

    return sandbox_create(&lane->link, &spec, ret, err);
}

int lane_destroy(struct lane *lane, const char *id, struct err *err)
{
    return sandbox_destroy(&lane->link, id, err);
}

int lane_list(struct lane *lane, size_t *ret_count, struct err *err)
{
    struct keeper_sandbox *list = NULL;

    if (sandbox_list(&lane->link, &list, ret_count, err) < 0)
        return -1;
    free(list);
    return 0;
}

int lane_await_pool(struct lane *lane, size_t count, struct err *err)
{
    uint64_t begin = io_now_ms();

    while (count > 0) {
        auto_free struct keeper_sandbox *list = NULL;
        size_t listed = 0, ready = 0;

        if (sandbox_list_pool(&lane->link, &list, &listed, err) < 0)
            return -1;
        for (size_t i = 0; i < listed; i++)
            ready += list[i].life == LIFE_RUNNING;
        if (ready >= count)
            return 0;
        if (io_now_ms() - begin > START_LIMIT_MS)
            return err_set(err, ERR_TIMEOUT, "the pool has %zu sandboxes, not %zu, after %d s",
                           ready, count, START_LIMIT_MS / 1000);
        (void) usleep(1000);
    }
    return 0;
}

static int lane_run(struct lane *lane, const char *id, const struct agent_request *request,
                    uint64_t *ret_first_us, struct err *err)
{
    const char *what = request->command ? request->command : request->args.data;
    struct exec_event event = { 0 };
    struct exec exec;
    uint64_t first = 0;
    int rc;

    if (exec_start(&exec, &lane->link, id, request, err) < 0)
        return -1;
    while ((rc = exec_next(&exec, &event, err)) == 1 && event.type != EXEC_END)
        if (!first && event.len)
            first = io_now_us();
    exec_close(&exec);
    if (rc < 0)
        return -1;
    if (event.result.ended != EXIT_CODE || event.result.exit_code != 0)
        return err_set(err, ERR_INTERNAL, "%s ended with %s, code %u", what,
                       agent_exit_name(event.result.ended), event.result.exit_code);
    if (!ret_first_us)
        return 0;
    if (!first)
        return err_set(err, ERR_INTERNAL, "%s wrote nothing", what);
    *ret_first_us = first;
    return 0;
}

int lane_echo(struct lane *lane, const char *id, uint64_t *ret_first_us, struct err *err)
{
    static const char argv[] = "/usr/bin/echo\0x"; /* one behind the other, with their NULs */
    struct agent_request request = { .args = { .data = argv, .len = sizeof argv } };

    return lane_run(lane, id, &request, ret_first_us, err);
}

int lane_true(struct lane *lane, const char *id, struct err *err)
{
    static const char argv[] = "/usr/bin/true";
    struct agent_request request = { .args = { .data = argv, .len = sizeof argv } };

    return lane_run(lane, id, &request, NULL, err);
}

int lane_shell_true(struct lane *lane, const char *id, struct err *err)
{
    struct agent_request request = { .command = "true" };

    return lane_run(lane, id, &request, NULL, err);
}
