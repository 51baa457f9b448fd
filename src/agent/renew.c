#include "agent/renew.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define SEED_MAX 64u
#define LATE_MS  200u

void renew_random(const uint8_t *seed, size_t len)
{
    auto_close int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
    struct {
        int bits, bytes; /* struct rand_pool_info */
        uint8_t data[SEED_MAX];
    } pool = { .bits = (int) len * 8, .bytes = (int) len };

    if (fd < 0 || len > sizeof pool.data)
        return;
    memcpy(pool.data, seed, len);
    /* Mixed in and believed, then used at once; who may not do that writes, which is used within a minute. */
    if (ioctl(fd, RNDADDENTROPY, &pool) < 0)
        IGNORE(write(fd, seed, len) < 0);
    (void) ioctl(fd, RNDRESEEDCRNG);
}

void renew_time(uint64_t now_ms)
{
    struct timespec now = { .tv_sec = (time_t) (now_ms / 1000),
                            .tv_nsec = (long) (now_ms % 1000) * 1000000 };

    if (io_real_ms() + LATE_MS < now_ms)
        (void) clock_settime(CLOCK_REALTIME, &now);
}

static int protect(unsigned long flag)
{
    return mount(NULL, "/dev/cove", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV | flag, NULL);
}

int renew_boot_id(struct err *err)
{
    auto_close int fd = -1;
    uint8_t b[16];
    char text[40];
    int rc;

    if (getrandom(b, sizeof b, 0) != sizeof b)
        return err_sys(err, errno, "random bytes");
    b[6] = (b[6] & 0x0f) | 0x40; /* version 4: at random */
    b[8] = (b[8] & 0x3f) | 0x80;
    (void) snprintf(text, sizeof text,
                    "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\n", b[0],
                    b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                    b[13], b[14], b[15]);
    rc = protect(0);
    if (rc == 0)
        fd = open(BOOT_ID_FILE, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || io_write_all(fd, text, strlen(text)) < 0)
        rc = -1;
    if (rc < 0)
        err_sys(err, errno, "write a boot id");
    own_close(&fd);
    if (protect(MS_RDONLY) < 0 && rc == 0)
        rc = err_sys(err, errno, "protect /dev/cove");
    return rc;
}
