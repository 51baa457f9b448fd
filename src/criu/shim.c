/* shim.c - loaded into criu: what has to be otherwise for it to work here.
 *
 * criu is started with the effective id that owns the sandbox's user namespace, so that what the kernel counts for that
 * sandbox's owner is charged to the same id after a restore as before (jail/creds.c), and with every capability of the
 * keeper. Three things stand in its way:
 *
 *   - It takes an id other than 0 for a lack of privilege and asks no further: it is told 0.
 *   - The kernel lets only id 0 write a host name, whatever the capabilities, and only the sandbox's root its other
 *     settings: criu's helper for such files becomes the one or the other when it opens them, and writes right after.
 *   - Since Linux 6.16 an internet socket has no SO_PASSCRED and SO_PASSSEC; criu before 4.2 takes that for a fault. It is
 *     told that they are off.
 *
 * No C library: this must load into whichever criu there is. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>

/* Not from sys/socket.h, which has prototypes of its own for what is below. */
#define SOL_SOCKET  1
#define SO_PASSCRED 16
#define SO_PASSSEC  34

#define EXPORT __attribute__((visibility("default")))

static long call(long number, long a, long b, long c, long d, long e)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

EXPORT unsigned geteuid(void);
EXPORT unsigned getuid(void);
EXPORT int openat64(int dir, const char *path, int flags, ...);
EXPORT int __openat64_2(int dir, const char *path, int flags);
EXPORT int getsockopt(int fd, int level, int name, void *value, unsigned *len);
EXPORT int setsockopt(int fd, int level, int name, const void *value, unsigned len);

unsigned geteuid(void)
{
    return 0;
}

unsigned getuid(void)
{
    return 0;
}

static int same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

extern int *__errno_location(void);

/* As the C library answers. */
static int done(long result)
{
    if (result >= 0)
        return (int) result;
    *__errno_location() = (int) -result;
    return -1;
}

static int begins(const char *text, const char *with)
{
    while (*with && *text == *with)
        text++, with++;
    return !*with;
}

static long owner = -1; /* who we are, unless we are 0 for a while */

static int open_as_needed(int dir, const char *path, int flags, unsigned mode)
{
    long fd;

    if (same(path, "kernel/hostname") || same(path, "kernel/domainname")) {
        if (owner < 0)
            owner = call(SYS_geteuid, 0, 0, 0, 0, 0);
        (void) call(SYS_setresuid, -1, 0, -1, 0, 0);
    } else if (owner >= 0 && begins(path, "kernel/")) {
        (void) call(SYS_setresuid, -1, owner, -1, 0, 0);
    }
    fd = call(SYS_openat, dir, (long) path, flags, (long) mode, 0);
    return done(fd);
}

int openat64(int dir, const char *path, int flags, ...)
{
    unsigned mode;
    va_list args;

    va_start(args, flags);
    mode =
        va_arg(args, unsigned); /* whatever is there: the kernel looks at it only where it counts */
    va_end(args);
    return open_as_needed(dir, path, flags, mode);
}

int __openat64_2(int dir, const char *path, int flags)
{
    return open_as_needed(dir, path, flags, 0);
}

/* ---- sockets ---- */

static int unknown_and_off(int level, int name, long result)
{
    return result == -EOPNOTSUPP && level == SOL_SOCKET &&
           (name == SO_PASSCRED || name == SO_PASSSEC);
}

int getsockopt(int fd, int level, int name, void *value, unsigned *len)
{
    long result = call(SYS_getsockopt, fd, level, name, (long) value, (long) len);

    if (!unknown_and_off(level, name, result) || *len < sizeof(int))
        return done(result);
    *(int *) value = 0;
    *len = sizeof(int);
    return 0;
}

int setsockopt(int fd, int level, int name, const void *value, unsigned len)
{
    long result = call(SYS_setsockopt, fd, level, name, (long) value, len);

    if (unknown_and_off(level, name, result) && len == sizeof(int) && *(const int *) value == 0)
        return 0;
    return done(result);
}
