/* The driver `fault`: a jail that breaks its word, for a keeper of tests only (tests/tests.mk). It stands in vm's place in the table.
 *
 * Which call fails, and how, is the sandbox's host name, <call>-<way>:
 *
 *   error   fails at once, nothing is done
 *   half    does the work, or begins it, and says that it failed
 *   never   does nothing and says that it began, or is never done
 *   dies    the sandbox's process, or the worker, is killed in the middle
 *   lies    says that it is done, and it is not
 *
 * Any other host name: a jail. */
#include "base/io.h"
#include "base/own.h"
#include "driver/jail/jail.h"
#include "keeper/create.h"
#include "keeper/life.h"
#include "keeper/ops.h"
#include "keeper/sandbox.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const struct driver fault_driver;

static bool is(const char *plan, const char *call, const char *way)
{
    size_t len = strlen(call);

    return strncmp(plan, call, len) == 0 && plan[len] == '-' && strcmp(plan + len + 1, way) == 0;
}

static int fail(struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "the fault driver fails on purpose");
}

static void fail_sandbox(struct keeper *k, struct sandbox *s)
{
    struct err err;

    (void) fail(&err);
    if (s->info.life == LIFE_NEW || s->info.life == LIFE_STARTING)
        sandbox_fail(k, s, &err);
}

static void kill_process(const struct sandbox *s)
{
    if (s->pid.fd >= 0)
        (void) syscall(__NR_pidfd_send_signal, s->pid.fd, SIGKILL, NULL, 0);
}

/* ---- a beginning ---- */

static int check(struct keeper *k, const struct keeper_request *r, uint64_t *ret_build,
                 struct err *err)
{
    const char *plan = r->hostname;

    if (is(plan, "check", "error"))
        return fail(err);
    if (jail_driver.check(k, r, ret_build, err) < 0)
        return -1;
    if (is(plan, "check", "lies"))
        *ret_build = UINT64_MAX;
    return is(plan, "check", "half") ? fail(err) : 0;
}

static void create(struct keeper *k, struct sandbox *s)
{
    const char *plan = s->hostname;

    if (is(plan, "create", "error")) {
        fail_sandbox(k, s);
    } else if (is(plan, "create", "lies")) { /* it runs, without a process */
        sandbox_set_life(k, s, LIFE_STARTING);
        s->info.pid = 1;
        create_running(k, s);
    } else if (!is(plan, "create", "never")) {
        jail_driver.create(k, s);
        if (is(plan, "create", "half"))
            fail_sandbox(k, s);
    }
}

static void start(struct keeper *k, struct sandbox *s)
{
    const char *plan = s->hostname;

    if (is(plan, "start", "error")) {
        fail_sandbox(k, s);
        return;
    }
    if (is(plan, "start", "never"))
        return;
    jail_driver.start(k, s);
    if (is(plan, "start", "half"))
        fail_sandbox(k, s);
    if (is(plan, "start", "dies"))
        kill_process(s);
    if (is(plan, "load", "dies") && s->worker) /* the loader */
        (void) kill(s->worker, SIGKILL);
    if (is(plan, "start", "lies") &&
        s->info.life == LIFE_STARTING) { /* before it is ready; of when it is is not known */
        s->pid_started = 0;
        create_running(k, s);
    }
}

/* ---- a life ---- */

static int connect_box(struct keeper *k, const struct sandbox *s, int *ret_fd, struct err *err)
{
    static int silent[2] = { -1, -1 };
    const char *plan = s->hostname;

    if (is(plan, "connect", "error"))
        return fail(err);
    if (is(plan, "connect", "lies")) {
        *ret_fd = -1;
        return 0;
    }
    if (is(plan, "connect", "never")) { /* a connection that no agent answers */
        if (silent[0] < 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, silent) < 0)
            return fail(err);
        *ret_fd = dup(silent[1]);
        return 0;
    }
    if (is(plan, "connect", "dies"))
        kill_process(s);
    if (jail_driver.connect(k, s, ret_fd, err) < 0)
        return -1;
    if (is(plan, "connect", "half") || is(plan, "connect", "dies")) {
        own_close(ret_fd);
        return fail(err);
    }
    return 0;
}

static int freeze(struct keeper *k, struct sandbox *s, bool frozen, struct err *err)
{
    const char *plan = s->hostname;

    if (is(plan, frozen ? "freeze" : "thaw", "error"))
        return fail(err);
    if (frozen && is(plan, "freeze", "lies"))
        return 0;
    if (frozen && is(plan, "freeze", "dies"))
        kill_process(s);
    if (jail_driver.freeze(k, s, frozen, err) < 0)
        return -1;
    return is(plan, frozen ? "freeze" : "thaw", "half") ? fail(err) : 0;
}

static int frozen(struct keeper *k, const struct sandbox *s, bool as)
{
    const char *plan = s->hostname;

    if (is(plan, "freeze", "lies"))
        return 1;
    if (as && is(plan, "freeze", "never"))
        return 0;
    return jail_driver.frozen(k, s, as);
}

static int stats(struct keeper *k, struct sandbox *s, bool brief, struct keeper_stats *ret,
                 struct err *err)
{
    const char *plan = s->hostname;

    if (is(plan, "stats", "error"))
        return fail(err);
    if (is(plan, "stats", "dies"))
        kill_process(s);
    if (is(plan, "stats", "lies")) {
        memset(ret, 0xff, sizeof *ret);
        return 0;
    }
    if (jail_driver.stats(k, s, brief, ret, err) < 0)
        return -1;
    return is(plan, "stats", "half") ? fail(err) : 0;
}

static int resumed(struct keeper *k, struct sandbox *s, struct err *err)
{
    return is(s->hostname, "resumed", "error") ? fail(err) : jail_driver.resumed(k, s, err);
}

/* ---- an end ---- */

static void died(struct keeper *k, struct sandbox *s)
{
    if (!is(s->hostname, "died", "never"))
        jail_driver.died(k, s);
}

static void leave_disk(struct keeper *k, const struct sandbox *s)
{
    jail_driver.leave_disk(k, s);
}

static void let_go(struct keeper *k, struct sandbox *s)
{
    jail_driver.let_go(k, s);
}

static void kill_box(struct keeper *k, struct sandbox *s, bool late)
{
    if (!is(s->hostname, "kill", "never"))
        jail_driver.kill(k, s, late);
}

static void kill_workers(struct keeper *k, const struct sandbox *s)
{
    jail_driver.kill_workers(k, s);
}

static int remove_box(struct keeper *k, struct sandbox *s, struct err *err)
{
    static unsigned tries;

    if (is(s->hostname, "remove", "error") && ++tries < 20)
        return fail(err);
    if (is(s->hostname, "remove", "half") && ++tries < 20) {
        (void) jail_driver.remove(k, s, err);
        return fail(err);
    }
    if (is(s->hostname, "remove", "never"))
        return 0;
    if (is(s->hostname, "remove", "lies"))
        return 1;
    return jail_driver.remove(k, s, err);
}

static void release(struct keeper *k, struct sandbox *s)
{
    if (!is(s->hostname, "release", "never"))
        jail_driver.release(k, s);
}

/* ---- another keeper's ---- */

static void adopt(struct keeper *k, struct sandbox *s)
{
    const char *plan = s->hostname;

    if (is(plan, "adopt", "error")) {
        sandbox_stop(k, s, "the fault driver fails on purpose");
        return;
    }
    if (is(plan, "adopt", "dies"))
        kill_process(s);
    if (!is(plan, "adopt", "never"))
        jail_driver.adopt(k, s);
    if (is(plan, "adopt", "half") && s->info.life == LIFE_RUNNING)
        sandbox_stop(k, s, "the fault driver fails on purpose");
}

static const char *why_lost(struct keeper *k, const struct sandbox *s)
{
    return jail_driver.why_lost(k, s);
}

static bool settle(struct keeper *k, struct sandbox *s)
{
    if (is(s->hostname, "settle", "never"))
        return false;
    return is(s->hostname, "settle", "lies") || jail_driver.settle(k, s);
}

/* ---- optional ---- */

static int save(struct keeper *k, struct sandbox *s, const struct keeper_request *r,
                struct err *err)
{
    const char *plan = s->hostname;
    struct keeper_image image = { .saved_ms = 1 };

    if (is(plan, "save", "error"))
        return fail(err);
    if (is(plan, "save", "lies")) { /* an image that is not there */
        memcpy(image.id, r->image, sizeof image.id);
        ops_saved(k, s, &image, NULL);
        return 0;
    }
    if (jail_driver.save(k, s, r, err) < 0)
        return -1;
    if (is(plan, "save", "half") || is(plan, "save", "dies") || strncmp(plan, "settle-", 7) == 0)
        (void) kill(s->worker, SIGKILL);
    if (is(plan, "save", "never"))
        (void) kill(s->worker, SIGSTOP);
    return is(plan, "save", "half") ? fail(err) : 0;
}

static int load(struct keeper *k, const struct keeper_request *r, const struct image_meta *meta,
                struct sandbox **ret, struct err *err)
{
    const char *plan = r->hostname;

    if (is(plan, "load", "error"))
        return fail(err);
    if (is(plan, "load", "never")) { /* a sandbox that is some other one */
        *ret = &k->sandboxes[0];
        return 0;
    }
    if (is(plan, "load", "lies"))
        return 0;
    if (jail_driver.load(k, r, meta, ret, err) < 0)
        return -1;
    return is(plan, "load", "half") ? fail(err) : 0;
}

static int network(struct keeper *k, struct sandbox *s, int *ret_fds, struct err *err)
{
    const char *plan = s->hostname;

    if (is(plan, "network", "error"))
        return fail(err);
    if (is(plan, "network", "lies"))
        return 0;
    if (is(plan, "network", "dies"))
        kill_process(s);
    if (jail_driver.network(k, s, ret_fds, err) < 0)
        return -1;
    return is(plan, "network", "half") ? fail(err) : 0;
}

static int reclaim(struct keeper *k, struct sandbox *s, struct err *err)
{
    const char *plan = s->hostname;

    if (is(plan, "reclaim", "error"))
        return fail(err);
    if (is(plan, "reclaim", "lies"))
        return 0;
    if (jail_driver.reclaim(k, s, err) < 0)
        return -1;
    if (is(plan, "reclaim", "dies"))
        (void) kill(s->worker, SIGKILL);
    return is(plan, "reclaim", "half") ? fail(err) : 0;
}

static int rename_box(struct keeper *k, struct sandbox *s, const char *name, struct err *err)
{
    if (is(name, "rename", "error"))
        return fail(err);
    if (is(name, "rename", "dies"))
        kill_process(s);
    if (is(name, "rename", "lies"))
        return 0;
    if (jail_driver.rename(k, s, name, err) < 0)
        return -1;
    return is(name, "rename", "half") ? fail(err) : 0;
}

static const char *stale(struct keeper *k, const struct sandbox *s)
{
    return jail_driver.stale(k, s);
}

const struct driver fault_driver = {
    .isolation = ISOLATION_VM,
    .check = check,
    .create = create,
    .start = start,
    .connect = connect_box,
    .freeze = freeze,
    .frozen = frozen,
    .stats = stats,
    .resumed = resumed,
    .died = died,
    .leave_disk = leave_disk,
    .let_go = let_go,
    .kill = kill_box,
    .kill_workers = kill_workers,
    .remove = remove_box,
    .release = release,
    .adopt = adopt,
    .why_lost = why_lost,
    .settle = settle,
    .save = save,
    .load = load,
    .network = network,
    .reclaim = reclaim,
    .rename = rename_box,
    .stale = stale,
};
