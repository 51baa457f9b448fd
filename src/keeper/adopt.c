#include "keeper/adopt.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define STRAY_MS 2000

/* A cgroup that no record speaks of: of a create that had not written its record, or of a journal that
 * was lost. Rare, so waiting for it here is fine. */
static void clear_stray_cgroup(const char *name, void *arg)
{
    struct keeper *k = arg;
    uint64_t until = io_now_ms() + STRAY_MS;
    const struct timespec moment = { .tv_nsec = 1000000 };
    struct err err;

    if (sandbox_find(k, name))
        return;
    log_line(LOG_WARNING, "stray cgroup=%s processes=%zu: cleared away", name,
             cgroup_kill(&k->cgroups, name));
    while (cgroup_remove(&k->cgroups, name, &err) == 0 && io_now_ms() < until) {
        (void) cgroup_kill(&k->cgroups, name);
        (void) nanosleep(&moment, NULL);
    }
}

static int clear_stray_sockets(struct keeper *k, struct err *err)
{
    int fd = openat(k->sandboxes_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir)
        return err_sys(err, errno, "list the sandboxes' sockets");
    while ((entry = readdir(dir))) {
        char id[256];

        (void) snprintf(id, sizeof id, "%s", entry->d_name);
        id[strcspn(id, ".")] = '\0';
        if (entry->d_name[0] == '.' || sandbox_find(k, id))
            continue;
        if (unlinkat(k->sandboxes_fd, entry->d_name, 0) < 0)
            log_line(LOG_WARNING, "stray socket stays: %s", strerror(errno));
    }
    return 0;
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
        sandbox_adopt(k, slot, &record);
        running += k->sandboxes[slot].info.life == LIFE_RUNNING ||
                   k->sandboxes[slot].info.life == LIFE_PAUSED;
    }
    cgroup_each(&k->cgroups, clear_stray_cgroup, k);
    if (clear_stray_sockets(k, err) < 0)
        return -1;
    log_line(LOG_INFO, "adopted sandboxes=%u to_clear=%u us=%" PRIu64, running,
             k->sandbox_count - running, io_now_us() - begin);
    return 0;
}
