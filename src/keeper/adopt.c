#include "keeper/adopt.h"

#include "base/io.h"
#include "base/log.h"
#include "keeper/sandbox.h"
#include "keeper/worker.h"

#include <inttypes.h>
#include <time.h>

#define STRAY_MS 2000

/* A cgroup that no record speaks of: of a create that had not written its record, or of a journal that
 * was lost. Rare, so waiting for it here is fine. */
static void clear_stray_cgroup(const char *name, void *arg)
{
    struct keeper *k = arg;
    uint64_t until = io_now_ms() + STRAY_MS;
    const struct timespec moment = { .tv_nsec = 1000000 };
    char of[KEEPER_NAME_MAX];
    struct err err;

    if (sandbox_made_as(k, name) || (cgroup_is_work(name, of) && sandbox_made_as(k, of)))
        return;
    log_line(LOG_WARNING, "stray cgroup=%s processes=%zu: cleared away", name,
             cgroup_kill(&k->cgroups, name));
    while (cgroup_remove(&k->cgroups, name, &err) == 0 && io_now_ms() < until) {
        (void) cgroup_kill(&k->cgroups, name);
        (void) nanosleep(&moment, NULL);
    }
}

static bool disk_used(const void *arg, uint64_t number)
{
    return sandbox_disk_used(arg, number, NULL);
}

void adopt_sweep(struct keeper *k)
{
    k->sweep = false;
    images_sweep(&k->images);
    worker_clear_images(k);
    if (k->images.unread) {
        log_line(LOG_WARNING, "disks are not swept: %zu images do not say which are theirs",
                 k->images.unread);
        return;
    }
    disks_sweep(&k->disks, disk_used, k);
}

int adopt_all(struct keeper *k, struct err *err)
{
    uint64_t begin = io_now_us();
    uint32_t running = 0;

    for (uint32_t slot = 0; slot < k->slot_count; slot++) {
        struct journal_record record;
        int there = journal_read(&k->journal, slot, &record, err);

        if (there < 0)
            return -1;
        if (there == 0)
            continue;
        sandbox_adopt(k, slot, &record, false);
        running += k->sandboxes[slot].info.life == LIFE_RUNNING ||
                   k->sandboxes[slot].info.life == LIFE_PAUSED;
    }
    cgroup_each(&k->cgroups, clear_stray_cgroup, k);
    k->sweep = true; /* by sandbox_tick */
    log_line(LOG_INFO, "adopted sandboxes=%u to_clear=%u us=%" PRIu64, running,
             k->sandbox_count - running, io_now_us() - begin);
    return 0;
}
