#include "agent/forget.h"

#include "base/own.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST     8192u /* half of what virtiofsd has descriptors for, at the least (jail/machine.c) */
#define FEW      2048u
#define REST_MS  250u /* a kernel finds some ten files in a millisecond */
#define ALERT_MS 50u

static struct {
    struct loop *loop;
    struct timer timer;
    int count_fd, drop_fd;
    uint64_t most;
    bool dropped;
} forget = { .count_fd = -1, .drop_fd = -1 };

bool forget_wanted(uint64_t count, bool before, uint64_t *most)
{
    if (before || *most == 0)
        *most = count < MOST / 2 ? MOST : count + count / 2 + MOST / 2;
    return count > *most;
}

static void look(struct timer *timer)
{
    char text[64];
    ssize_t n = pread(forget.count_fd, text, sizeof text - 1, 0);
    uint64_t count;

    if (n <= 0)
        return;
    text[n] = '\0';
    count = strtoull(text, NULL, 10);
    forget.dropped = forget_wanted(count, forget.dropped, &forget.most);
    if (forget.dropped)
        IGNORE(pwrite(forget.drop_fd, "2", 1, 0) < 0);
    loop_arm(forget.loop, timer, count < FEW ? REST_MS : ALERT_MS, look);
}

void forget_begin(struct loop *loop)
{
    char first = '0';

    forget.count_fd = open("/sys/kernel/slab/fuse_inode/objects", O_RDONLY | O_CLOEXEC);
    forget.drop_fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    if (forget.count_fd < 0 || forget.drop_fd < 0 || pread(forget.count_fd, &first, 1, 0) < 0 ||
        first == '0') /* no virtiofsd serves anything: a machine at rest need not wake up for it */
        return;
    IGNORE(pwrite(forget.drop_fd, "4", 1, 0) <
           0); /* without a line in the kernel's log each time */
    forget.loop = loop;
    loop_arm(loop, &forget.timer, REST_MS, look);
}
