#include "driver/gvisor/gvisor.h"

#include "base/log.h"
#include "base/own.h"
#include "driver/gvisor/runsc.h"
#include "driver/jail/connect.h"
#include "driver/jail/jail.h"
#include "driver/jail/launch.h"
#include "jail/machine.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static int check(struct keeper *k, const struct keeper_request *r, uint64_t *ret_build,
                 struct err *err)
{
    const char *program;
    struct template t;

    if (runsc_find(&program, err) < 0)
        return -1;
    if (volume_use_count(r->volumes) > 0)
        return driver_lacks(&gvisor_driver, "have volumes", err);
    if (io_limit_check(&k->host->io, &r->limits, err) < 0 ||
        template_open(&t, k->host->templates_fd, r->template, err) < 0)
        return -1;
    *ret_build = t.build;
    template_close(&t);
    return 0;
}

static void start(struct keeper *k, struct sandbox *s)
{
    struct machine machine = { .isolation = isolation_name(ISOLATION_GVISOR),
                               .bridge_fd = k->host->bridge_fd };
    struct err err;

    if (runsc_find(&machine.program, &err) < 0)
        sandbox_fail(k, s, &err);
    else
        launch_machine(k, s, &machine);
}

/* Below the jail's own root, through no link. Both are names of the jail around the guest, which no process of the tenant's sees. */
static int open_root(int pid)
{
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS };
    char path[32];
    auto_close int root = -1;

    (void) snprintf(path, sizeof path, "/proc/%d/root", pid);
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? -1 : (int) syscall(__NR_openat2, root, &MACHINE_ROOT[1], &how, sizeof how);
}

static int stats(struct keeper *k, const struct sandbox *s, struct keeper_stats *ret,
                 struct err *err)
{
    auto_close int root = -1;
    struct statfs disk;

    if (jail_stats_common(k, s, ret, err) < 0)
        return -1;
    root = open_root(s->info.pid);
    if (root >= 0 && fstatfs(root, &disk) == 0) {
        ret->disk_bytes = (uint64_t) (disk.f_blocks - disk.f_bfree) * (uint64_t) disk.f_bsize;
        ret->disk_inodes = (uint64_t) (disk.f_files - disk.f_ffree);
    }
    return 0;
}

static int resumed(struct keeper *k, struct sandbox *s, struct err *err)
{
    (void) k, (void) s, (void) err;
    return 0;
}

/* What the guest's processes have not written yet is in the kernel of the guest, and dies with it. */
static void leave_disk(struct keeper *k, const struct sandbox *s)
{
    (void) k, (void) s;
}

static void adopt(struct keeper *k, struct sandbox *s)
{
    struct limits limits = s->info.limits;
    struct err err;

    if (s->info.life == LIFE_STOPPING)
        return;
    machine_allow(&limits);
    if (cgroup_limit(&k->host->cgroups, s->made_as, &limits, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    jail_adopt_freeze(k, s);
}

static const char *why_lost(struct keeper *k, const struct sandbox *s)
{
    (void) k, (void) s;
    return "died while no keeper ran";
}

/* Nothing is ever saved or loaded: whatever its record says, there is no worker to wait for. */
static bool settle(struct keeper *k, struct sandbox *s)
{
    sandbox_stop(k, s, "isolation 'gvisor' cannot go on with what was begun");
    return true;
}

const struct driver gvisor_driver = {
    .isolation = ISOLATION_GVISOR,
    .check = check,
    .create = jail_create,
    .start = start,
    .connect = jail_connect,
    .freeze = jail_freeze,
    .frozen = jail_frozen,
    .stats = stats,
    .resumed = resumed,
    .died = jail_died,
    .leave_disk = leave_disk,
    .let_go = jail_let_go,
    .kill = jail_kill,
    .kill_workers = jail_kill_workers,
    .remove = jail_remove,
    .release = jail_release,
    .adopt = adopt,
    .why_lost = why_lost,
    .settle = settle,
    .network = jail_network,
    .rename = jail_rename,
    .stale = jail_stale,
};
