/* seccomp_probe.c - executes every rule of the filter from inside a sandbox.
 *
 * The rows are those of wire/seccomp_table.h, so that none can be forgotten: what is allowed must not get
 * the filter's answer, what is refused must get EPERM, and every other number there is must get
 * ENOSYS. Rules about arguments are a table here, tried both ways.
 *
 *   seccomp_probe                  all of it, as `ok - …` lines
 *   seccomp_probe refuse N COUNT   system call N, COUNT times: to be counted by the agent */
#include "base/own.h"
#include "wire/ioctl_table.h"
#include "wire/seccomp_table.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBER_MOST 480 /* past the newest call of this kernel */
#define HIGH        (1ll << 32)

enum { PASSED = 1000, NOTHING }; /* neither EPERM nor ENOSYS; no answer */

struct call {
    const char *name;
    long number;
};

/* clang-format off */
static const struct call allowed[] = {
#define ALLOW(name) { #name, __NR_##name },
    SECCOMP_ALLOWED
#undef ALLOW
};

static const struct call refused[] = {
#define REFUSE(name) { #name, __NR_##name },
    SECCOMP_REFUSED
#undef REFUSE
};
/* clang-format on */

/* Their answers depend on arguments: the table of rules below. */
static const long by_argument[] = { __NR_clone,    __NR_socket,           __NR_socketpair,
                                    __NR_futex,    __NR_setsockopt,       __NR_personality,
                                    __NR_ioctl,    __NR_prlimit64,        __NR_seccomp,
                                    __NR_ptrace,   __NR_sendto,           __NR_recvfrom,
                                    __NR_sendmsg,  __NR_recvmsg,          __NR_sendmmsg,
                                    __NR_recvmmsg, __NR_process_vm_readv, __NR_process_vm_writev };

/* What the kernel itself answers with EPERM or ENOSYS when an ordinary user asks for nonsense. */
static const struct {
    long number;
    int errnum;
    const char *why;
} kernels_own[] = {
    { __NR_setgroups, EPERM, "needs CAP_SETGID" },
};

static void say(bool good, const char *sentence, int got)
{
    if (good)
        printf("ok - %s\n", sentence);
    else if (got < PASSED)
        printf("not ok - %s: got %s\n", sentence, strerror(got));
    else
        printf("not ok - %s: got %s\n", sentence, got == PASSED ? "through" : "no answer");
}

static long invoke(long number, const long long *a)
{
    /* Two returns on one stack: the library's own knows how. */
    if (number == __NR_vfork)
        return vfork();
    return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* The errno of the call made by a child, or PASSED. A child that exits, hangs or dies by anything but
 * the filter's own SIGSYS has made the call. */
static int try_call(long number, const long long *args)
{
    int ends[2], status = 0, answer = PASSED;
    pid_t pid, me = getpid();

    if (pipe(ends) < 0)
        exit(1);
    (void) fflush(stdout);
    pid = fork();
    if (pid == 0) {
        long rc;

        (void) alarm(1);
        rc = invoke(number, args);
        answer = rc == -1 && (errno == EPERM || errno == ENOSYS) ? errno : PASSED;
        /* fork, vfork and clone return here twice; both may write, and both say the same. */
        if (getppid() == me || answer != PASSED)
            IGNORE(write(ends[1], &answer, sizeof answer) < 0);
        _exit(0);
    }
    (void) close(ends[1]);
    if (read(ends[0], &answer, sizeof answer) != (ssize_t) sizeof answer)
        answer = PASSED;
    (void) close(ends[0]);
    (void) waitpid(pid, &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        return NOTHING;
    return answer;
}

static const long long nonsense[6] = { -1, -1, -1, -1, -1, -1 };

static bool kernel_newer(int major, int minor)
{
    struct utsname name;
    int a = 0, b = 0;

    (void) uname(&name);
    (void) sscanf(name.release, "%d.%d", &a, &b);
    return a > major || (a == major && b >= minor);
}

static bool is_kernels_own(long number, int got)
{
    for (size_t i = 0; i < ARRAY_LEN(kernels_own); i++)
        if (kernels_own[i].number == number && kernels_own[i].errnum == got)
            return true;
    return number == __NR_fchmodat2 && !kernel_newer(6, 6);
}

static void check_allowed(void)
{
    char sentence[128];

    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        int got = try_call(allowed[i].number, nonsense);

        (void) snprintf(sentence, sizeof sentence, "%s reaches the kernel", allowed[i].name);
        say(got == PASSED || is_kernels_own(allowed[i].number, got), sentence, got);
    }
}

static void check_refused(void)
{
    char sentence[128];

    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        int got = try_call(refused[i].number, nonsense);

        (void) snprintf(sentence, sizeof sentence, "%s is refused", refused[i].name);
        say(got == EPERM, sentence, got);
    }
}

static bool has_row(long number)
{
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (allowed[i].number == number)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (refused[i].number == number)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(by_argument); i++)
        if (by_argument[i] == number)
            return true;
    return false;
}

static void check_unlisted(void)
{
    char sentence[128];
    int count = 0;

    for (long number = 0; number < NUMBER_MOST; number++) {
        int got;

        if (has_row(number))
            continue;
        got = try_call(number, nonsense);
        /* uretprobe and uprobe of Linux 6.11 and 6.18: the kernel lets them past every filter, and ends
         * with SIGILL whoever is not its own trampoline. */
        if ((number == 335 || number == 336) && got == PASSED)
            got = ENOSYS;
        count++;
        (void) snprintf(sentence, sizeof sentence, "system call %ld has no row and does not exist",
                        number);
        say(got == ENOSYS, sentence, got);
    }
    (void) snprintf(sentence, sizeof sentence, "%d numbers without a row were tried", count);
    say(count > 50, sentence, NOTHING);
}

/* clang-format off */
static const struct rule {
    const char *sentence;
    long number;
    long long args[6];
    int want;
} rules[] = {
    { "fork by clone reaches the kernel",            __NR_clone, { SIGCHLD }, PASSED },
    { "clone with a user namespace is refused",      __NR_clone, { CLONE_NEWUSER | SIGCHLD }, EPERM },
    { "clone with a mount namespace is refused",     __NR_clone, { CLONE_NEWNS | SIGCHLD }, EPERM },
    { "clone with a pid namespace is refused",       __NR_clone, { CLONE_NEWPID | SIGCHLD }, EPERM },
    { "clone with a network namespace is refused",   __NR_clone, { CLONE_NEWNET | SIGCHLD }, EPERM },
    { "clone with an IPC namespace is refused",      __NR_clone, { CLONE_NEWIPC | SIGCHLD }, EPERM },
    { "clone with a UTS namespace is refused",       __NR_clone, { CLONE_NEWUTS | SIGCHLD }, EPERM },
    { "clone with a cgroup namespace is refused",    __NR_clone, { CLONE_NEWCGROUP | SIGCHLD }, EPERM },
    { "clone with upper bits hides no namespace",    __NR_clone, { HIGH | CLONE_NEWUSER | SIGCHLD }, EPERM },
    { "clone3 does not exist",                       435, { -1, -1 }, ENOSYS },

    { "a unix stream socket is made",                __NR_socket, { AF_UNIX, SOCK_STREAM, 0 }, PASSED },
    { "a unix datagram socket is made",              __NR_socket, { AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0 }, PASSED },
    { "a unix packet socket is made",                __NR_socket, { AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0 }, PASSED },
    { "a TCP socket is made",                        __NR_socket, { AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0 }, PASSED },
    { "a TCP socket by its protocol is made",        __NR_socket, { AF_INET, SOCK_STREAM, 6 }, PASSED },
    { "a UDP socket is made",                        __NR_socket, { AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0 }, PASSED },
    { "a UDP socket by its protocol is made",        __NR_socket, { AF_INET, SOCK_DGRAM, 17 }, PASSED },
    { "a TCP socket over IPv6 is made",              __NR_socket, { AF_INET6, SOCK_STREAM, 6 }, PASSED },
    { "a UDP socket over IPv6 is made",              __NR_socket, { AF_INET6, SOCK_DGRAM, 0 }, PASSED },
    { "a route socket is made",                      __NR_socket, { AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0 }, PASSED },
    { "a raw socket is refused",                     __NR_socket, { AF_INET, SOCK_RAW, 1 }, EPERM },
    { "a raw socket over IPv6 is refused",           __NR_socket, { AF_INET6, SOCK_RAW, 58 }, EPERM },
    { "a raw socket with flags is refused",          __NR_socket, { AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 255 }, EPERM },
    { "a raw socket with upper bits is refused",     __NR_socket, { HIGH | AF_INET, HIGH | SOCK_RAW, HIGH | 1 }, EPERM },
    { "the old packet type is refused",              __NR_socket, { AF_INET, SOCK_PACKET, 3 }, EPERM },
    { "a packet socket with upper bits is refused",  __NR_socket, { HIGH | AF_PACKET, SOCK_RAW, 3 }, EPERM },
    { "netfilter with upper bits is refused",        __NR_socket, { AF_NETLINK, SOCK_RAW, HIGH | 12 }, EPERM },
    { "a unix pair is made",                         __NR_socketpair, { AF_UNIX, SOCK_STREAM, 0, -1 }, PASSED },
    { "an internet pair is refused",                 __NR_socketpair, { AF_INET, SOCK_STREAM, 0, -1 }, EPERM },
    { "a TIPC pair is refused",                      __NR_socketpair, { 30, SOCK_STREAM, 0, -1 }, EPERM },
    { "a pair of a family in upper bits is refused", __NR_socketpair, { HIGH | 30, SOCK_STREAM, 0, -1 }, EPERM },

    { "a TCP option reaches the kernel",             __NR_setsockopt, { -1, 6, 1, 0, 4 }, PASSED },
    { "option 31 of sockets reaches the kernel",     __NR_setsockopt, { -1, SOL_SOCKET, 31, 0, 4 }, PASSED },
    { "TCP_ULP is refused",                          __NR_setsockopt, { -1, 6, 31, 0, 4 }, EPERM },
    { "TCP_ULP with upper bits is refused",          __NR_setsockopt, { -1, 6, HIGH | 31, 0, 4 }, EPERM },
    { "TCP_ULP with an upper level is refused",      __NR_setsockopt, { -1, HIGH | 6, 31, 0, 4 }, EPERM },

    { "FIONREAD reaches the kernel",                 __NR_ioctl, { -1, 0x541b }, PASSED },
    { "TIOCGWINSZ reaches the kernel",               __NR_ioctl, { -1, 0x5413 }, PASSED },
    { "TIOCSTI is refused",                          __NR_ioctl, { -1, 0x5412 }, EPERM },
    { "TIOCSTI with an upper bit is refused",        __NR_ioctl, { -1, HIGH | 0x5412 }, EPERM },
    { "TIOCSTI with all upper bits is refused",      __NR_ioctl, { -1, -4294967296ll | 0x5412 }, EPERM },
    { "TIOCLINUX is refused",                        __NR_ioctl, { -1, 0x541c }, EPERM },
    { "TIOCLINUX with an upper bit is refused",      __NR_ioctl, { -1, HIGH | 0x541c }, EPERM },
    { "TIOCSETD is refused",                         __NR_ioctl, { -1, 0x5423 }, EPERM },
    { "TIOCSETD with an upper bit is refused",       __NR_ioctl, { -1, HIGH | 0x5423 }, EPERM },
    { "TIOCCONS is refused",                         __NR_ioctl, { -1, 0x541d }, EPERM },

    { "a process may read memory of its own kind",   __NR_process_vm_readv, { 0x7ffffff, 0, 0, 0, 0, 0 }, PASSED },
    { "the agent's memory is not read",              __NR_process_vm_readv, { 1, 0, 0, 0, 0, 0 }, EPERM },
    { "nor written",                                 __NR_process_vm_writev, { HIGH | 1, 0, 0, 0, 0, 0 }, EPERM },
    { "the agent is not traced",                     __NR_ptrace, { 16, 1, 0, 0 }, EPERM },
    { "nor seized",                                  __NR_ptrace, { 0x4206, HIGH | 1, 0, 0 }, EPERM },
    { "a message is sent",                           __NR_sendto, { -1, 0, 0, 0x40, 0, 0 }, PASSED },
    { "a filter of a socket is refused",             __NR_setsockopt, { -1, SOL_SOCKET, 26, 0, 16 }, EPERM },
    { "a program of a socket is refused",            __NR_setsockopt, { -1, HIGH | SOL_SOCKET, HIGH | 50, 0, 4 }, EPERM },
    { "one for ports that are shared is refused",    __NR_setsockopt, { -1, SOL_SOCKET, 51, 0, 16 }, EPERM },
    { "a tunnel in UDP is refused",                  __NR_setsockopt, { -1, 17, 100, 0, 4 }, EPERM },

    { "a process may ask for its own limits",        __NR_prlimit64, { 0, 7 }, PASSED },
    { "the agent's limits are out of reach",         __NR_prlimit64, { 1, 7 }, EPERM },
    { "also with bits in the upper half",            __NR_prlimit64, { HIGH | 1, 7 }, EPERM },
    { "a filter may be added",                       __NR_seccomp, { 1, 0 }, PASSED },
    { "a filter for all threads may be added",       __NR_seccomp, { 1, 1 }, PASSED },
    { "a filter that is logged may be added",        __NR_seccomp, { 1, HIGH | 2 }, PASSED },
    { "sizes of notifications may be asked for",     __NR_seccomp, { 3, 0 }, PASSED },
    { "a filter with a listener is refused",         __NR_seccomp, { 1, 8 }, EPERM },
    { "a listener beside other flags is refused",    __NR_seccomp, { 1, 8 | 1 | 16 }, EPERM },
    { "a listener with upper bits is refused",       __NR_seccomp, { HIGH | 1, HIGH | 8 }, EPERM },
    { "a listener that waits is refused",            __NR_seccomp, { 1, 8 | 32 }, EPERM },
    { "an unknown flag of filters is refused",       __NR_seccomp, { 1, 64 }, EPERM },
    { "the highest flag of filters is refused",      __NR_seccomp, { 1, 1u << 31 }, EPERM },
    { "a process may be traced",                     __NR_ptrace, { 0x4206, -1, 0, 0 }, PASSED },
    { "trace options reach the kernel",              __NR_ptrace, { 0x4200, -1, 0, 1 }, PASSED },
    { "a tracer that suspends filters is refused",   __NR_ptrace, { 0x4206, -1, 0, 1 << 21 }, EPERM },
    { "the same as an option is refused",            __NR_ptrace, { 0x4200, -1, 0, HIGH | 1 << 21 }, EPERM },
    { "the same by the old request is refused",      __NR_ptrace, { 21, -1, 0, 1 << 21 }, EPERM },
    { "the common personality is taken",             __NR_personality, { 0 }, PASSED },
    { "the personality can be asked for",            __NR_personality, { 0xffffffff }, PASSED },
    { "a debugger can turn randomisation off",       __NR_personality, { ADDR_NO_RANDOMIZE }, PASSED },
    { "uname26 is taken",                            __NR_personality, { 0x0020000 }, PASSED },
    { "READ_IMPLIES_EXEC is refused",                __NR_personality, { 0x0400000 }, EPERM },
    { "READ_IMPLIES_EXEC beside another is refused", __NR_personality, { 0x0400000 | ADDR_NO_RANDOMIZE }, EPERM },
    { "ADDR_COMPAT_LAYOUT is refused",               __NR_personality, { 0x0200000 }, EPERM },
    { "MMAP_PAGE_ZERO is refused",                   __NR_personality, { 0x0100000 }, EPERM },
    { "PER_LINUX32 is refused",                      __NR_personality, { 8 }, EPERM },
    { "the personality of another system is refused",__NR_personality, { 6 }, EPERM },
    { "upper bits hide no personality",              __NR_personality, { HIGH | 0x0400000 }, EPERM },

    { "an x32 number does not exist",                0x40000000 | 39, { 0 }, ENOSYS },
    { "an x32 execve does not exist",                0x40000000 | 520, { 0 }, ENOSYS },
    { "number -1 does not exist",                    -1, { 0 }, ENOSYS },
    { "a number beyond all does not exist",          100000, { 0 }, ENOSYS },
};
/* clang-format on */

static void check_rules(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        int got = try_call(rules[i].number, rules[i].args);

        say(got == rules[i].want, rules[i].sentence, got);
    }
}

/* Every family but the four, every netlink protocol but route, every odd protocol of the internet. */
static void check_families(void)
{
    char sentence[128];
    int got, fd;

    for (int family = 0; family < 48; family++) {
        long long args[6] = { family, SOCK_DGRAM, 0 };

        if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
            continue;
        got = try_call(__NR_socket, args);
        (void) snprintf(sentence, sizeof sentence, "a socket of family %d is refused", family);
        say(got == EPERM, sentence, got);
    }
    for (int protocol = 1; protocol < 32; protocol++) {
        long long args[6] = { AF_NETLINK, SOCK_RAW, protocol };

        if (protocol == 9) /* audit: useradd asks for it, and continues when there is none */
            continue;
        got = try_call(__NR_socket, args);
        (void) snprintf(sentence, sizeof sentence, "netlink protocol %d is refused", protocol);
        say(got == EPERM, sentence, got);
    }
    fd = socket(AF_NETLINK, SOCK_RAW, 9);
    say(fd < 0 && errno == EPROTONOSUPPORT, "netlink protocol 9 is not supported",
        fd < 0 ? errno : PASSED);
    static const int odd[] = { 1 /* ICMP */,
                               33 /* DCCP */,
                               132 /* SCTP */,
                               136 /* UDP-Lite */,
                               262 /* MPTCP */,
                               115 /* L2TP */,
                               256 /* SMC */ };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        fd = socket(AF_INET, i == 0 ? SOCK_DGRAM : SOCK_STREAM, odd[i]);
        (void) snprintf(sentence, sizeof sentence, "internet protocol %d is not supported", odd[i]);
        say(fd < 0 && errno == EPROTONOSUPPORT, sentence, fd < 0 ? errno : PASSED);
    }
}

/* What comes with another answer than EPERM and ENOSYS: made on descriptors where the kernel would say something else. */
static void check_quiet(void)
{
    static const struct {
        const char *name;
        uint32_t number;
    } commands[] = {
#define IOCTL(name, number) { name, number },
        SECCOMP_IOCTLS
#undef IOCTL
    };
    static const uint32_t unknown[] = { 1 /* FIBMAP */, 0x5415 /* TIOCMGET */,
                                        0x8914 /* SIOCSIFFLAGS */, 0xc0185879 /* FITRIM */,
                                        0xff0b };
    char sentence[128], byte = 'x';
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    struct mmsghdr messages = { .msg_hdr = message };
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        exit(1);
    for (size_t i = 0; i < ARRAY_LEN(commands);
         i++) { /* of a closed descriptor: the kernel's answer is EBADF */
        bool passed = syscall(__NR_ioctl, -1, commands[i].number, 0) < 0 && errno == EBADF;

        (void) snprintf(sentence, sizeof sentence, "ioctl %s reaches the kernel", commands[i].name);
        say(passed, sentence, passed ? PASSED : errno);
    }
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        bool held = syscall(__NR_ioctl, -1, HIGH | unknown[i], 0) < 0 && errno == ENOTTY;

        (void) snprintf(sentence, sizeof sentence, "ioctl 0x%x is known to no file", unknown[i]);
        say(held, sentence, held ? PASSED : errno);
    }
#define URGENT(call, name)                                                                         \
    say((call) < 0 && errno == EOPNOTSUPP, "urgent data does not exist: " name, errno)
    URGENT(send(pair[0], "x", 1, MSG_OOB), "sendto");
    URGENT(sendmsg(pair[0], &message, MSG_OOB), "sendmsg");
    URGENT(sendmmsg(pair[0], &messages, 1, MSG_OOB), "sendmmsg");
    URGENT(recv(pair[1], &byte, 1, MSG_OOB | MSG_DONTWAIT), "recvfrom");
    URGENT(recvmsg(pair[1], &message, MSG_OOB | MSG_DONTWAIT), "recvmsg");
    URGENT(recvmmsg(pair[1], &messages, 1, MSG_OOB | MSG_DONTWAIT, NULL), "recvmmsg");
    say(send(pair[0], "x", 1, 0) == 1 && recv(pair[1], &byte, 1, 0) == 1, "other data does", errno);
    (void) close(pair[0]);
    (void) close(pair[1]);
}

static void check_futex(void)
{
    static uint32_t word, other;
    static const struct timespec soon = { .tv_nsec = 1000 };
    /* FUTEX_FD (2) is gone from the kernel; UNLOCK_PI (7) says EPERM to whoever has no lock. */
    static const int ops[] = { 0, 1, 3, 4, 5, 6, 8, 9, 10, 13 };
    static const int flags[] = { 0, 128, 256, 384 };
    char sentence[128];
    int got;

    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        long long args[6] = { (intptr_t) &word, ops[i], 7, (intptr_t) &soon, (intptr_t) &other, 1 };

        got = try_call(__NR_futex, args);
        (void) snprintf(sentence, sizeof sentence, "futex operation %d reaches the kernel", ops[i]);
        say(got == PASSED, sentence, got);
    }
    for (int op = 11; op <= 12; op++)
        for (size_t i = 0; i < ARRAY_LEN(flags); i++)
            for (int high = 0; high < 2; high++) {
                long long args[6] = { (intptr_t) &word,
                                      (high ? HIGH : 0) | op | flags[i],
                                      1,
                                      (intptr_t) &soon,
                                      (intptr_t) &other,
                                      0 };

                got = try_call(__NR_futex, args);
                (void) snprintf(sentence, sizeof sentence,
                                "futex operation %d with flags %d%s is refused", op, flags[i],
                                high ? " and upper bits" : "");
                say(got == EPERM, sentence, got);
            }
}

#ifdef __x86_64__
static void check_interrupt(void)
{
    long rc = 20; /* getpid of the 32-bit table */

    __asm__ volatile("int $0x80" : "+a"(rc) : : "memory", "r8", "r9", "r10", "r11");
    say(rc == -ENOSYS, "int 0x80 does not exist", rc < 0 ? (int) -rc : PASSED);
}
#else
static void check_interrupt(void)
{
}
#endif

int main(int argc, char **argv)
{
    if (prctl(PR_GET_SECCOMP) != 2) {
        (void) fprintf(stderr, "seccomp_probe: only for the inside of a sandbox\n");
        return 2;
    }
    if (argc == 4 && !strcmp(argv[1], "refuse")) {
        for (int i = atoi(argv[3]); i > 0; i--)
            if (syscall(atol(argv[2]), -1, -1, -1, -1, -1, -1) != -1 || errno != EPERM)
                return 1;
        return 0;
    }
    check_allowed();
    check_refused();
    check_unlisted();
    check_rules();
    check_families();
    check_quiet();
    check_futex();
    check_interrupt();
    return 0;
}
