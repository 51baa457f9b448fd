#include "agent/resumed.h"

#include "agent/core/box.h"
#include "agent/core/halt.h"
#include "agent/renew.h"
#include "agent/trunk.h"
#include "base/io.h"
#include "base/own.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What they wrote goes to the disk once while they run, which may take long, and once when nothing more can come. The checkpoint
 * has the rest, but for what leads outside. */
static int make_gvisor_ready(struct err *err)
{
    sync();
    if (halt_stop(err) < 0)
        return -1;
    sync();
    trunk_close_outside();
    return 0;
}

int resumed_make_ready(struct agent *agent, struct err *err)
{
    if (agent->gvisor)
        return make_gvisor_ready(err);
    if (agent->machine) { /* no checkpoint looks at us, and no call is refused */
        box_stop();
        return 0;
    }
    if (refusals_close(&agent->refusals,
                       &agent->loop)) /* its number stays taken: the keeper looks there */
        (void) dup3(0, BOOT_FD_NOTIFY, O_CLOEXEC);
    /* A checkpoint looks at our namespaces with the rights of the sandbox's root. No process inside can do as much: it
     * takes every capability that we have, and no command has SETPCAP. */
    (void) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    return 0;
}

/* Root's directory, or none: where commands may be root they may also break this. */
static void leave_word(uint64_t times, const char *why, uint64_t slept_ms)
{
    auto_close int dir = -1, fd = -1;
    struct timespec now;
    char text[160];
    int len;

    (void) clock_gettime(CLOCK_REALTIME, &now);
    len = snprintf(text, sizeof text,
                   "times=%" PRIu64 "\nwhy=%.16s\nat=%" PRIu64 ".%03u\nslept_ms=%" PRIu64 "\n",
                   times, why, (uint64_t) now.tv_sec, (unsigned) (now.tv_nsec / 1000000), slept_ms);
    (void) mkdir(RESUMED_DIR, 0755);
    dir = open(RESUMED_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return;
    fd = openat(dir, ".resumed", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
                0644);
    if (fd >= 0 && io_write_all(fd, text, (size_t) len) == 0)
        (void) renameat(dir, ".resumed", dir, "resumed");
}

/* Of one that was never given up nothing has to be taken. */
static int take_listener(struct agent *agent, int listener, struct err *err)
{
    if (listener < 0 || agent->refusals.watch.ready)
        return 0;
    if (dup3(listener, BOOT_FD_NOTIFY, O_CLOEXEC) < 0)
        return err_sys(err, errno, "take the listener");
    if (refusals_open(&agent->refusals, &agent->loop, BOOT_FD_NOTIFY, err) == 0)
        return 0;
    /* A listener that is not read must not look like one that is: the keeper looks at the number. */
    (void) refusals_close(&agent->refusals, &agent->loop);
    (void) dup3(0, BOOT_FD_NOTIFY, O_CLOEXEC);
    return -1;
}

/* Of a copy. A jail's is a file that the keeper writes. */
static int renew_id(const struct agent *agent, struct err *err)
{
    if (agent->machine)
        return renew_boot_id(err);
    return agent->gvisor ? renew_boot_id_in_gvisor(err) : 0;
}

int resumed_now(struct agent *agent, const char *why, uint64_t slept_ms, int listener,
                struct err *err)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(err, errno, "dumpable");
    if (take_listener(agent, listener, err) < 0)
        return -1;
    if (strcmp(why, "fork") == 0 && renew_id(agent, err) < 0)
        return -1;
    agent->base.cores = 0;            /* its limits may be others now */
    if (strcmp(why, "continue") != 0) /* it has not been away */
        leave_word(++agent->resumed, why, slept_ms);
    box_go();
    halt_go();
    return 0;
}
