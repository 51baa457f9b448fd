#include "driver/jail/oom.h"

#include "base/io.h"
#include "driver/host.h"
#include "jail/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of /proc/PID/stat, by number, as in proc(5). */
#define FIELD_FLAGS   9
#define FIELD_SIGNALS 31
#define FLAG_EXITING  0x4u /* PF_EXITING */

static uint64_t field_of(const char *stat, int number)
{
    const char *at = strrchr(stat, ')'); /* the name may hold anything, also brackets and spaces */

    for (int field = 2; at && field < number; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : UINT64_MAX;
}

/* The kernel counts a kill before it sends the signal, so the count has to be read first. */
static bool is_running(const struct sandbox *s)
{
    struct pollfd pid = { .fd = s->pid.fd, .events = POLLIN };
    char path[32], stat[1024];

    (void) snprintf(path, sizeof path, "/proc/%d/stat", s->info.pid);
    return s->pid.fd >= 0 && io_read_text(AT_FDCWD, path, stat, sizeof stat) > 0 &&
           !(field_of(stat, FIELD_FLAGS) & FLAG_EXITING) &&
           !(field_of(stat, FIELD_SIGNALS) & (1u << (SIGKILL - 1))) && poll(&pid, 1, 0) == 0;
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

    if (cgroup_stats(&k->host->cgroups, s->made_as, true, &used, &ignored) == 0)
        oom_note(s, used.oom_kills);
}

bool oom_ended(struct keeper *k, const struct sandbox *s)
{
    struct keeper_stats used = { 0 };
    struct err ignored;

    return cgroup_stats(&k->host->cgroups, s->made_as, true, &used, &ignored) == 0 &&
           used.oom_kills > s->oom_outlived;
}
