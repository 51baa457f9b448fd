#include "agent/renew.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define SEED_MAX 64u
#define LATE_MS  200u
#define ID_ROOM  40u /* for a boot id, its end of line and a NUL */

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

static int random_id(char text[ID_ROOM], struct err *err)
{
    uint8_t b[16];

    if (getrandom(b, sizeof b, 0) != sizeof b)
        return err_sys(err, errno, "random bytes");
    b[6] = (b[6] & 0x0f) | 0x40; /* version 4: at random */
    b[8] = (b[8] & 0x3f) | 0x80;
    (void) snprintf(text, ID_ROOM,
                    "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\n", b[0],
                    b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                    b[13], b[14], b[15]);
    return 0;
}

/* A file without a name covers the one of gVisor's /proc. No command may mount, and none runs now. */
static int cover_boot_id(const char *text, struct err *err)
{
    char path[16 + ID_ROOM];
    auto_close int fd = -1;
    int rc = -1;

    (void) snprintf(path, sizeof path, "/dev/boot_id-%.36s", text);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    if (fd < 0)
        return err_sys(err, errno, "make a boot id");
    if (io_write_all(fd, text, strlen(text)) == 0)
        rc = mount(path, BOOT_ID_SEEN, NULL, MS_BIND, NULL);
    if (rc < 0)
        err_sys(err, errno, "put a boot id in its place");
    (void) unlink(path);
    return rc;
}

int renew_boot_id_in_gvisor(struct err *err)
{
    auto_close int fd = -1;
    char text[ID_ROOM];
    struct statfs of;

    if (random_id(text, err) < 0)
        return -1;
    if (statfs(BOOT_ID_SEEN, &of) < 0)
        return err_sys(err, errno, "look at the boot id");
    if (of.f_type != TMPFS_MAGIC)
        return cover_boot_id(text, err);
    fd = open(BOOT_ID_SEEN, O_WRONLY | O_NOFOLLOW | O_CLOEXEC); /* an earlier copy's */
    if (fd < 0 || io_write_all(fd, text, strlen(text)) < 0)
        return err_sys(err, errno, "write a boot id");
    return 0;
}

int renew_boot_id(struct err *err)
{
    auto_close int fd = -1;
    char text[ID_ROOM];
    int rc;

    if (random_id(text, err) < 0)
        return -1;
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
