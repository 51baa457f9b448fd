#include "driver/jail/memory.h"

#include "base/log.h"
#include "base/own.h"
#include "image/fill.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"

#include <poll.h>

static void on_fill_end(struct keeper *k, struct watch *watch)
{
    struct sandbox *s = container_of(watch, struct sandbox, fill);
    struct pollfd ended = { .fd = watch->fd, .events = POLLIN };

    if (poll(&ended, 1, 0) != 1) /* a slot can be reused within one batch of events */
        return;
    memory_watch(k, s);
}

/* Processes that continue with zeros in the place of their memory are worse than none: they are killed at once. */
void memory_watch(struct keeper *k, struct sandbox *s)
{
    struct err err;
    bool lost;
    int pidfd;

    keeper_unwatch(k, &s->fill);
    pidfd = fill_watch(&k->host->images, s->info.id, &lost);
    if (lost) {
        log_line(LOG_ERROR, "lost sandbox=%s reason=\"" FILL_LOST "\"", s->info.id);
        (void) cgroup_kill(&k->host->cgroups, s->cgroup);
        sandbox_stop(k, s, FILL_LOST);
        fill_forget(&k->host->images, s->info.id);
    } else if (pidfd >= 0 && keeper_watch(k, &s->fill, pidfd, on_fill_end, &err) < 0) {
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    }
}

bool memory_lost(struct keeper *k, struct sandbox *s)
{
    char why[FILL_REASON_MAX];

    if (fill_reason(&k->host->images, s->info.id, why)) {
        sandbox_stop(k, s, why);
        return true;
    }
    memory_watch(k, s); /* it may have died of what it lost */
    return s->info.life == LIFE_STOPPING;
}

/* Of one that died while no keeper ran. */
const char *memory_why_lost(struct keeper *k, const struct sandbox *s)
{
    bool lost = false;
    int helper = fill_watch(&k->host->images, s->info.id, &lost);

    own_close(&helper);
    if (!lost)
        return "died while no keeper ran";
    fill_forget(&k->host->images, s->info.id);
    return FILL_LOST;
}
