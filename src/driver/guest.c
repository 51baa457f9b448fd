#include "driver/guest.h"

#include "base/log.h"
#include "base/own.h"
#include "driver/jail/jail.h"
#include "jail/machine.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"

#include <fcntl.h>
#include <sys/statfs.h>

int guest_stats(struct keeper *k, const struct sandbox *s, const char *path, bool brief,
                struct keeper_stats *ret, struct err *err)
{
    auto_close int fd = -1;
    struct statfs disk;

    if (jail_stats_common(k, s, brief, ret, err) < 0)
        return -1;
    if (brief)
        return 0;
    fd = jail_open_inside(s->info.pid, path, O_PATH);
    if (fd >= 0 && fstatfs(fd, &disk) == 0) {
        ret->disk_bytes = (uint64_t) (disk.f_blocks - disk.f_bfree) * (uint64_t) disk.f_bsize;
        ret->disk_inodes = (uint64_t) (disk.f_files - disk.f_ffree);
    }
    return 0;
}

int guest_resumed(struct keeper *k, struct sandbox *s, struct err *err)
{
    (void) k, (void) s, (void) err;
    return 0;
}

/* What the guest's processes have not written yet is in the kernel of the guest, and dies with it. */
void guest_leave_disk(struct keeper *k, const struct sandbox *s)
{
    (void) k, (void) s;
}

void guest_adopt(struct keeper *k, struct sandbox *s, bool vm)
{
    struct limits limits = s->info.limits;
    struct err err;

    if (s->info.life == LIFE_STOPPING)
        return;
    machine_allow(vm, &limits);
    if (cgroup_limit(&k->host->cgroups, s->made_as, &limits, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    jail_adopt_freeze(k, s);
}

const char *guest_why_lost(struct keeper *k, const struct sandbox *s)
{
    (void) k, (void) s;
    return "died while no keeper ran";
}

/* Nothing is ever saved or loaded: whatever its record says, there is no worker to wait for. */
bool guest_settle(struct keeper *k, struct sandbox *s)
{
    struct err err;

    (void) driver_lacks(s->driver, "continue with what was begun", &err);
    sandbox_stop(k, s, err.msg);
    return true;
}
