/* The jail: namespaces, cgroups, seccomp, a file system of layers. This is its table and what fits no file of its own;
 * launch.c starts one, save.c and load.c put one to disk and back, posture.c knows whether it is confined. */
#include "driver/jail/jail.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "driver/disks.h"
#include "driver/io_rule.h"
#include "driver/jail/connect.h"
#include "driver/jail/hear.h"
#include "driver/jail/launch.h"
#include "driver/jail/load.h"
#include "driver/jail/memory.h"
#include "driver/jail/oom.h"
#include "driver/jail/posture.h"
#include "driver/jail/save.h"
#include "driver/jail/unmount.h"
#include "driver/worker.h"
#include "jail/spaces.h"
#include "keeper/life.h"
#include "keeper/ops.h"
#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define RECLAIM_MS 30000 /* who asks for a warm pause waits for it */

/* ---- a beginning ---- */

static int check(struct keeper *k, const struct keeper_request *r, uint64_t *ret_build,
                 struct err *err)
{
    struct template t;

    if (io_limit_check(&k->host->io, &r->limits, err) < 0 ||
        template_open(&t, k->host->templates_fd, r->template, err) < 0)
        return -1;
    *ret_build = t.build;
    template_close(&t);
    return 0;
}

void jail_create(struct keeper *k, struct sandbox *s)
{
    bool saved = !(s->info.flags & (KEEPER_FLAG_TIED | KEEPER_FLAG_ONCE));

    s->info.disk_kind = (uint16_t) disk_kind(&s->info.limits, saved);
    disks_begin(k, s);
}

/* ---- a life ---- */

int jail_freeze(struct keeper *k, struct sandbox *s, bool frozen, struct err *err)
{
    return cgroup_freeze(&k->host->cgroups, s->cgroup, frozen, err);
}

int jail_frozen(struct keeper *k, const struct sandbox *s, bool as)
{
    return cgroup_freeze_done(&k->host->cgroups, s->cgroup, as);
}

int jail_stats_common(struct keeper *k, const struct sandbox *s, bool brief,
                      struct keeper_stats *ret, struct err *err)
{
    if (cgroup_stats(&k->host->cgroups, s->cgroup, brief, ret, err) < 0)
        return -1;
    for (uint32_t i = 1; !brief && i < s->layers.count; i++)
        if (!host_disk_counts_elsewhere(k, s, s->layers.number[i]))
            ret->layer_bytes += disk_bytes(&k->host->disks, s->layers.number[i]);
    return 0;
}

static int stats(struct keeper *k, struct sandbox *s, bool brief, struct keeper_stats *ret,
                 struct err *err)
{
    struct statfs disk;
    char path[32];

    if (jail_stats_common(k, s, brief, ret, err) < 0)
        return -1;
    oom_note(s, ret->oom_kills);
    if (brief)
        return 0;
    /* The kernel's own link to the sandbox's root: no name inside is looked up. */
    (void) snprintf(path, sizeof path, "/proc/%d/root", s->info.pid);
    if (statfs(path, &disk) == 0) {
        ret->disk_bytes = (uint64_t) (disk.f_blocks - disk.f_bfree) * (uint64_t) disk.f_bsize;
        ret->disk_inodes = (uint64_t) (disk.f_files - disk.f_ffree);
    }
    return 0;
}

static int resumed(struct keeper *k, struct sandbox *s, struct err *err)
{
    if (io_rule_resume(k, s, err) < 0)
        return err_wrap(err, "its limit on disk I/O cannot be set again");
    memory_watch(k, s);
    oom_look(k, s); /* its keeper may have died during the save, and have known the count */
    return 0;
}

int jail_network(struct keeper *k, struct sandbox *s, int *ret_fds, struct err *err)
{
    return gateway_open(&k->host->gateways, &k->host->nets, s->pid.fd, ret_fds, err);
}

/* In a process of its own: the kernel takes seconds. */
static int reclaim(struct worker *w, const struct keeper_request *request, struct err *err)
{
    struct keeper_stats before = { 0 }, after = { 0 };
    struct sysinfo info;

    (void) request;
    if (sysinfo(&info) < 0 || info.totalswap == 0)
        return err_set(err, ERR_UNSUPPORTED, "this host has no swap");
    if (cgroup_stats(&w->keeper->host->cgroups, w->sandbox.cgroup, false, &before, err) < 0 ||
        cgroup_reclaim(&w->keeper->host->cgroups, w->sandbox.cgroup,
                       w->sandbox.info.limits.memory_bytes, RECLAIM_MS, err) < 0 ||
        cgroup_stats(&w->keeper->host->cgroups, w->sandbox.cgroup, false, &after, err) < 0)
        return -1;
    if (before.memory_bytes > after.memory_bytes)
        w->result.reclaimed = before.memory_bytes - after.memory_bytes;
    return 0;
}

static void on_reclaimed(struct keeper *k, struct sandbox *s, struct worker_result *result)
{
    struct err err;

    if (result->err.kind && cgroup_limit(&k->host->cgroups, s->cgroup, &s->info.limits, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    ops_reclaimed(k, s, result->reclaimed, result->err.kind ? &result->err : NULL);
}

static int begin_reclaim(struct keeper *k, struct sandbox *s, struct err *err)
{
    return worker_start(k, s, "cove-reclaim", reclaim, NULL, on_reclaimed, err);
}

/* ---- the pool ---- */

/* In its own UTS namespace, whose name only a process within can change. */
int jail_rename(struct keeper *k, struct sandbox *s, const char *name, struct err *err)
{
    int rc;

    if (setns(s->pid.fd, CLONE_NEWUTS) < 0)
        return err_sys(err, errno, "enter its UTS namespace");
    rc = sethostname(name, strlen(name)) < 0 ? err_sys(err, errno, "set the host name") : 0;
    spaces_return(k->host->uts_fd, CLONE_NEWUTS, "UTS");
    return rc;
}

const char *jail_stale(struct keeper *k, const struct sandbox *s)
{
    struct template t;
    struct err err;

    if (template_open(&t, k->host->templates_fd, s->info.template, &err) == 0) {
        template_close(&t);
        if (t.build != s->build)
            return "its template was rebuilt";
    } else if (err.kind == ERR_NO_TEMPLATE) {
        return "its template is gone";
    }
    return s->origin[0] && !images_have(&k->host->images, s->origin) ? "its image is gone" : NULL;
}

/* ---- an end ---- */

/* The agent is small and never the kernel's first choice, but a sandbox that is full of small processes can
 * lose it to its own memory limit: the waiting caller should hear that. */
void jail_died(struct keeper *k, struct sandbox *s)
{
    if (s->control.fd >= 0 && !s->worker) /* a child that failed said why before it died */
        hear_on_control(k, &s->control);
    if (s->info.life == LIFE_STOPPING || memory_lost(k, s))
        return;
    if (oom_ended(k, s))
        (void) err_set(&s->failure, ERR_OOM, "sandbox '%s' ran out of memory", s->info.id);
}

int jail_open_inside(int pid, const char *path, int flags)
{
    struct open_how how = { .flags = (uint64_t) (flags | O_CLOEXEC),
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS };
    char name[32];
    auto_close int root = -1;

    (void) snprintf(name, sizeof name, "/proc/%d/root", pid);
    root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? -1 : (int) syscall(__NR_openat2, root, path, &how, sizeof how);
}

int jail_open_disk(int pid)
{
    return jail_open_inside(pid, JAIL_DISK, O_RDONLY | O_DIRECTORY);
}

static void leave_disk(struct keeper *k, const struct sandbox *s)
{
    if (s->pid.fd >= 0)
        unmount_apart(k, s);
}

void jail_let_go(struct keeper *k, struct sandbox *s)
{
    keeper_unwatch(k, &s->control); /* a child that waits for us sees the end and goes */
    keeper_unwatch(k, &s->ready);
    keeper_unwatch(k, &s->fill);
    own_close(&s->disk_fd);
    volumes_let_go(s);
}

void jail_kill(struct keeper *k, struct sandbox *s, bool late)
{
    if (s->pid.fd >= 0)
        (void) syscall(__NR_pidfd_send_signal, s->pid.fd, SIGKILL, NULL, 0);
    (void) cgroup_end(&k->host->cgroups, s->cgroup, late);
    io_rule_end(k, s);
}

void jail_kill_workers(struct keeper *k, const struct sandbox *s)
{
    (void) cgroup_work_kill(&k->host->cgroups, s->cgroup);
    if (s->worker > 0) /* of a host where it could not enter: our child, so the number is its own */
        (void) kill(s->worker, SIGKILL);
}

int jail_remove(struct keeper *k, struct sandbox *s, struct err *err)
{
    int gone = cgroup_remove(&k->host->cgroups, s->cgroup, err);

    if (gone == 0)
        (void) cgroup_kill(&k->host->cgroups, s->cgroup);
    if (gone == 1 && !cgroup_work_remove(&k->host->cgroups, s->cgroup)) {
        (void) cgroup_work_kill(&k->host->cgroups, s->cgroup);
        gone = 0;
    }
    if (gone != 1)
        return gone;
    sysview_drop(&k->host->views, s->view);
    s->view = NULL;
    return 1;
}

void jail_release(struct keeper *k, struct sandbox *s)
{
    host_release_disks(k, &s->layers, s);
    own_close(&s->listener);
    launch_free_fds(k, s);
}

/* ---- another keeper's ---- */

/* The kernel says whether it is frozen: an earlier keeper may have died between the deed and its record. Half
 * frozen is no state to leave a sandbox in. */
void jail_adopt_freeze(struct keeper *k, struct sandbox *s)
{
    struct err err;

    if (cgroup_freeze_done(&k->host->cgroups, s->cgroup, true) == 1)
        sandbox_set_life(k, s, LIFE_PAUSED);
    else
        (void) cgroup_freeze(&k->host->cgroups, s->cgroup, false, &err);
}

static void adopt(struct keeper *k, struct sandbox *s)
{
    struct err err;

    memory_watch(k, s);
    if (s->info.life == LIFE_STOPPING)
        return;
    oom_look(k, s);
    /* A keeper that died may have been about to take back what it gave for a load. */
    if (cgroup_limit(&k->host->cgroups, s->cgroup, &s->info.limits, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    jail_adopt_freeze(k, s);
    if (!s->doomed)
        posture_adopt(k, s);
}

static bool settle(struct keeper *k, struct sandbox *s)
{
    return s->info.life == LIFE_PAUSING ? save_settle(k, s, posture_continue)
                                        : load_settle(k, s, posture_tell_continue);
}

const struct driver jail_driver = {
    .isolation = ISOLATION_JAIL,
    .takes_files = true,
    .gives_files = true,
    .check = check,
    .create = jail_create,
    .start = launch_start,
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
    .why_lost = memory_why_lost,
    .settle = settle,
    .save = save_jail,
    .load = load_begin,
    .network = jail_network,
    .reclaim = begin_reclaim,
    .rename = jail_rename,
    .stale = jail_stale,
};
