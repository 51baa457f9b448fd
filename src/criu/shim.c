/* shim.c - loaded into criu: what has to be otherwise for it to work here.
 *
 * criu is started with the effective id that owns the sandbox's user namespace, so that what the kernel counts for that
 * sandbox's owner is charged to the same id after a restore as before (jail/creds.c), and with every capability of the
 * keeper. Four things stand in its way:
 *
 *   - It takes an id other than 0 for a lack of privilege and asks no further: it is told 0.
 *   - The kernel lets only id 0 write a host name, whatever the capabilities, and only the sandbox's root its other
 *     settings (before Linux 6.11: id 0, too): criu's helper for such files becomes the one or the other when it opens them, and
 *     writes right after.
 *   - Since Linux 6.16 an internet socket has no SO_PASSCRED and SO_PASSSEC; criu before 4.2 takes that for a fault. It is
 *     told that they are off.
 *   - A process in a user namespace gets no userfaultfd for faults of the kernel's. It is handed /dev/userfaultfd for a
 *     moment, which gives it one, by the process that brings its pages (image/pages.c).
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

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

EXPORT unsigned geteuid(void);
EXPORT unsigned getuid(void);
EXPORT int openat64(int dir, const char *path, int flags, ...);
EXPORT int __openat64_2(int dir, const char *path, int flags);
EXPORT int getsockopt(int fd, int level, int name, void *value, unsigned *len);
EXPORT int setsockopt(int fd, int level, int name, const void *value, unsigned len);
EXPORT long syscall(long number, ...);
EXPORT long sendmsg(int fd, const void *message, int flags);

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

static void become_root(void)
{
    if (owner < 0)
        owner = call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
    (void) call(SYS_setresuid, -1, 0, -1, 0, 0, 0);
}

static int open_as_needed(int dir, const char *path, int flags, unsigned mode)
{
    int setting = begins(path, "kernel/") || begins(path, "fs/mqueue/");
    long fd;

    if (same(path, "kernel/hostname") || same(path, "kernel/domainname"))
        become_root();
    else if (owner >= 0 && setting)
        (void) call(SYS_setresuid, -1, owner, -1, 0, 0, 0);
    fd = call(SYS_openat, dir, (long) path, flags, (long) mode, 0, 0);
    if (fd == -EACCES && setting) {
        become_root();
        fd = call(SYS_openat, dir, (long) path, flags, (long) mode, 0, 0);
    }
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
    long result = call(SYS_getsockopt, fd, level, name, (long) value, (long) len, 0);

    if (!unknown_and_off(level, name, result) || *len < sizeof(int))
        return done(result);
    *(int *) value = 0;
    *len = sizeof(int);
    return 0;
}

int setsockopt(int fd, int level, int name, const void *value, unsigned len)
{
    long result = call(SYS_setsockopt, fd, level, name, (long) value, len, 0);

    if (unknown_and_off(level, name, result) && len == sizeof(int) && *(const int *) value == 0)
        return 0;
    return done(result);
}

/* ---- pages that come later ---- */

#define SO_TYPE         3
#define SOCK_STREAM     1
#define SCM_RIGHTS      1
#define MSG_CLOEXEC     0x40000000
#define USER_MODE_ONLY  1      /* of userfaultfd: what everybody may have */
#define USERFAULTFD_NEW 0xaa00 /* _IO(0xAA, 0): of the device */
#define NEW_FLAGS       (O_CLOEXEC | O_NONBLOCK)

struct piece {
    void *at;
    unsigned long len;
};

struct message {
    void *name;
    unsigned name_len;
    struct piece *piece;
    unsigned long pieces;
    void *control;
    unsigned long control_len;
    int flags;
};

/* One descriptor. */
struct rights {
    unsigned long len;
    int level, type;
    int fd;
    int unused;
};
#define RIGHTS_LEN (sizeof(struct rights) - sizeof(int))

/* criu's order: it makes a userfaultfd, has its helper outside of the user namespace switch it on, sends its pid to the one that brings the
 * pages, then the userfaultfd. We give it one that everybody may have, and put the real one in its place when it
 * is about to send it: only then do we hold the socket that the device comes from. */
static int placeholder = -1;

long syscall(long number, ...)
{
    long a[6], result;
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long); /* whatever is there */
    va_end(args);
    if (number == SYS_userfaultfd && a[0] == NEW_FLAGS)
        return placeholder = done(call(number, a[0] | USER_MODE_ONLY, 0, 0, 0, 0, 0));
    result = call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (result > -4096 && result < 0)
        return done(result);
    return result;
}

/* The device comes in answer to the pid. */
static long take_device(int sock)
{
    char byte;
    struct piece piece = { &byte, 1 };
    struct rights rights = { 0, 0, 0, -1, 0 };
    struct message message = { 0, 0, &piece, 1, &rights, sizeof rights, 0 };
    long n = call(SYS_recvmsg, sock, (long) &message, MSG_CLOEXEC, 0, 0, 0);

    if (n != 1 || message.control_len < RIGHTS_LEN || rights.level != SOL_SOCKET ||
        rights.type != SCM_RIGHTS)
        return n < 0 ? n : -EPROTO;
    return rights.fd;
}

static long put_real_one(int sock)
{
    long device = take_device(sock), real, result;

    if (device < 0)
        return device;
    real = call(SYS_ioctl, device, USERFAULTFD_NEW, NEW_FLAGS, 0, 0, 0);
    (void) call(SYS_close, device, 0, 0, 0, 0, 0);
    if (real < 0)
        return real;
    result = call(SYS_dup3, real, placeholder, O_CLOEXEC, 0, 0, 0);
    (void) call(SYS_close, real, 0, 0, 0, 0, 0);
    return result < 0 ? result : 0;
}

static int sends_placeholder(int sock, const struct message *message)
{
    const struct rights *rights = message->control;
    int type = 0;
    unsigned len = sizeof type;

    return placeholder >= 0 && message->control_len >= RIGHTS_LEN && rights->level == SOL_SOCKET &&
           rights->type == SCM_RIGHTS && rights->fd == placeholder &&
           call(SYS_getsockopt, sock, SOL_SOCKET, SO_TYPE, (long) &type, (long) &len, 0) == 0 &&
           type == SOCK_STREAM;
}

long sendmsg(int fd, const void *message, int flags)
{
    long result;
    char byte;

    if (!sends_placeholder(fd, message))
        return done(call(SYS_sendmsg, fd, (long) message, flags, 0, 0, 0));
    result = put_real_one(fd);
    placeholder = -1;
    if (result == 0)
        result = call(SYS_sendmsg, fd, (long) message, flags, 0, 0, 0);
    /* It is switched on when this is answered. */
    if (result >= 0 && call(SYS_read, fd, (long) &byte, 1, 0, 0, 0) != 1)
        result = -EPROTO;
    return done(result);
}
