/* The keeper's half of a create: who may be made, under which name, in which slot. The rest is the driver's.
 *
 *   create_begin     checks, slot, name      NEW       the driver makes it: disks, processes
 *                    (driver->create)        STARTING
 *   create_running   journal                 RUNNING   told to who waits
 *
 * A failure anywhere is sandbox_fail: the sandbox is stopped, and its caller told when it is gone. */
#include "keeper/create.h"

#include "base/io.h"
#include "base/log.h"
#include "keeper/life.h"
#include "keeper/ops.h"
#include "keeper/pool.h"
#include "keeper/sandbox.h"
#include "keeper/volume.h"

#include <inttypes.h>
#include <string.h>
#include <sys/statfs.h>
#include <time.h>

void create_begin_step(struct sandbox *s, enum create_step step)
{
    /* A step's field holds its beginning until create_end_step; microseconds of a create fit 32 bits. */
    s->step_us[step] = (uint32_t) (io_now_us() - s->begun_us);
}

void create_end_step(struct sandbox *s, enum create_step step)
{
    s->step_us[step] = (uint32_t) (io_now_us() - s->begun_us) - s->step_us[step];
}

void create_running(struct keeper *k, struct sandbox *s)
{
    struct err err;

    if (s->pid.fd < 0 || s->info.pid <= 0 || !s->pid_started) { /* its death could not be seen */
        err_set(&err, ERR_INTERNAL, "isolation '%s' started no process",
                isolation_name(s->info.isolation));
        sandbox_fail(k, s, &err);
        return;
    }
    sandbox_set_life(k, s, LIFE_RUNNING);
    if (sandbox_record(k, s, &err) < 0) {
        sandbox_fail(k, s, &err);
        return;
    }
    log_line(LOG_DEBUG,
             "create id=%s us_total=%" PRIu64
             " us_disk=%u us_prepare=%u us_clone=%u us_root=%u us_child=%u",
             s->info.id, io_now_us() - s->begun_us, s->step_us[STEP_DISK], s->step_us[STEP_PREPARE],
             s->step_us[STEP_CLONE], s->step_us[STEP_ROOT], s->step_us[STEP_CHILD]);
    log_line(LOG_INFO,
             "running sandbox=%s name=%s template=%s pid=%d ids=%u isolation=%s profile=%s disk=%s "
             "cgroup=%s",
             s->info.id, s->info.name[0] ? s->info.name : "-", s->info.template, s->info.pid,
             s->info.uid_base, isolation_name(s->info.isolation),
             s->info.flags & KEEPER_FLAG_ROOT ? "root" : "strict",
             keeper_disk_name(s->info.disk_kind), s->cgroup);
    pool_made(k, s);
    ops_sandbox_started(k, s);
}

/* Of slots whose ids this instance has. */
static uint32_t slots_here(const struct keeper *k)
{
    uint32_t have = host_slots(k);

    return have < k->slot_limit ? have : k->slot_limit;
}

/* Round robin: an id range rests as long as can be before another sandbox gets it. */
bool create_next_slot(const struct keeper *k, uint32_t *ret)
{
    uint32_t limit = slots_here(k);

    for (uint32_t i = 0; i < limit; i++) {
        *ret = (k->slot_next + i) % limit;
        if (k->sandboxes[*ret].info.life == LIFE_GONE)
            return true;
    }
    return false;
}

static struct sandbox *find_free_slot(struct keeper *k)
{
    uint32_t slot;

    if (!create_next_slot(k, &slot))
        return NULL;
    k->slot_next = (slot + 1) % slots_here(k);
    return &k->sandboxes[slot];
}

static struct sandbox *free_slot(struct keeper *k, struct err *err)
{
    struct sandbox *s = find_free_slot(k);
    uint32_t had = slots_here(k);
    struct err why;

    if (s)
        return s;
    if (had == k->slot_limit) {
        err_set(err, ERR_NO_IDS, "all %u ranges of user ids are in use", had);
        return NULL;
    }
    if (host_grow_slots(k, &why) < 0) {
        err_set(err, ERR_NO_IDS, "all %u ranges of user ids are in use: %s", had, why.msg);
        return NULL;
    }
    sandbox_rows(k, host_slots(k));
    k->slot_next = had;
    return find_free_slot(k);
}

/* Those in the pool count for the pool alone. */
static int check_count(const struct keeper *k, const struct keeper_request *r, struct err *err)
{
    uint32_t count =
        r->flags & KEEPER_FLAG_POOLED ? k->sandbox_count : k->sandbox_count - k->pooled;

    return count >= k->sandboxes_max
               ? err_set(err, ERR_TOO_MANY, "the limit of %u sandboxes is reached", count)
               : 0;
}

/* A sandbox that is paused to disk keeps its id. */
static int check_id(const struct keeper *k, const struct keeper_request *r, struct err *err)
{
    if (host_has_image(k, r->sandbox))
        return err_set(err, ERR_NAME_TAKEN, "there is an image '%s' already", r->sandbox);
    return 0;
}

static int check_names(struct keeper *k, const struct keeper_request *r, struct err *err)
{
    if (sandbox_find(k, r->sandbox) || sandbox_has_cgroup(k, r->sandbox))
        return err_set(err, ERR_NAME_TAKEN, "there is a sandbox '%s' already", r->sandbox);
    if (r->name[0] && sandbox_find(k, r->name))
        return err_set(err, ERR_NAME_TAKEN, "the name '%s' is in use", r->name);
    return check_count(k, r, err);
}

static int check_disk(struct keeper *k, const struct keeper_request *r, struct err *err)
{
    struct statfs state;

    if (volumes_check(k, r->sandbox, r->volumes, err) < 0)
        return -1;
    if (fstatfs(k->state_fd, &state) == 0 &&
        r->limits.disk_bytes > (uint64_t) state.f_blocks * (uint64_t) state.f_bsize)
        return err_set(err, ERR_LIMIT_HOST, "limit 'disk': more than the host's disk has");
    return host_check_room(k, 0, err);
}

int create_check(struct keeper *k, const struct driver *driver, const struct keeper_request *r,
                 bool same, uint64_t *ret_build, struct err *err)
{
    if (!same && check_id(k, r, err) < 0)
        return -1;
    if (limits_check(&r->limits, k->host_memory, k->host_cpu_milli, err) < 0 ||
        check_names(k, r, err) < 0 || driver->check(k, r, ret_build, err) < 0)
        return -1;
    return check_disk(k, r, err);
}

static uint64_t real_time_ms(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t) now.tv_sec * 1000u + (uint64_t) now.tv_nsec / 1000000u;
}

void create_name(struct sandbox *s, const struct keeper_request *r, int connection)
{
    memcpy(s->info.id, r->sandbox, sizeof s->info.id);
    memcpy(s->info.name, r->name, sizeof s->info.name);
    memcpy(s->hostname,
           r->hostname[0] ? r->hostname
           : r->name[0]   ? r->name
                          : r->sandbox,
           sizeof s->hostname);
    memcpy(s->volumes, r->volumes, sizeof s->volumes);
    s->info.flags = r->flags & ~KEEPER_FLAG_DEFAULT;
    s->info.created_ms = real_time_ms();
    if (r->flags & KEEPER_FLAG_TIED)
        s->tied_to = connection;
}

static void fill(struct keeper *k, struct sandbox *s, const struct driver *driver,
                 const struct keeper_request *r, int connection)
{
    sandbox_reset(s);
    create_name(s, r, connection);
    s->driver = driver;
    s->info.flags &= ~KEEPER_FLAG_TAKE; /* it was not */
    memcpy(s->cgroup, r->sandbox, sizeof s->cgroup);
    memcpy(s->info.template, r->template, sizeof s->info.template);
    s->info.limits = r->limits;
    s->info.isolation = (uint16_t) r->isolation;
    s->info.slot = sandbox_slot(k, s);
    s->info.uid_base = host_uid_base(k, s->info.slot);
    s->begun_us = io_now_us();
}

struct sandbox *create_slot(struct keeper *k, const struct driver *driver,
                            const struct keeper_request *r, int connection, struct err *err)
{
    struct sandbox *s;

    pool_make_room(k);
    s = free_slot(k, err);
    if (!s)
        return NULL;
    fill(k, s, driver, r, connection);
    sandbox_set_life(k, s, LIFE_NEW);
    create_begin_step(s, STEP_DISK);
    return s;
}

int create_begin(struct keeper *k, const struct keeper_request *r, int connection,
                 struct sandbox **ret, struct err *err)
{
    const struct driver *driver = driver_find(r->isolation, err);
    uint64_t build = 0;
    struct sandbox *s;

    if (!driver)
        return -1;
    if (r->flags & KEEPER_FLAG_POOLED && !driver->rename)
        return driver_lacks(driver, "make sandboxes ahead", err);
    if (r->flags & KEEPER_FLAG_DEFAULT && strcmp(r->template, host_default_template(k)) != 0)
        return err_set(err, ERR_NO_TEMPLATE, "template '%s' is not the default", r->template);
    if (create_check(k, driver, r, false, &build, err) < 0)
        return -1;
    s = r->flags & KEEPER_FLAG_TAKE ? pool_take(k, r, build, connection) : NULL;
    if (s) {
        *ret = s;
        return 0;
    }
    s = create_slot(k, driver, r, connection, err);
    if (!s)
        return -1;
    *ret = s;
    driver->create(k, s);
    return 0;
}
