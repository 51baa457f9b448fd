#include "driver/guest/guest.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "driver/guest/order.h"
#include "driver/guest/save.h"
#include "driver/io_rule.h"
#include "driver/jail/jail.h"
#include "driver/jail/load.h"
#include "driver/jail/save.h"
#include "jail/machine.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"
#include "keeper/talk.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

int guest_stats(struct keeper *k, const struct sandbox *s, const char *path, bool brief,
                struct keeper_stats *ret, struct err *err)
{
    auto_close int fd = -1;
    struct statfs disk;

    if (jail_stats_common(k, s, brief, ret, err) < 0)
        return -1;
    if (brief)
        return 0;
    fd = jail_open_inside(s->info.pid, path, O_PATH | O_DIRECTORY);
    if (fd >= 0 && fstatfs(fd, &disk) == 0) {
        ret->disk_bytes = (uint64_t) (disk.f_blocks - disk.f_bfree) * (uint64_t) disk.f_bsize;
        ret->disk_inodes = (uint64_t) (disk.f_files - disk.f_ffree);
    }
    return 0;
}

int guest_resumed(struct keeper *k, struct sandbox *s, struct err *err)
{
    return io_rule_resume(k, s, err) < 0
               ? err_wrap(err, "its limit on disk I/O cannot be set again")
               : 0;
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
    if (cgroup_limit(&k->host->cgroups, s->cgroup, &limits, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    jail_adopt_freeze(k, s);
}

const char *guest_why_lost(struct keeper *k, const struct sandbox *s)
{
    (void) k, (void) s;
    return "died while no keeper ran";
}

int guest_check_version(const struct guest_kind *kind, const struct image_meta *meta,
                        struct err *err)
{
    char version[KEEPER_NAME_MAX];

    kind->version(NULL, version, sizeof version);
    if (strcmp(version, meta->kernel) == 0)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "image '%s' was saved by %s %.20s, and this host has %.20s: only its files "
                   "can be loaded",
                   meta->image.id, kind->program, meta->kernel, version[0] ? version : "none");
}

/* One whose loader died, and which is the sandbox: it runs, and hears why. In a process of its own. */
static int tell(struct keeper *k, const struct sandbox *s, bool same, struct err *err)
{
    const struct sandbox own = *s; /* the keeper's table is not in a process that it forks */
    int keep[] = { own.pid.fd, k->host->nets.own_fd };

    if (!worker_fork_apart())
        return 0;
    io_keep_only(keep, ARRAY_LEN(keep));
    if (order_go(k, &own, same ? TALK_RESUME : TALK_FORK, 0, err) < 0) {
        log_line(LOG_ERROR, "sandbox=%s %s", own.info.id, err->msg);
        (void) syscall(__NR_pidfd_send_signal, own.pid.fd, SIGKILL, NULL, 0);
    }
    _exit(0);
}

bool guest_settle(struct keeper *k, struct sandbox *s)
{
    return s->info.life == LIFE_PAUSING ? save_settle(k, s, save_continue)
                                        : load_settle(k, s, tell);
}
