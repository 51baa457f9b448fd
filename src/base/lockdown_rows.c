/* The rows that programs have in common. They are generous where a C library chooses between several calls for the same thing
 * (open and openat, stat and statx, futex and its successors), and silent about everything that makes a process. */
#include "base/lockdown.h"

#include "base/own.h"

#include <linux/prctl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* Newer than the headers of Debian 12: the C library of the next release may call them. */
#ifndef __NR_map_shadow_stack
#define __NR_map_shadow_stack 453
#endif
#ifndef __NR_futex_wake
#define __NR_futex_wake 454
#endif
#ifndef __NR_futex_wait
#define __NR_futex_wait 455
#endif
#ifndef __NR_futex_requeue
#define __NR_futex_requeue 456
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

#define ROWS(name, why)                                                                            \
    const struct lockdown_rows lockdown_##name = { why, name##_calls, ARRAY_LEN(name##_calls) }

/* clang-format off */
static const struct lockdown_call runtime_calls[] = {
    CALL(brk), CALL(munmap), CALL(mremap), CALL(madvise), CALL(msync), CALL(map_shadow_stack),
    CALL(arch_prctl), CALL(set_tid_address), CALL(rseq), CALL(membarrier), CALL(exit), CALL(exit_group),
    CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(rt_sigtimedwait), CALL(sigaltstack),
    CALL(tgkill), /* abort */
    CALL(restart_syscall),
    CALL(getpid), CALL(gettid), CALL(getppid), CALL(getuid), CALL(geteuid), CALL(getgid), CALL(getegid),
    CALL(getrandom), CALL(uname), CALL(sysinfo), CALL(getrusage), CALL(times), CALL(getcpu),
    CALL(sched_getaffinity), CALL(sched_yield), CALL(getrlimit), CALL(setrlimit),
    CALL_IF(prlimit64, CALL_IS, 0, 0), /* its own limits */
    CALL(clock_gettime), CALL(clock_getres), CALL(clock_nanosleep), CALL(nanosleep), CALL(gettimeofday), CALL(time),
    CALL_IF(prctl, CALL_IS, 0, PR_SET_NAME), CALL_IF(prctl, CALL_IS, 0, PR_GET_NAME),
    CALL_IF(prctl, CALL_IS, 0, PR_SET_VMA), /* the allocator names its memory */
    CALL_IF(prctl, CALL_IS, 0, PR_GET_DUMPABLE),
};
ROWS(runtime, "the C library: memory, signals, time, identity");

/* clone3, whose flags no filter sees, answers ENOSYS, and libraries use clone. */
static const struct lockdown_call threads_calls[] = {
    CALL_IF(clone, CALL_HAS, 0, CLONE_THREAD),
    CALL(futex), CALL(futex_waitv), CALL(futex_wake), CALL(futex_wait), CALL(futex_requeue),
    CALL(set_robust_list), CALL(get_robust_list), CALL(setpriority), CALL(getpriority),
};
ROWS(threads, "threads of its own, and no processes");

static const struct lockdown_call bytes_calls[] = {
    CALL(read), CALL(write), CALL(readv), CALL(writev), CALL(pread64), CALL(pwrite64), CALL(preadv), CALL(pwritev),
    CALL(preadv2), CALL(pwritev2), CALL(lseek), CALL(sendfile), CALL(copy_file_range), CALL(close), CALL(close_range),
    CALL(dup), CALL(dup2), CALL(dup3), CALL(fcntl), CALL(flock), CALL(fsync), CALL(fdatasync), CALL(ftruncate),
    CALL(fallocate), CALL(fadvise64), CALL(fstat), CALL(fstatfs), CALL(getdents64), CALL(poll), CALL(ppoll), CALL(select),
    CALL(pselect6), CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_wait), CALL(epoll_pwait), CALL(epoll_pwait2),
    CALL(eventfd2), CALL(pipe), CALL(pipe2), CALL(timerfd_create), CALL(timerfd_settime), CALL(timerfd_gettime), CALL(signalfd4),
    CALL_IF(ioctl, CALL_IS, 1, TCGETS),  /* whether standard output is a terminal */
    CALL_IF(ioctl, CALL_IS, 1, FIONREAD), CALL_IF(ioctl, CALL_IS, 1, FIONBIO),
    CALL_IF(ioctl, CALL_IS, 1, TIOCOUTQ), /* SIOCOUTQ is the same number */
};
ROWS(bytes, "what is open already");

static const struct lockdown_call names_calls[] = {
    CALL(open), CALL(openat), CALL(openat2), CALL(stat), CALL(lstat), CALL(newfstatat), CALL(statx), CALL(statfs),
    CALL(access), CALL(faccessat), CALL(faccessat2), CALL(readlink), CALL(readlinkat), CALL(getcwd),
    CALL(mkdir), CALL(mkdirat), CALL(rmdir), CALL(unlink), CALL(unlinkat), CALL(rename), CALL(renameat),
    CALL(renameat2), CALL(fchmod), CALL(fchmodat), CALL(fchmodat2), CALL(fchown), CALL(umask), CALL(utimensat),
};
ROWS(names, "files by name, as far as Landlock and the user id let it");

static const struct lockdown_call sockets_calls[] = {
    CALL_IF(socketpair, CALL_IS, 0, 1 /* AF_UNIX */),
    CALL(bind), CALL(listen), CALL(accept), CALL(accept4), CALL(connect), CALL(shutdown), CALL(getsockname),
    CALL(getpeername), CALL(getsockopt), CALL(setsockopt), CALL(sendto), CALL(recvfrom), CALL(sendmsg), CALL(recvmsg),
    CALL(sendmmsg), CALL(recvmmsg),
};
ROWS(sockets, "connections");

static const struct lockdown_call data_only_calls[] = {
    CALL_IF(mmap, CALL_HAS_NONE, 2, PROT_EXEC), CALL_IF(mprotect, CALL_HAS_NONE, 2, PROT_EXEC),
};
ROWS(data_only, "memory for data: injected code cannot be made executable");

static const struct lockdown_call code_calls[] = { CALL(mmap), CALL(mprotect) };
ROWS(code, "memory, also for libraries that are loaded later");
/* clang-format on */
