#include "driver/jail/oom.h"

#include "driver/host.h"
#include "jail/cgroup.h"
#include "keeper/life.h"

#include <poll.h>

/* The kernel counts a kill before it sends the signal, so the count has to be read first. */
static bool is_running(const struct sandbox *s)
{
    struct pollfd pid = { .fd = s->pid.fd, .events = POLLIN };

    return s->pid.fd >= 0 && !sandbox_pid_dying(s->info.pid) && poll(&pid, 1, 0) == 0;
}

void oom_note(struct sandbox *s, uint64_t kills)
{
    if (s->info.isolation == ISOLATION_JAIL && kills > s->oom_outlived && is_running(s))
        s->oom_outlived = kills;
}

void oom_look(struct keeper *k, struct sandbox *s)
{
    struct keeper_stats used = { 0 };
    struct err ignored;

    if (cgroup_stats(&k->host->cgroups, s->cgroup, true, &used, &ignored) == 0)
        oom_note(s, used.oom_kills);
}

bool oom_ended(struct keeper *k, const struct sandbox *s)
{
    struct keeper_stats used = { 0 };
    struct err ignored;

    return cgroup_stats(&k->host->cgroups, s->cgroup, true, &used, &ignored) == 0 &&
           used.oom_kills > s->oom_outlived;
}
