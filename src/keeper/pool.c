/* Taking one is: the host name, its processes if they stand still, then the record, then the answer. A keeper that is killed between the first two
 * leaves it in the pool, where the next who takes it gives it another name; killed behind the second, it leaves
 * a sandbox under the create's id, exactly as a create that was made from nothing does. There is one loop
 * and no waiting in between: two creates cannot get the same one. */
#include "keeper/pool.h"

#include "base/io.h"
#include "base/log.h"
#include "keeper/create.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"

#include <inttypes.h>
#include <string.h>

#define ALONE_MS                                                                                   \
    60000 /* the list was not asked for: the server that made them is not coming back */
#define TICK_MS    5000
#define SLOTS_KEPT 16 /* places that the pool leaves for those who ask for one */

void pool_open(struct keeper *k)
{
    k->pool_heard_ms = io_now_ms();
}

static bool waits(const struct sandbox *s)
{
    return (s->info.flags & KEEPER_FLAG_POOLED) &&
           (s->info.life == LIFE_RUNNING || s->info.life == LIFE_PAUSED);
}

static bool fits(const struct sandbox *s, const struct keeper_request *r, uint64_t build)
{
    return waits(s) && s->build == build && s->info.isolation == r->isolation &&
           strcmp(s->info.template, r->template) == 0 && strcmp(s->origin, r->image) == 0 &&
           !((s->info.flags ^ r->flags) & (KEEPER_FLAG_ROOT | KEEPER_FLAG_ONCE)) &&
           memcmp(&s->info.limits, &r->limits, sizeof r->limits) == 0;
}

/* What is mounted at the start cannot be had later. */
static bool wants_volumes(const struct keeper_request *r)
{
    for (size_t i = 0; i < VOLUMES_MAX; i++)
        if (r->volumes[i].volume[0])
            return true;
    return false;
}

void pool_made(struct keeper *k, struct sandbox *s)
{
    struct err err;

    if (!(s->info.flags & KEEPER_FLAG_POOLED) || !s->origin[0])
        return;
    if (s->driver->freeze(k, s, true, &err) < 0)
        log_line(LOG_WARNING, "pool sandbox=%s keeps running: %s", s->info.id, err.msg);
    else
        sandbox_frozen(k, s, true); /* or soon: no caller can look */
}

static int thaw(struct keeper *k, struct sandbox *s, struct err *err)
{
    if (!s->origin[0])
        return 0;
    if (s->driver->freeze(k, s, false, err) < 0)
        return -1;
    if (s->info.life == LIFE_PAUSED)
        sandbox_set_life(k, s, LIFE_RUNNING);
    return 0;
}

static int give(struct keeper *k, struct sandbox *s, const struct keeper_request *r, int connection,
                struct err *err)
{
    const struct keeper_sandbox before = s->info;

    create_name(s, r, connection);
    s->info.flags |= before.flags & KEEPER_FLAG_ROUTED;
    if (s->driver->rename(k, s, s->hostname, err) == 0 && thaw(k, s, err) == 0 &&
        sandbox_record(k, s, err) == 0) {
        k->pooled--;
        s->origin[0] = '\0';
        return 0;
    }
    s->info = before;
    s->tied_to = -1;
    return -1;
}

struct sandbox *pool_take(struct keeper *k, const struct keeper_request *r, uint64_t build,
                          int connection)
{
    uint64_t begun = io_now_us();
    char made_as[KEEPER_NAME_MAX]; /* its id until now */
    struct sandbox *s;
    struct err err;

    if (wants_volumes(r))
        return NULL;
    for (uint32_t at = 0; k->pooled > 0 && (s = keeper_next_alive(k, &at));) {
        if (!fits(s, r, build))
            continue;
        memcpy(made_as, s->info.id, sizeof made_as);
        if (give(k, s, r, connection, &err) < 0) {
            log_line(LOG_WARNING, "pool sandbox=%s not given: %s", s->info.id, err.msg);
            sandbox_stop(k, s, "could not be given");
            continue;
        }
        log_line(LOG_INFO,
                 "taken sandbox=%s name=%s template=%s pid=%d made_as=%s cgroup=%s us=%" PRIu64,
                 s->info.id, s->info.name[0] ? s->info.name : "-", s->info.template, s->info.pid,
                 made_as, s->cgroup, io_now_us() - begun);
        return s;
    }
    return NULL;
}

static void end_if_stale(struct keeper *k, struct sandbox *s)
{
    const char *why = s->driver->stale ? s->driver->stale(k, s) : NULL;

    if (why)
        sandbox_stop(k, s, why);
}

void pool_heard(struct keeper *k)
{
    struct sandbox *s;

    k->pool_heard_ms = io_now_ms();
    for (uint32_t at = 0; k->pooled > 0 && (s = keeper_next_alive(k, &at));)
        if (waits(s))
            end_if_stale(k, s);
}

void pool_clear(struct keeper *k, const char *reason)
{
    struct sandbox *s;

    for (uint32_t at = 0; k->pooled > 0 && (s = keeper_next_alive(k, &at));)
        if (s->info.flags & KEEPER_FLAG_POOLED)
            sandbox_stop(k, s, reason);
}

void pool_make_room(struct keeper *k)
{
    if (k->pooled > 0 && k->sandbox_count + SLOTS_KEPT > k->slot_limit)
        pool_clear(k, "others need its place");
}

int pool_tick(struct keeper *k)
{
    if (k->pooled == 0)
        return -1;
    if (io_now_ms() - k->pool_heard_ms > ALONE_MS)
        pool_clear(k, "the pool has not been used");
    return TICK_MS;
}
