#include "driver/jail/spare.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "keeper/create.h"
#include "keeper/life.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define NAME "spare-" /* no id begins like that */

#define QUIET_MS 3    /* without an event: a client that has its sandbox asks for more at once */
#define AGAIN_MS 1000 /* after a failure */
#define CLEAR_MS 2    /* until the next look at one that ends … */
#define STUCK_MS 200  /* … and has not for so long: then AGAIN_MS */
#define CLOSE_MS 1000

bool spare_is_name(const char *name)
{
    return strncmp(name, NAME, sizeof NAME - 1) == 0;
}

static bool is_dead(const struct spare *spare)
{
    struct pollfd p = { .fd = spare->pidfd, .events = POLLIN };

    return poll(&p, 1, 0) == 1;
}

static void forget(struct keeper *k)
{
    struct spare *spare = &k->host->spare;

    own_close(&spare->pidfd);
    own_close(&spare->control);
    own_close(&spare->ready);
    low_fds_free(&k->host->low_fds, spare->low_fds);
    spare->low_fds = 0;
    spare->pid = 0;
    spare->state = SPARE_NONE;
}

static void end(struct spare *spare)
{
    if (spare->pid > 0) /* not waited for yet, so the number is its own */
        (void) kill(spare->pid, SIGKILL);
    spare->state = SPARE_ENDING;
    spare->ending_ms = io_now_ms();
}

/* Of one that ends: whether all of it is gone. */
static bool clear(struct keeper *k)
{
    struct spare *spare = &k->host->spare;
    struct err err;

    if (spare->pid > 0 && waitpid(spare->pid, NULL, WNOHANG) == 0)
        return false;
    spare->pid = 0;
    if (cgroup_remove(&k->host->cgroups, spare->name, &err) == 0)
        return false;
    forget(k);
    return true;
}

static int make(struct keeper *k, uint32_t slot, struct err *err)
{
    struct spare *spare = &k->host->spare;
    struct launch_lines lines = LAUNCH_NO_LINES;
    struct launch_kind kind = { .uid_base = host_uid_base(k, slot), .with_usr = spare->wanted_usr };
    struct cgroup_entry entry = { .v2_fd = -1 };

    (void) snprintf(spare->name, sizeof spare->name, NAME "%" PRIx64,
                    io_now_us()); /* never again until the next boot */
    if (cgroup_make(&k->host->cgroups, spare->name, err) < 0)
        return -1;
    spare->slot = slot;
    spare->with_usr = kind.with_usr;
    end(spare); /* until all of it is there */
    kind.low_fds = spare->low_fds = low_fds_take(&k->host->low_fds);
    if (cgroup_entry_open(&k->host->cgroups, spare->name, &entry, err) < 0)
        return -1;
    if (launch_child(k, &kind, &entry, &lines, err) == 0) {
        spare->pid = lines.pid;
        spare->pidfd = lines.pidfd;
        spare->control = lines.control;
        spare->ready = lines.ready;
        if (launch_write_maps(spare->pid, kind.uid_base, err) == 0)
            spare->state = SPARE_READY;
        else
            end(spare);
    }
    cgroup_entry_close(&entry);
    return spare->state == SPARE_READY ? 0 : -1;
}

bool spare_take(struct keeper *k, struct sandbox *s, bool usable, bool with_usr,
                struct launch_lines *ret)
{
    struct spare *spare = &k->host->spare;
    struct err err;

    spare->wanted = usable && !spare->off;
    if (spare->state == SPARE_READY && spare->slot == s->info.slot &&
        (!usable || spare->with_usr != with_usr || is_dead(spare)))
        end(spare);
    if (usable)
        spare->wanted_usr = with_usr;
    if (spare->state != SPARE_READY || spare->slot != s->info.slot)
        return false;
    if (keeper_watch(k, &s->pid, take_fd(&spare->pidfd), sandbox_on_death, &err) < 0) {
        end(spare);
        return false;
    }
    s->info.pid = (int32_t) spare->pid;
    memcpy(s->cgroup, spare->name, sizeof s->cgroup);
    s->low_fds = spare->low_fds;
    spare->low_fds = 0;
    spare->failed = false;
    *ret = (struct launch_lines){ .pidfd = -1,
                                  .control = take_fd(&spare->control),
                                  .ready = take_fd(&spare->ready),
                                  .pid = spare->pid,
                                  .mapped = true };
    forget(k);
    return true;
}

static int quiet_in(const struct keeper *k, uint64_t now)
{
    uint64_t since = now - k->busy_ms;

    return since >= QUIET_MS ? 0 : (int) (QUIET_MS - since);
}

/* For the next create, if it is one like the last. */
static bool is_fit(const struct spare *spare, uint32_t slot)
{
    return spare->state == SPARE_READY && spare->slot == slot &&
           spare->with_usr == spare->wanted_usr && !is_dead(spare);
}

/* What a child that failed said before it died. */
static const char *why_dead(const struct spare *spare, struct err *said)
{
    if (recv(spare->control, said, sizeof *said, MSG_DONTWAIT) != (ssize_t) sizeof *said)
        return "it died";
    said->msg[sizeof said->msg - 1] = '\0';
    return said->msg;
}

/* The next try is later. Told once, until one was of use. */
static void put_off(struct spare *spare, uint64_t now, const char *why)
{
    if (!spare->failed)
        log_line(LOG_WARNING, "no child can be made ahead: %s", why);
    spare->failed = true;
    spare->again_ms = now + AGAIN_MS;
}

int spare_tick(struct keeper *k)
{
    struct spare *spare = &k->host->spare;
    uint64_t now = io_now_ms();
    struct err err;
    uint32_t slot;

    if (spare->state == SPARE_ENDING && !clear(k))
        return now < spare->ending_ms + STUCK_MS ? CLEAR_MS : AGAIN_MS;
    if (!spare->wanted || k->starting || k->quit)
        return -1;
    if (quiet_in(k, now) > 0)
        return quiet_in(k, now);
    if (!create_next_slot(k, &slot) || is_fit(spare, slot))
        return -1;
    if (spare->state == SPARE_READY) {
        if (is_dead(spare))
            put_off(spare, now, why_dead(spare, &err));
        end(spare);
        return CLEAR_MS;
    }
    if (now < spare->again_ms)
        return (int) (spare->again_ms - now);
    if (make(k, slot, &err) == 0)
        return -1;
    put_off(spare, now, err.msg);
    return spare->state == SPARE_ENDING ? CLEAR_MS : AGAIN_MS;
}

void spare_close(struct keeper *k)
{
    const struct timespec moment = { .tv_nsec = 1000000 };
    uint64_t until = io_now_ms() + CLOSE_MS;

    if (k->host->spare.state == SPARE_READY)
        end(&k->host->spare);
    while (k->host->spare.state == SPARE_ENDING && !clear(k) && io_now_ms() < until)
        (void) nanosleep(&moment, NULL);
}
