/* Two seconds are promised, whatever runs inside. What was found to hold processes up, and what is done about it:
 *
 *   a processor share of 1 %, and thousands of threads   each needs a moment of it to die: the share is lifted
 *   PID 1 among them, who kills the others               waits for its turn: everybody gets the signal, at once
 *   frozen, by a pause or by who froze them half         thawed, behind the signal
 *   forks in flight                                      no process is born any more; v2's own kill; and again
 *   criu, which traces them                              dies first: dead ones would wait for it to look
 *   a saver or loader that waits for them                likewise; what it leaves is found by driver->settle
 *   a disk full of what is not written yet               the file system forgets it: driver->leave_disk
 *   names by the million that the kernel remembers       another process takes the file systems apart: the same
 *   a limit on disk I/O                                  lifted */
#include "keeper/kill.h"

#include "base/io.h"
#include "base/log.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AGAIN_MS 20   /* between two attempts */
#define LATE_MS  300  /* by then what dies by itself is dead */
#define STUCK_MS 5000 /* to be told, once: the kernel holds them */

void kill_box(struct keeper *k, struct sandbox *s)
{
    uint64_t now = io_now_ms();
    bool late = now >= s->kill_since_ms + LATE_MS;

    s->driver->kill(k, s, late);
    if (late && s->pid.fd >= 0) /* whatever the driver did */
        (void) syscall(__NR_pidfd_send_signal, s->pid.fd, SIGKILL, NULL, 0);
    s->kill_next_ms = now + AGAIN_MS;
}

void kill_workers(struct keeper *k, const struct sandbox *s)
{
    s->driver->kill_workers(k, s);
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

/* Not of one that is loaded, whose disk is still its image's, nor of one that has become an image. */
static bool disk_goes(const struct sandbox *s)
{
    return s->info.life == LIFE_PAUSING
               ? s->doomed
               : (s->info.life == LIFE_RUNNING || s->info.life == LIFE_PAUSED) && !s->image[0];
}

/* What the sandbox leaves behind in its file systems is not its processes' to clear away. */
static void leave_disk(struct keeper *k, const struct sandbox *s)
{
    if (disk_goes(s))
        s->driver->leave_disk(k, s);
}

/* A worker works on it, and dies with it. What the worker did until then is found out by driver->settle, which looks at
 * files; then it is stopped like any other. The record says so first: should we die now, the next keeper continues with it. */
static void doom(struct keeper *k, struct sandbox *s, const char *reason)
{
    struct err err, ignored;
    bool first = !s->doomed;

    if (first) {
        s->doomed = true;
        keeper_attend(k, s);
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
    if (first)
        leave_disk(k, s);
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
    leave_disk(k, s);
    sandbox_set_life(k, s, LIFE_STOPPING);
    if (sandbox_record(k, s, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    s->driver->let_go(k, s);
    kill_box(k, s);
    /* Without a process there is no death to wait for: the next tick clears it. */
}
