/* What happens by time alone. The loop comes by after every event, so that a sandbox with nothing to wait for must cost nothing:
 * a look at every sandbox and every connection takes longer than to serve a request. */
#include "base/io.h"
#include "base/log.h"
#include "keeper/kill.h"
#include "keeper/life.h"
#include "keeper/ops.h"
#include "keeper/ops_table.h"
#include "keeper/sandbox.h"

#include <stdio.h>

#define STUCK_MS  2000
#define SETTLE_MS 20
#define START_MS  30000u /* a bound on hanging, not on being slow */
#ifndef WORKER_MS        /* a keeper for tests is less patient */
#define WORKER_MS                                                                                  \
    600000 /* likewise, of a saver or loader: what it waits for has limits of its own (talk.c, criu.c) */
#endif

/* Of two waits in milliseconds; -1 is for ever. */
static int shorter(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Whatever a create waits for, a disk, a mount, an agent, may never come. */
static void check_start(struct keeper *k, struct sandbox *s, uint64_t now)
{
    uint32_t patience = s->driver && s->driver->start_ms ? s->driver->start_ms : START_MS;
    struct err err;

    /* criu has its own patience, and a merge is as long as what is merged is large. */
    if (now < s->begun_us / 1000u + patience || s->worker || s->unsettled || s->merging)
        return;
    err_set(&err, ERR_TIMEOUT, "sandbox '%s' did not start within %u s", s->info.id,
            patience / 1000);
    sandbox_fail(k, s, &err);
}

/* It is unknown what a saver that hangs, or its criu, has done to the processes: they do not continue. Of a load, the image is as it was. */
static void check_worker(struct keeper *k, struct sandbox *s, uint64_t now)
{
    char reason[80];

    if (!s->worker || s->doomed || now < s->worker_since_ms + WORKER_MS)
        return;
    (void) snprintf(reason, sizeof reason, "its saver or loader did not end within %d s",
                    WORKER_MS / 1000);
    if (s->info.life == LIFE_PAUSING) {
        sandbox_stop(k, s, reason);
        return;
    }
    log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, reason);
    kill_workers(k, s);
    if (s->info.life == LIFE_STARTING)
        kill_box(k, s);
}

/* Neither image nor processes say what it is: it does not continue. */
static void give_up(struct keeper *k, struct sandbox *s)
{
    log_line(LOG_ERROR, "sandbox=%s it is not known what became of it", s->info.id);
    s->unsettled = false;
    sandbox_stop(k, s, "it is not known what became of it");
}

static bool is_undecided(const struct sandbox *s)
{
    return (s->info.life == LIFE_PAUSING || s->info.life == LIFE_STARTING) && !s->worker &&
           !s->unsettled && !s->doomed;
}

static bool settle(struct keeper *k, struct sandbox *s, uint64_t now)
{
    if (!s->unsettled_since_ms)
        s->unsettled_since_ms = now;
    s->unsettled = false;
    if (!s->driver->settle(k, s)) {
        s->unsettled = true;
        if (now < s->unsettled_since_ms + WORKER_MS)
            return false;
        kill_workers(k, s);
        give_up(k, s);
        return true;
    }
    s->unsettled_since_ms = 0;
    if (is_undecided(s))
        give_up(k, s);
    else if (s->doomed)
        sandbox_stop(k, s, "destroyed");
    return !s->unsettled;
}

/* Only events will change it, and each goes by a change of some life. */
static bool is_calm(const struct sandbox *s)
{
    return (s->info.life == LIFE_GONE || s->info.life == LIFE_RUNNING ||
            s->info.life == LIFE_PAUSED) &&
           !s->tie_until_ms && !s->unsettled && !s->worker;
}

int sandbox_tick(struct keeper *k)
{
    uint64_t now = io_now_ms();
    int wait = k->starting ? 1000 : -1;
    struct sandbox *s;
    bool busy = false;

    if (k->calm)
        return -1;
    k->calm = true; /* until a life changes, now or later */
    for (uint32_t at = 0; (s = keeper_next_attended(k, &at));) {
        k->attended[(at - 1) / 64] &= ~(1ull << (at - 1) % 64);
        if (s->tie_until_ms && now >= s->tie_until_ms) {
            s->tie_until_ms = 0;
            sandbox_stop(k, s, "its owner did not come back");
        }
        if (s->worker) {
            check_worker(k, s, now);
            wait = shorter(wait, 1000);
        }
        if (s->doomed && (s->worker || s->unsettled))
            wait = shorter(wait, kill_tick(k, s, now));
        /* Of an earlier keeper's, which may be at work still. */
        if (s->unsettled && !settle(k, s, now))
            wait = shorter(wait, SETTLE_MS);
        busy = busy || s->unsettled || s->info.life == LIFE_PAUSING;
        if (s->info.life == LIFE_NEW || s->info.life == LIFE_STARTING)
            check_start(k, s, now);
        if (s->tie_until_ms)
            wait = shorter(wait, 1000);
        if (!is_calm(s))
            keeper_attend(k, s);
        if (s->info.life != LIFE_STOPPING)
            continue;
        if (s->pid.fd >= 0) { /* sandbox_on_death clears what has a process */
            wait = shorter(wait, kill_tick(k, s, now));
            continue;
        }
        sandbox_clear(k, s);
        if (s->info.life == LIFE_STOPPING)
            wait = shorter(wait, now - s->stop_since_ms > STUCK_MS ? 100 : 1);
    }
    if (k->sweep && !busy) {
        k->sweep = false;
        host_sweep(k);
    }
    k->calm = k->calm && !k->sweep;
    return wait;
}

/* Version 1's freezer may stay FREEZING for good when a process forks or is woken at the wrong moment. A thaw in between gets it
 * out of that. */
static void freeze_again(struct keeper *k, struct connection *c, struct sandbox *s)
{
    struct err err;

    c->again_ms = io_now_ms() + FREEZE_AGAIN_MS;
    if (s->driver->freeze(k, s, false, &err) < 0 || s->driver->freeze(k, s, true, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
}

int ops_tick(struct keeper *k)
{
    int wait = -1;

    if (!k->freezing)
        return -1;
    k->freezing = false;
    for (int i = 0; i < k->connection_count; i++) {
        struct connection *c = &k->connections[i];
        struct sandbox *s = &k->sandboxes[c->slot];
        bool frozen = c->op == KEEPER_FREEZE;
        struct err err;

        if (c->watch.fd < 0 || !c->pending || (c->op != KEEPER_FREEZE && c->op != KEEPER_THAW))
            continue;
        if (!ops_waits_for(c, s) || s->info.life == LIFE_STOPPING)
            continue; /* ops_sandbox_gone answers */
        if (s->driver->frozen(k, s, frozen) == 1) {
            sandbox_frozen(k, s, frozen);
            ops_answer_pending(k, i, s, NULL);
        } else if (io_now_ms() > c->deadline_ms) {
            /* Half frozen is no state to leave a sandbox in. */
            (void) s->driver->freeze(k, s, false, &err);
            err_set(&err, ERR_TIMEOUT, "sandbox '%s' did not %s in time", s->info.id,
                    frozen ? "freeze" : "thaw");
            ops_answer_pending(k, i, s, &err);
        } else if (frozen && io_now_ms() > c->again_ms) {
            freeze_again(k, c, s);
            wait = 0;
        } else if (wait != 0) { /* those who can stand still at once do so within 3 ms */
            wait = c->deadline_ms - io_now_ms() > FREEZE_MS - 3 ? 0 : 1;
        }
        k->freezing = k->freezing || c->pending;
    }
    return wait;
}
