/* A sandbox's life: states, its end, adoption, and what is asked of one that runs. How it comes to
 * life is in create.c, how it is isolated is its driver's.
 *
 * Whatever fails on the way goes to STOPPING: there is one way to end, and it is the tested one.
 *
 *   sandbox_stop   journal, kill (kill.c)    STOPPING  waits for PID 1's death
 *   sandbox_clear  driver, journal, files    GONE      retried while the kernel holds on
 *
 * All else a sandbox has, mounts, network, loop device, is held by its processes alone. */
#include "keeper/sandbox.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "keeper/life.h"
#include "keeper/ops.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TO(s)        (1u << LIFE_##s)
#define TIE_GRACE_MS 10000

/* Of /proc/<pid>/stat, as proc(5) counts. */
#define STAT_FLAGS   9
#define STAT_STARTED 22
#define STAT_PENDING 31  /* signals */
#define FLAG_EXITING 0x4 /* PF_EXITING of the kernel's include/linux/sched.h */

/* Who may follow whom; in brackets, the only functions that make the move. */
static const unsigned next_life[LIFE_COUNT] = {
    [LIFE_NEW] = TO(STARTING) | TO(STOPPING),     /* [create.c, sandbox_stop] */
    [LIFE_STARTING] = TO(RUNNING) | TO(STOPPING), /* [create.c, sandbox_stop] */
    [LIFE_RUNNING] =
        TO(PAUSED) | TO(PAUSING) | TO(STOPPING), /* [sandbox_frozen, save.c, sandbox_stop] */
    [LIFE_PAUSING] = TO(RUNNING) | TO(STOPPING), /* [sandbox_back, sandbox_stop] */
    [LIFE_PAUSED] =
        TO(RUNNING) | TO(PAUSING) | TO(STOPPING), /* [sandbox_frozen, save.c, sandbox_stop] */
    [LIFE_STOPPING] = TO(GONE),                   /* [clear] */
    [LIFE_GONE] =
        TO(NEW) | TO(STARTING) | TO(RUNNING) | TO(STOPPING), /* [create.c, sandbox_adopt] */
};

static void note_alive(struct keeper *k, uint32_t slot, bool alive)
{
    uint64_t bit = 1ull << slot % 64;

    if (alive)
        k->alive[slot / 64] |= bit;
    else
        k->alive[slot / 64] &= ~bit;
}

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
    note_alive(k, sandbox_slot(k, s), life != LIFE_GONE);
    keeper_attend(k, s);
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
                                     .io_device = s->io_device,
                                     .template_disks = s->template_disks,
                                     .pid_started = s->pid_started,
                                     .build = s->build };

    memcpy(record.filter, s->filter, sizeof record.filter);
    memcpy(record.hostname, s->hostname, sizeof record.hostname);
    memcpy(record.volumes, s->volumes, sizeof record.volumes);
    memcpy(record.cgroup, s->cgroup, sizeof record.cgroup);
    memcpy(record.image, s->image[0] ? s->image : s->origin, sizeof record.image);
    return journal_write(&k->journal, s->info.slot, &record, err);
}

struct sandbox *sandbox_find(struct keeper *k, const char *id_or_name)
{
    struct sandbox *s;

    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));)
        if (strcmp(s->info.id, id_or_name) == 0 ||
            (s->info.name[0] && strcmp(s->info.name, id_or_name) == 0))
            return s;
    return NULL;
}

struct sandbox *sandbox_of_image(struct keeper *k, const char *image)
{
    struct sandbox *s;

    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));)
        if (strcmp(s->image, image) == 0)
            return s;
    return NULL;
}

bool sandbox_has_cgroup(const struct keeper *k, const char *name)
{
    const struct sandbox *s;

    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));)
        if (strcmp(s->cgroup, name) == 0)
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

void sandbox_rows(struct keeper *k, uint32_t count)
{
    for (; k->slot_count < count; k->slot_count++)
        sandbox_reset(&k->sandboxes[k->slot_count]);
}

/* ---- the end ---- */

/* The last end counts: a sandbox that ran out of memory while it was loaded may be loaded again, and end in another way. */
static void note_starved(struct keeper *k, const struct sandbox *s)
{
    for (size_t i = 0; i < STARVED_MAX; i++)
        if (strcmp(k->starved[i], s->info.id) == 0)
            k->starved[i][0] = '\0';
    if (s->failure.kind != ERR_OOM)
        return;
    memcpy(k->starved[k->starved_count++ % STARVED_MAX], s->info.id, sizeof s->info.id);
}

bool sandbox_starved(const struct keeper *k, const char *id)
{
    for (size_t i = 0; i < STARVED_MAX; i++)
        if (strcmp(k->starved[i], id) == 0)
            return true;
    return false;
}

/* Removes what is left once the processes are dead. Stays STOPPING while the kernel holds a part. */
void sandbox_clear(struct keeper *k, struct sandbox *s)
{
    struct err err;
    int gone = s->driver->remove(k, s, &err);

    if (gone < 0 && !s->remove_told) {
        s->remove_told = true; /* it is tried again, for as long as it takes */
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    }
    if (gone != 1)
        return;
    if (journal_clear(&k->journal, sandbox_slot(k, s), &err) < 0) {
        log_line(LOG_ERROR, "sandbox=%s %s", s->info.id, err.msg);
        return;
    }
    s->driver->release(k, s);
    log_line(LOG_DEBUG, "gone sandbox=%s ms=%" PRIu64, s->info.id, io_now_ms() - s->stop_since_ms);
    sandbox_set_life(k, s, LIFE_GONE);
    note_starved(k, s);
    ops_sandbox_gone(k, s);
    sandbox_reset(s);
}

/* For the log; who waits for it hears s->failure. */
static const char *why_died(const struct sandbox *s)
{
    if (s->failure.kind == ERR_OOM)
        return "ran out of memory";
    return s->info.life == LIFE_STARTING ? "its first process died" : "agent died";
}

void sandbox_on_death(struct keeper *k, struct watch *watch)
{
    struct sandbox *s = container_of(watch, struct sandbox, pid);
    struct pollfd dead = { .fd = watch->fd, .events = POLLIN };

    /* A slot can be reused within one batch of events: ask again before believing it. */
    if (poll(&dead, 1, 0) != 1)
        return;
    /* Reaps where we are the parent; an adopted one is reaped by the host's init. */
    (void) waitid(P_PIDFD, (id_t) watch->fd, NULL, WEXITED | WNOHANG);
    if (s->info.life == LIFE_PAUSING) { /* what that means the worker will say */
        keeper_unwatch(k, &s->pid);
        return;
    }
    if (s->info.life != LIFE_STOPPING)
        s->driver->died(k, s);
    if (s->info.life != LIFE_STOPPING)
        sandbox_stop(k, s, why_died(s));
    keeper_unwatch(k, &s->pid);
    if (s->info.life == LIFE_STOPPING) /* else when its worker is gone */
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
    /* Its worker may have been killed before it could do this. */
    if (s->driver->freeze(k, s, s->was_frozen, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    else if (s->was_frozen)
        sandbox_set_life(k, s, LIFE_PAUSED);
    s->was_frozen = false; /* done, and so is what the journal said */
    if (s->driver->resumed(k, s, &err) < 0) {
        log_line(LOG_ERROR, "sandbox=%s %s", s->info.id, err.msg);
        sandbox_stop(k, s, err.msg);
        return;
    }
    if (sandbox_record(k, s, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
}

static int pid_field(int pid, int wanted, uint64_t *ret, struct err *err)
{
    char path[32], text[1024];
    const char *at;

    (void) snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) < 0)
        return err_sys(err, errno, "read %s", path);
    at = strrchr(text, ')'); /* the name may hold anything, also brackets and spaces */
    for (int field = 2; at && field < wanted; field++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, " %" SCNu64, ret) != 1)
        return err_set(err, ERR_INTERNAL, "%s makes no sense", path);
    return 0;
}

int sandbox_pid_started(int pid, uint64_t *ret, struct err *err)
{
    return pid_field(pid, STAT_STARTED, ret, err);
}

bool sandbox_pid_dying(int pid)
{
    uint64_t flags = 0, pending = 0;
    struct err ignored;

    return pid_field(pid, STAT_FLAGS, &flags, &ignored) == 0 &&
           pid_field(pid, STAT_PENDING, &pending, &ignored) == 0 &&
           (flags & FLAG_EXITING || pending & 1u << (SIGKILL - 1));
}

static void take_record(struct sandbox *s, const struct journal_record *record)
{
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
    s->io_device = record->io_device;
    s->template_disks = record->template_disks;
    s->kill_since_ms = s->doomed ? io_now_ms() : 0;
    s->build = record->build;
    memcpy(s->cgroup, record->cgroup, sizeof s->cgroup);
    s->info.life = LIFE_GONE;
}

/* The process of a record; -1: it is dead, or the number belongs to another process by now. */
static int open_pid(const struct sandbox *s)
{
    auto_close int pidfd = (int) syscall(__NR_pidfd_open, s->info.pid, 0);
    uint64_t started = 0;
    struct err err;

    if (pidfd < 0 || sandbox_pid_started(s->info.pid, &started, &err) < 0 ||
        started != s->pid_started)
        return -1;
    return take_fd(&pidfd);
}

/* Of an isolation that this keeper has no driver for: it stays as confined as it is, under watch, until it is destroyed. */
static void adopt_unknown(struct keeper *k, struct sandbox *s)
{
    struct err err;
    int pidfd;

    log_line(LOG_ERROR,
             "not adopted sandbox=%s isolation=%u: this keeper has no driver for it; it is left as "
             "it is, and can "
             "only be destroyed",
             s->info.id, s->info.isolation);
    s->driver = driver_unknown();
    sandbox_set_life(k, s, LIFE_RUNNING);
    pidfd = open_pid(s);
    if (pidfd < 0 || keeper_watch(k, &s->pid, pidfd, sandbox_on_death, &err) < 0 || s->doomed)
        sandbox_stop(k, s, s->doomed ? "destroyed" : "lost");
    else if (s->info.flags & KEEPER_FLAG_POOLED) /* no create of this keeper can take it */
        sandbox_stop(k, s, "it was made ahead, with another isolation than there is");
}

/* Known by the image: it may have been about to run, and no more. */
static bool was_loading(struct keeper *k, struct sandbox *s, const struct journal_record *record)
{
    if (record->sandbox.life == LIFE_RUNNING && host_has_image_or_retired(k, s->info.id))
        memcpy(s->image, s->info.id, sizeof s->image);
    else if (record->sandbox.life == LIFE_RUNNING)
        s->image[0] = '\0';
    return (record->sandbox.life == LIFE_STARTING || record->sandbox.life == LIFE_RUNNING) &&
           s->image[0];
}

void sandbox_adopt(struct keeper *k, uint32_t slot, const struct journal_record *record,
                   bool settled)
{
    struct sandbox *s = &k->sandboxes[slot];
    bool meant_to_live = record->sandbox.life == LIFE_RUNNING ||
                         record->sandbox.life == LIFE_PAUSED ||
                         record->sandbox.life == LIFE_PAUSING;
    struct err err;
    int pidfd;

    take_record(s, record);
    s->driver = driver_find(s->info.isolation, &err);
    if (!s->driver) {
        adopt_unknown(k, s);
        return;
    }
    if (was_loading(k, s, record) && !settled) {
        sandbox_set_life(k, s, LIFE_STARTING);
        s->begun_us = io_now_us();
        s->unsettled = true; /* sandbox_tick settles it */
        return;
    }
    sandbox_set_life(k, s, LIFE_RUNNING);
    pidfd = meant_to_live ? open_pid(s) : -1;
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
            log_line(LOG_WARNING, "lost sandbox=%s reason=\"%s\"", s->info.id,
                     s->driver->why_lost(k, s));
        sandbox_stop(k, s, meant_to_live ? "lost" : "was not finished");
        return;
    }
    s->image[0] = '\0';
    if (s->info.flags & KEEPER_FLAG_TIED)
        s->tie_until_ms = io_now_ms() + TIE_GRACE_MS;
    s->driver->adopt(k, s);
    if (s->doomed)
        sandbox_stop(k, s, "destroyed");
}

int sandbox_freeze(struct keeper *k, struct sandbox *s, bool frozen, struct err *err)
{
    struct err ignored;

    if (s->info.life != LIFE_RUNNING && s->info.life != LIFE_PAUSED)
        return err_set(err, ERR_STATE, "sandbox '%s' is %s", s->info.id,
                       keeper_life_name(s->info.life));
    if (!s->driver->freeze)
        return driver_lacks(s->driver, "freeze", err);
    if (s->driver->freeze(k, s, frozen, err) == 0)
        return 0;
    if (frozen) /* half frozen is no state to leave a sandbox in */
        (void) s->driver->freeze(k, s, false, &ignored);
    return -1;
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
    if (s->info.life != LIFE_RUNNING)
        return err_set(err, ERR_STATE, "sandbox '%s' is %s", s->info.id,
                       keeper_life_name(s->info.life));
    if (s->driver->connect(k, s, ret_fd, err) < 0)
        return -1;
    return *ret_fd >= 0 ? 0
                        : err_set(err, ERR_UNAVAILABLE, "sandbox '%s' does not answer", s->info.id);
}

int sandbox_stats(struct keeper *k, struct sandbox *s, bool brief, struct keeper_stats *ret,
                  struct err *err)
{
    memset(ret, 0, sizeof *ret);
    return s->driver->stats(k, s, brief, ret, err);
}
