/* Two seconds are promised, whatever runs inside. What was found to hold processes up, and what is done about it:
 *
 *   a processor share of 1 %, and thousands of threads   each needs a moment of it to die: the share is lifted
 *   PID 1 among them, who kills the others               waits for its turn: everybody gets the signal, at once
 *   frozen, by a pause or by who froze them half         thawed, behind the signal
 *   forks in flight                                      no process is born any more; v2's own kill; and again
 *   criu, which traces them                              dies first: dead ones would wait for it to look
 *   a saver or loader that waits for them                likewise; what it leaves is found by save_settle, load_settle
 *   a disk full of what is not written yet               the file system forgets it: drop_writes */
#include "keeper/kill.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"
#include "keeper/volume.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AGAIN_MS 20   /* between two attempts */
#define LATE_MS  300  /* by then what dies by itself is dead */
#define STUCK_MS 5000 /* to be told, once: the kernel holds them */

#define MUCH_MEMORY   (64ull << 20)            /* less is written in no time */
#define EXT4_SHUTDOWN _IOR('X', 125, uint32_t) /* EXT4_IOC_SHUTDOWN, which no header has */

void kill_box(struct keeper *k, struct sandbox *s)
{
    uint64_t now = io_now_ms();

    if (s->pid.fd >= 0)
        (void) syscall(__NR_pidfd_send_signal, s->pid.fd, SIGKILL, NULL, 0);
    (void) cgroup_end(&k->cgroups, s->made_as, now >= s->kill_since_ms + LATE_MS);
    s->kill_next_ms = now + AGAIN_MS;
}

void kill_workers(struct keeper *k, const struct sandbox *s)
{
    (void) cgroup_work_kill(&k->cgroups, s->made_as);
    if (s->worker > 0) /* of a host where it could not enter: our child, so the number is its own */
        (void) kill(s->worker, SIGKILL);
}

static void tell_stuck(struct sandbox *s, uint64_t now)
{
    if (s->kill_told || now < s->kill_since_ms + STUCK_MS)
        return;
    s->kill_told = true;
    log_line(LOG_WARNING, "sandbox=%s killed %d s ago and not dead: the kernel holds its processes",
             s->info.id, STUCK_MS / 1000);
}

int kill_tick(struct keeper *k, struct sandbox *s, uint64_t now)
{
    if (now >= s->kill_next_ms) {
        tell_stuck(s, now);
        if (s->worker || s->unsettled)
            kill_workers(k, s);
        kill_box(k, s);
    }
    return s->kill_next_ms > now ? (int) (s->kill_next_ms - now) : 1;
}

int sandbox_open_disk(int pid)
{
    struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS };
    char path[32];
    auto_close int root = -1;

    (void) snprintf(path, sizeof path, "/proc/%d/root", pid);
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? -1 : (int) syscall(__NR_openat2, root, "dev/shm", &how, sizeof how);
}

/* Not of one that is loaded, whose disk is still its image's, nor of one that has become an image. */
static bool disk_goes(const struct sandbox *s)
{
    return s->info.life == LIFE_PAUSING
               ? s->doomed
               : (s->info.life == LIFE_RUNNING || s->info.life == LIFE_PAUSED) && !s->image[0];
}

/* What its disk has in memory would be written when the last process leaves, by that process, although the file goes as well: seconds,
 * for a sandbox that wrote as much as it could. So the file system forgets it; without a journal, that writes nothing.
 * Where /dev/shm is made of layers, the kernel refuses it, and writes. */
static void drop_writes(struct keeper *k, const struct sandbox *s)
{
    const uint32_t no_flush = 2; /* EXT4_GOING_FLAGS_NOLOGFLUSH */
    auto_close int fd = -1;

    if (!disk_goes(s) || s->info.disk_kind != DISK_IMAGE || s->layers.count != 1 ||
        !s->layers.number[0] || s->pid.fd < 0 ||
        cgroup_memory(&k->cgroups, s->made_as) < MUCH_MEMORY)
        return;
    fd = sandbox_open_disk(s->info.pid);
    if (fd >= 0)
        (void) ioctl(fd, EXT4_SHUTDOWN, &no_flush);
}

/* Somebody works on it, and dies with it. What that one did until then is found out by save_settle or load_settle, which look at
 * files; then it is stopped like any other. The record says so first: should we die now, the next keeper goes on with it. */
static void doom(struct keeper *k, struct sandbox *s, const char *reason)
{
    struct err err, ignored;

    if (!s->doomed) {
        s->doomed = true;
        k->calm = false;
        s->kill_since_ms = io_now_ms();
        log_line(LOG_INFO, "stop sandbox=%s reason=\"%s\" while=%s", s->info.id, reason,
                 keeper_life_name(s->info.life));
        if (!s->failure.kind)
            (void) err_set(&s->failure, ERR_NO_SANDBOX, "sandbox '%s' ended: %s", s->info.id,
                           reason);
        if (sandbox_record(k, s, &err) < 0)
            log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    }
    kill_workers(k, s);
    drop_writes(k, s);
    if (s->info.life ==
        LIFE_STARTING) /* a loader writes records, too, and may have done so just now */
        (void) sandbox_record(k, s, &ignored);
    kill_box(k, s);
}

void sandbox_stop(struct keeper *k, struct sandbox *s, const char *reason)
{
    struct err err;

    if (s->info.life == LIFE_STOPPING || s->info.life == LIFE_GONE)
        return;
    if (s->worker || s->unsettled) {
        doom(k, s, reason);
        return;
    }
    log_line(LOG_INFO, "stop sandbox=%s reason=\"%s\"", s->info.id, reason);
    if (!s->failure.kind)
        (void) err_set(&s->failure, ERR_NO_SANDBOX, "sandbox '%s' ended: %s", s->info.id, reason);
    s->stop_since_ms = io_now_ms();
    if (!s->kill_since_ms)
        s->kill_since_ms = s->stop_since_ms;
    drop_writes(k, s);
    sandbox_set_life(k, s, LIFE_STOPPING);
    if (sandbox_record(k, s, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    keeper_unwatch(k, &s->control); /* a child that waits for us sees the end and goes */
    keeper_unwatch(k, &s->ready);
    keeper_unwatch(k, &s->fill);
    own_close(&s->disk_fd);
    volumes_let_go(s);
    kill_box(k, s);
    /* Without a process there is no death to wait for: the next tick clears it. */
}
