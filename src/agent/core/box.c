#include "agent/core/box.h"

#include "base/io.h"
#include "base/own.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define STOP_MS 3000 /* one that waits for a device may take longer: it stops before it runs on */

static int box_fd = -1, root_fd = -1;

void box_open(void)
{
    box_fd = open(BOX_CGROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void box_enter(void)
{
    if (box_fd >= 0)
        IGNORE(io_write_text(box_fd, "cgroup.procs", "0") < 0); /* root may have removed it */
}

static bool is_still(int events)
{
    char text[256];
    ssize_t n = pread(events, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return strstr(text, "frozen 1") != NULL;
}

static void wait_until_still(void)
{
    auto_close int events = openat(box_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    struct pollfd p = { .fd = events, .events = POLLPRI };
    uint64_t until = io_now_ms() + STOP_MS;
    uint64_t now;

    while (events >= 0 && !is_still(events) && (now = io_now_ms()) < until)
        (void) poll(&p, 1, (int) (until - now));
}

/* Written once while they run, which may take long, and once when nothing more can come. */
void box_stop(void)
{
    if (box_fd < 0)
        return;
    IGNORE(root_fd >= 0 && syncfs(root_fd) < 0);
    if (io_write_text(box_fd, "cgroup.freeze", "1") == 0)
        wait_until_still();
    IGNORE(root_fd >= 0 && syncfs(root_fd) < 0);
}

void box_go(void)
{
    if (box_fd >= 0)
        IGNORE(io_write_text(box_fd, "cgroup.freeze", "0") < 0);
}
