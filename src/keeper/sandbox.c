/* A sandbox's life: states, the way out, adoption, and what is asked of one that runs. How it comes to
 * life is in create.c.
 *
 * Whatever fails on the way goes to STOPPING: there is one way out, and it is the tested one.
 *
 *   sandbox_stop   journal, kill (kill.c)    STOPPING  waits for PID 1's death
 *   clear          cgroups, journal, disk    GONE      retried while the kernel holds on
 *
 * All else a sandbox has, mounts, network, loop device, is held by its processes alone. */
#include "keeper/sandbox.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "image/fill.h"
#include "keeper/adopt.h"
#include "keeper/bases.h"
#include "keeper/create.h"
#include "keeper/life.h"
#include "keeper/load.h"
#include "keeper/ops.h"
#include "keeper/posture.h"
#include "keeper/save.h"
#include "keeper/volume.h"
#include "wire/boot.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define TO(s)        (1u << LIFE_##s)
#define TIE_GRACE_MS 10000

/* Who may follow whom; in brackets, the only functions that make the move. */
static const unsigned next_life[LIFE_COUNT] = {
    [LIFE_NEW] = TO(STARTING) | TO(STOPPING),           /* [create.c, sandbox_stop] */
    [LIFE_STARTING] = TO(RUNNING) | TO(STOPPING),       /* [create.c, sandbox_stop] */
    [LIFE_RUNNING] = TO(PAUSED) | TO(PAUSING) | TO(STOPPING), /* [sandbox_frozen, save.c, sandbox_stop] */
    [LIFE_PAUSING] = TO(RUNNING) | TO(STOPPING),              /* [sandbox_back, sandbox_stop] */
    [LIFE_PAUSED] = TO(RUNNING) | TO(PAUSING) | TO(STOPPING), /* [sandbox_frozen, save.c, sandbox_stop] */
    [LIFE_STOPPING] = TO(GONE),                         /* [clear] */
    [LIFE_GONE] = TO(NEW) | TO(STARTING) | TO(RUNNING) | TO(STOPPING), /* [create.c, sandbox_adopt] */
};

void sandbox_set_life(struct keeper *k, struct sandbox *s, enum keeper_life life)
{
    assert(next_life[s->info.life] & (1u << life));
    if (s->info.life == LIFE_GONE) {
        k->sandbox_count++;
        k->pooled += (s->info.flags & KEEPER_FLAG_POOLED) != 0;
    }
    if (life == LIFE_GONE) {
        k->sandbox_count--;
        k->pooled -= (s->info.flags & KEEPER_FLAG_POOLED) != 0;
    }
    k->starting -= s->info.life == LIFE_NEW || s->info.life == LIFE_STARTING;
    k->starting += life == LIFE_NEW || life == LIFE_STARTING;
    s->info.life = life;
    k->calm = false;
}

uint32_t sandbox_slot(const struct keeper *k, const struct sandbox *s)
{
    return (uint32_t) (s - k->sandboxes);
}

int sandbox_record(struct keeper *k, const struct sandbox *s, struct err *err)
{
    struct journal_record record = { .sandbox = s->info,
                                     .layers = s->layers,
                                     .template_inode = s->template_inode,
                                     .was_frozen = s->was_frozen,
                                     .filter_form = s->filter_form,
                                     .doomed = s->doomed,
                                     .pid_started = s->pid_started,
                                     .build = s->build };

    memcpy(record.filter, s->filter, sizeof record.filter);
    memcpy(record.hostname, s->hostname, sizeof record.hostname);
    memcpy(record.volumes, s->volumes, sizeof record.volumes);
    memcpy(record.made_as, s->made_as, sizeof record.made_as);
    memcpy(record.image, s->image[0] ? s->image : s->origin, sizeof record.image);
    return journal_write(&k->journal, s->info.slot, &record, err);
}

struct sandbox *sandbox_find(struct keeper *k, const char *id_or_name)
{
    for (uint32_t i = 0; i < k->slot_count; i++) {
        struct sandbox *s = &k->sandboxes[i];

        if (s->info.life != LIFE_GONE &&
            (strcmp(s->info.id, id_or_name) == 0 ||
             (s->info.name[0] && strcmp(s->info.name, id_or_name) == 0)))
            return s;
    }
    return NULL;
}

struct sandbox *sandbox_of_image(struct keeper *k, const char *image)
{
    for (uint32_t i = 0; i < k->slot_count; i++)
        if (k->sandboxes[i].info.life != LIFE_GONE && strcmp(k->sandboxes[i].image, image) == 0)
            return &k->sandboxes[i];
    return NULL;
}

bool sandbox_made_as(const struct keeper *k, const char *name)
{
    for (uint32_t i = 0; i < k->slot_count; i++)
        if (k->sandboxes[i].info.life != LIFE_GONE && strcmp(k->sandboxes[i].made_as, name) == 0)
            return true;
    return false;
}

void sandbox_reset(struct sandbox *s)
{
    memset(s, 0, sizeof *s);
    s->info.life = LIFE_GONE;
    s->pid.fd = s->control.fd = s->ready.fd = s->fill.fd = s->disk_fd = s->listener = -1;
    for (size_t i = 0; i < VOLUMES_MAX; i++)
        s->volume_fd[i] = -1;
    for (size_t i = 0; i < LAYERS_MAX; i++)
        s->base_fd[i] = -1;
    s->tied_to = -1;
}

/* ---- the way out ---- */

static bool has_layer(const struct layers *layers, uint64_t number)
{
    for (uint32_t i = 0; i < layers->count; i++)
        if (layers->number[i] == number)
            return true;
    return false;
}

bool sandbox_disk_used(const struct keeper *k, uint64_t number, const struct sandbox *but)
{
    if (k->merging.order && k->merging.number == number)
        return true;
    for (uint32_t i = 0; i < k->slot_count; i++)
        if (&k->sandboxes[i] != but && k->sandboxes[i].info.life != LIFE_GONE &&
            has_layer(&k->sandboxes[i].layers, number))
            return true;
    for (size_t i = 0; i < IMAGES_MAX; i++)
        if (k->images.entry[i].id[0] && has_layer(&k->images.entry[i].layers, number))
            return true;
    return false;
}

void sandbox_release(struct keeper *k, const struct layers *layers, const struct sandbox *but)
{
    for (uint32_t n = 0; n < layers->count; n++) {
        uint64_t number = layers->number[n];

        if (!number || sandbox_disk_used(k, number, but))
            continue;
        bases_drop(k, number);
        disks_remove(&k->disks, number);
    }
}

/* Removes what is left once the processes are dead. Stays STOPPING while the kernel holds a part. */
void sandbox_clear(struct keeper *k, struct sandbox *s)
{
    struct err err;
    int gone = cgroup_remove(&k->cgroups, s->made_as, &err);

    if (gone == 0)
        (void) cgroup_kill(&k->cgroups, s->made_as);
    if (gone == 1 && !cgroup_work_remove(&k->cgroups, s->made_as)) {
        (void) cgroup_work_kill(&k->cgroups, s->made_as);
        gone = 0;
    }
    if (gone < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    if (gone != 1)
        return;
    sysview_drop(&k->views, s->view);
    s->view = NULL;
    if (journal_clear(&k->journal, sandbox_slot(k, s), &err) < 0) {
        log_line(LOG_ERROR, "sandbox=%s %s", s->info.id, err.msg);
        return;
    }
    sandbox_release(k, &s->layers, s);
    log_line(LOG_DEBUG, "gone sandbox=%s ms=%" PRIu64, s->info.id, io_now_ms() - s->stop_since_ms);
    sandbox_set_life(k, s, LIFE_GONE);
    ops_sandbox_gone(k, s);
    own_close(&s->listener);
    sandbox_reset(s);
}

/* The agent is small and never the kernel's first choice, but a sandbox that is full of small processes can
 * lose it to its own memory limit: whoever waits should hear that. */
static void unexpected_death(struct keeper *k, struct sandbox *s)
{
    struct keeper_stats stats = { 0 };
    char why[FILL_REASON_MAX];
    struct err ignored;

    if (fill_reason(&k->images, s->info.id, why)) {
        sandbox_stop(k, s, why);
        return;
    }
    sandbox_watch_fill(k, s); /* it may have died of what it lost */
    if (s->info.life == LIFE_STOPPING)
        return;
    if (cgroup_stats(&k->cgroups, s->made_as, &stats, &ignored) == 0 && stats.oom_kills > 0)
        (void) err_set(&s->failure, ERR_OOM, "sandbox '%s' ran out of memory", s->info.id);
    sandbox_stop(k, s, s->info.life == LIFE_STARTING ? "its first process died" : "agent died");
}

void sandbox_on_death(struct keeper *k, struct watch *watch)
{
    struct sandbox *s = container_of(watch, struct sandbox, pid);
    struct pollfd dead = { .fd = watch->fd, .events = POLLIN };

    /* A slot can be reused within one batch of events: ask again before believing it. */
    if (poll(&dead, 1, 0) != 1)
        return;
    if (s->control.fd >= 0 && !s->worker) /* a child that failed said why before it died */
        create_on_control(k, &s->control);
    /* Reaps where we are the parent; an adopted one is reaped by the host's init. */
    (void) waitid(P_PIDFD, (id_t) watch->fd, NULL, WEXITED | WNOHANG);
    if (s->info.life == LIFE_PAUSING) { /* what that means the worker will say */
        keeper_unwatch(k, &s->pid);
        return;
    }
    if (s->info.life != LIFE_STOPPING)
        unexpected_death(k, s);
    keeper_unwatch(k, &s->pid);
    if (s->info.life == LIFE_STOPPING) /* else when whoever works on it is gone */
        sandbox_clear(k, s);
}

void sandbox_fail(struct keeper *k, struct sandbox *s, const struct err *err)
{
    s->failure = *err;
    log_line(LOG_WARNING, "create failed sandbox=%s %s", s->info.id, err->msg);
    sandbox_stop(k, s, "create failed");
}

/* ---- living ---- */

void sandbox_back(struct keeper *k, struct sandbox *s)
{
    struct err err;

    sandbox_set_life(k, s, LIFE_RUNNING);
    s->image[0] = '\0';
    if (s->pid.fd < 0) {
        sandbox_stop(k, s, "agent died");
        return;
    }
    /* Whoever worked on it may have been killed before it could do this. */
    if (cgroup_freeze(&k->cgroups, s->made_as, s->was_frozen, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    else if (s->was_frozen)
        sandbox_set_life(k, s, LIFE_PAUSED);
    s->was_frozen = false; /* done, and so is what the journal said */
    if (sandbox_record(k, s, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    sandbox_watch_fill(k, s);
}

static void on_fill_end(struct keeper *k, struct watch *watch)
{
    struct sandbox *s = container_of(watch, struct sandbox, fill);
    struct pollfd ended = { .fd = watch->fd, .events = POLLIN };

    if (poll(&ended, 1, 0) != 1) /* a slot can be reused within one batch of events */
        return;
    sandbox_watch_fill(k, s);
}

/* Processes that go on with zeros in the place of their memory are worse than none: they are killed at once. */
void sandbox_watch_fill(struct keeper *k, struct sandbox *s)
{
    struct err err;
    bool lost;
    int pidfd;

    keeper_unwatch(k, &s->fill);
    pidfd = fill_watch(&k->images, s->info.id, &lost);
    if (lost) {
        log_line(LOG_ERROR, "lost sandbox=%s reason=\"" FILL_LOST "\"", s->info.id);
        (void) cgroup_kill(&k->cgroups, s->made_as);
        sandbox_stop(k, s, FILL_LOST);
        fill_forget(&k->images, s->info.id);
    } else if (pidfd >= 0 && keeper_watch(k, &s->fill, pidfd, on_fill_end, &err) < 0) {
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    }
}

/* Of one that died while no keeper ran. */
static const char *why_dead(struct keeper *k, const struct sandbox *s)
{
    bool lost = false;
    int helper = fill_watch(&k->images, s->info.id, &lost);

    own_close(&helper);
    if (!lost)
        return "died while no keeper ran";
    fill_forget(&k->images, s->info.id);
    return FILL_LOST;
}

int sandbox_pid_started(int pid, uint64_t *ret, struct err *err)
{
    char path[32], text[1024];
    const char *at;

    (void) snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) < 0)
        return err_sys(err, errno, "read %s", path);
    at = strrchr(text, ')'); /* the name may hold anything, also brackets and spaces */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, " %" SCNu64, ret) != 1)
        return err_set(err, ERR_INTERNAL, "%s makes no sense", path);
    return 0;
}

/* The kernel says whether it is frozen: an earlier keeper may have died between the deed and its record. Half
 * frozen is no state to leave a sandbox in. */
static void adopt_freeze(struct keeper *k, struct sandbox *s)
{
    struct err err;

    if (cgroup_freeze_done(&k->cgroups, s->made_as, true) == 1)
        sandbox_set_life(k, s, LIFE_PAUSED);
    else
        (void) cgroup_freeze(&k->cgroups, s->made_as, false, &err);
}

void sandbox_adopt(struct keeper *k, uint32_t slot, const struct journal_record *record, bool settled)
{
    struct sandbox *s = &k->sandboxes[slot];
    bool meant_to_live =
        record->sandbox.life == LIFE_RUNNING || record->sandbox.life == LIFE_PAUSED ||
        record->sandbox.life == LIFE_PAUSING;
    uint64_t started = 0;
    struct err err;
    int pidfd = -1;

    sandbox_reset(s);
    s->info = record->sandbox;
    memcpy(s->volumes, record->volumes, sizeof s->volumes);
    s->layers = record->layers;
    s->template_inode = record->template_inode;
    memcpy(s->hostname, record->hostname, sizeof s->hostname);
    memcpy(s->image, record->image, sizeof s->image);
    if (record->sandbox.flags & KEEPER_FLAG_LOADED)
        memcpy(s->origin, record->image, sizeof s->origin);
    s->pid_started = record->pid_started;
    s->filter_form = (enum filter_form) record->filter_form;
    memcpy(s->filter, record->filter, sizeof s->filter);
    s->doomed = record->doomed;
    s->kill_since_ms = s->doomed ? io_now_ms() : 0;
    s->build = record->build;
    memcpy(s->made_as, record->made_as, sizeof s->made_as);
    s->info.life = LIFE_GONE;
    /* RUNNING with its image still there: it may have been about to run, and no more. */
    if (record->sandbox.life == LIFE_RUNNING &&
        (images_have(&k->images, s->info.id) || image_retired(&k->images, s->info.id)))
        memcpy(s->image, s->info.id, sizeof s->image);
    else if (record->sandbox.life == LIFE_RUNNING)
        s->image[0] = '\0';
    if ((record->sandbox.life == LIFE_STARTING || record->sandbox.life == LIFE_RUNNING) &&
        s->image[0] && !settled) {
        sandbox_set_life(k, s, LIFE_STARTING);
        s->begun_us = io_now_us();
        s->unsettled = true; /* sandbox_tick settles it */
        return;
    }
    sandbox_set_life(k, s, LIFE_RUNNING);
    if (meant_to_live)
        pidfd = (int) syscall(__NR_pidfd_open, s->info.pid, 0);
    if (pidfd >= 0 &&
        (sandbox_pid_started(s->info.pid, &started, &err) < 0 || started != s->pid_started))
        own_close(&pidfd); /* the number belongs to another process by now */
    if (record->sandbox.life == LIFE_PAUSING) { /* dead or alive: sandbox_tick settles it */
        if (pidfd >= 0)
            (void) keeper_watch(k, &s->pid, pidfd, sandbox_on_death, &err);
        sandbox_set_life(k, s, LIFE_PAUSING);
        s->was_frozen = record->was_frozen;
        s->unsettled = true;
        return;
    }
    if (pidfd < 0 || keeper_watch(k, &s->pid, pidfd, sandbox_on_death, &err) < 0) {
        if (meant_to_live)
            log_line(LOG_WARNING, "lost sandbox=%s reason=\"%s\"", s->info.id, why_dead(k, s));
        sandbox_stop(k, s, meant_to_live ? "lost" : "was not finished");
        (void) cgroup_kill(&k->cgroups, s->made_as);
        return;
    }
    s->image[0] = '\0';
    sandbox_watch_fill(k, s);
    if (s->info.life == LIFE_STOPPING)
        return;
    /* A keeper that died may have been about to take back what it gave for a load. */
    if (cgroup_limit(&k->cgroups, s->made_as, &s->info.limits, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    adopt_freeze(k, s);
    if (s->info.flags & KEEPER_FLAG_TIED)
        s->tie_until_ms = io_now_ms() + TIE_GRACE_MS;
    if (s->doomed)
        sandbox_stop(k, s, "destroyed");
    else
        posture_adopt(k, s);
}

int sandbox_freeze(struct keeper *k, struct sandbox *s, bool frozen, struct err *err)
{
    if (s->info.life != LIFE_RUNNING && s->info.life != LIFE_PAUSED)
        return err_set(err, ERR_STATE, "sandbox '%s' is %s", s->info.id,
                       keeper_life_name(s->info.life));
    return cgroup_freeze(&k->cgroups, s->made_as, frozen, err);
}

void sandbox_frozen(struct keeper *k, struct sandbox *s, bool frozen)
{
    enum keeper_life life = frozen ? LIFE_PAUSED : LIFE_RUNNING;
    struct err err;

    if (s->info.life == life)
        return;
    sandbox_set_life(k, s, life);
    log_line(LOG_INFO, "%s sandbox=%s", life == LIFE_PAUSED ? "paused" : "resumed", s->info.id);
    if (sandbox_record(k, s, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
}

int sandbox_connect(struct keeper *k, const struct sandbox *s, int *ret_fd, struct err *err)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    auto_close int fd = -1;
    struct ucred peer;
    socklen_t len = sizeof peer;

    if (s->info.life != LIFE_RUNNING)
        return err_set(err, ERR_STATE, "sandbox '%s' is %s", s->info.id,
                       keeper_life_name(s->info.life));
    fd = net_socket_inside(&k->nets, s->pid.fd, SOCK_NONBLOCK, err);
    if (fd < 0)
        return -1;
    memcpy(to.sun_path + 1, BOOT_AGENT_SOCKET, sizeof BOOT_AGENT_SOCKET - 1);
    if (connect(fd, (const struct sockaddr *) &to,
                (socklen_t) (offsetof(struct sockaddr_un, sun_path) + sizeof BOOT_AGENT_SOCKET)) < 0)
        return errno == EAGAIN
                   ? err_set(err, ERR_TOO_MANY, "sandbox '%s' has too many connections waiting",
                             s->info.id)
                   : err_sys(err, errno, "connect to sandbox '%s'", s->info.id);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid != s->info.pid) {
        log_line(LOG_ERROR, "sandbox=%s its socket belongs to pid=%d, not to pid=%d", s->info.id,
                 (int) peer.pid, s->info.pid);
        return err_set(err, ERR_UNAVAILABLE, "sandbox '%s' does not answer", s->info.id);
    }
    if (fcntl(fd, F_SETFL, 0) < 0)
        return err_sys(err, errno, "make the connection block");
    *ret_fd = take_fd(&fd);
    return 0;
}

/* Whether a disk below its own counts for an image (images.charged), or for a sandbox before it. */
static bool counts_elsewhere(const struct keeper *k, const struct sandbox *s, uint64_t number)
{
    size_t images = k->images.count;

    for (size_t i = 0; i < IMAGES_MAX && images > 0; i++) {
        if (!k->images.entry[i].id[0])
            continue;
        if (has_layer(&k->images.entry[i].layers, number))
            return true;
        images--;
    }
    for (const struct sandbox *other = k->sandboxes; other < s; other++)
        if (other->info.life != LIFE_GONE && has_layer(&other->layers, number))
            return true;
    return false;
}

int sandbox_stats(struct keeper *k, const struct sandbox *s, struct keeper_stats *ret,
                  struct err *err)
{
    struct statfs disk;
    char path[32];

    memset(ret, 0, sizeof *ret);
    if (cgroup_stats(&k->cgroups, s->made_as, ret, err) < 0)
        return -1;
    /* The kernel's own link to the sandbox's root: no name inside is looked up. */
    (void) snprintf(path, sizeof path, "/proc/%d/root", s->info.pid);
    if (statfs(path, &disk) == 0) {
        ret->disk_bytes = (uint64_t) (disk.f_blocks - disk.f_bfree) * (uint64_t) disk.f_bsize;
        ret->disk_inodes = (uint64_t) (disk.f_files - disk.f_ffree);
    }
    for (uint32_t i = 1; i < s->layers.count; i++)
        if (!counts_elsewhere(k, s, s->layers.number[i]))
            ret->layer_bytes += disk_bytes(&k->disks, s->layers.number[i]);
    return 0;
}
