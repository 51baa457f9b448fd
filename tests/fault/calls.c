#include "calls.h"

#include "base/own.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#define ROW(name, ...)                                                                             \
    {                                                                                              \
        __NR_##name, #name,                                                                        \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* clang-format off */
static const struct call calls[] = {
    ROW(openat,        EMFILE, ENOSPC), ROW(open,          EMFILE, ENOMEM), ROW(openat2,    EMFILE, ENOMEM),
    ROW(socket,        EMFILE, ENOMEM), ROW(socketpair,    EMFILE, ENOMEM), ROW(pipe2,      EMFILE, ENOMEM),
    ROW(accept4,       EMFILE, ENOMEM), ROW(clone3,        ENOMEM, EAGAIN), ROW(clone,      ENOMEM, EAGAIN),
    ROW(pidfd_open,    EMFILE, ENOMEM), ROW(dup2,          EMFILE, EBADF),  ROW(dup3,       EMFILE, EBADF),
    ROW(fcntl,         EMFILE, ENOMEM), ROW(epoll_ctl,     ENOMEM, ENOSPC), ROW(memfd_create, ENOMEM, EMFILE),
    ROW(read,          EIO,    ENOMEM), ROW(pread64,       EIO,    ENOMEM), ROW(readlink,   EIO,    ENOMEM),
    ROW(write,         ENOSPC, EIO),    ROW(pwrite64,      ENOSPC, EIO),    ROW(sendfile,   ENOSPC, EIO),
    ROW(ftruncate,     ENOSPC, EIO),    ROW(mkdirat,       ENOSPC, ENOMEM), ROW(mkdir,      ENOSPC, ENOMEM),
    ROW(unlinkat,      EIO,    ENOMEM), ROW(renameat,      ENOSPC, EIO),    ROW(fchownat,   EIO,    ENOSPC),
    ROW(fchmodat,      EIO,    ENOMEM), ROW(ioctl,         EIO,    ENOMEM), ROW(mount,      ENOMEM, EMFILE),
    ROW(umount2,       ENOMEM, EIO),    ROW(pivot_root,    ENOMEM, EIO),    ROW(fsopen,     EMFILE, ENOMEM),
    ROW(fsconfig,      ENOMEM, EIO),    ROW(fsmount,       EMFILE, ENOMEM), ROW(move_mount, ENOMEM, ENOSPC),
    ROW(open_tree,     EMFILE, ENOMEM), ROW(mount_setattr, ENOMEM, EIO),    ROW(unshare,    ENOMEM, ENOSPC),
    ROW(sendmsg,       ENOMEM, EMFILE), ROW(sendto,        ENOMEM, EIO),    ROW(recvmsg,    ENOMEM, EIO),
    ROW(recvfrom,      ENOMEM, EIO),    ROW(bind,          ENOSPC, ENOMEM), ROW(connect,    ENOMEM, EAGAIN),
    ROW(getsockopt,    ENOMEM, EIO),    ROW(fstatfs,       EIO,    ENOMEM), ROW(statfs,     EIO,    ENOMEM),
    ROW(newfstatat,    EIO,    ENOMEM), ROW(fstat,         EIO,    ENOMEM), ROW(faccessat2, EIO,    ENOMEM),
    ROW(setsid,        EPERM,  EPERM),  ROW(keyctl,        EDQUOT, ENOMEM), ROW(setgroups,  EPERM,  ENOMEM),
    ROW(setresuid,     EAGAIN, ENOMEM), ROW(setresgid,     EPERM,  ENOMEM), ROW(prctl,      EPERM,  ENOMEM),
    ROW(capset,        EPERM,  ENOMEM), ROW(capget,        EPERM,  ENOMEM), ROW(seccomp,    ENOMEM, EBUSY),
    ROW(prlimit64,     EPERM,  ENOMEM), ROW(getrlimit,     EFAULT, ENOMEM), ROW(setrlimit,  EPERM,  ENOMEM),
    ROW(chdir,         EIO,    ENOMEM), ROW(fchdir,        EIO,    ENOMEM), ROW(getcwd,     ENOMEM, ENOENT),
    ROW(execve,        ENOMEM, EIO),    ROW(execveat,      ENOMEM, EIO),    ROW(sethostname, EPERM, ENOMEM),
    ROW(lseek,         EIO,    ENOMEM), ROW(getdents64,    EIO,    ENOMEM), ROW(setns,      ENOMEM, EPERM),
    ROW(close_range,   EINVAL, ENOMEM), ROW(listen,        ENOMEM, EIO),    ROW(pidfd_send_signal, ENOMEM, EPERM),
    ROW(landlock_create_ruleset, ENOMEM, EMFILE), ROW(landlock_restrict_self, ENOMEM, EPERM),
    ROW(bpf,           ENOMEM, EPERM),  ROW(kill,          EPERM,  ENOMEM), ROW(brk, ENOMEM, ENOMEM),
    ROW(mmap,          ENOMEM, ENOMEM), ROW(getpid,        ENOMEM, ENOMEM),
    ROW(close,         EIO,    EIO),    ROW(epoll_wait,    EINTR,  EINTR),  ROW(waitid, ECHILD, ECHILD),
    ROW(wait4,         ECHILD, ECHILD), ROW(poll,          ENOMEM, ENOMEM), ROW(umask, ENOMEM, ENOMEM),
    ROW(clock_gettime, EINVAL, EINVAL), ROW(rt_sigprocmask, EINVAL, EINVAL),
    ROW(rt_sigaction,  EINVAL, EINVAL), ROW(munmap,        EINVAL, EINVAL), ROW(exit_group, EIO, EIO),
    ROW(setfsuid,      EPERM,  EPERM),  ROW(setfsgid,      EPERM,  EPERM),
    ROW(clock_nanosleep, EINTR, EINTR), ROW(gettid,        ENOMEM, ENOMEM), ROW(sysinfo, EFAULT, EFAULT),
};

/* Those that the kernel never refuses when they are called rightly. A close that is skipped leaves a
 * descriptor open, a wait that is skipped a zombie: both would be of our own making. */
static const uint64_t cannot_fail[] = {
    __NR_close,          __NR_munmap,       __NR_exit,        __NR_exit_group, __NR_epoll_wait,
    __NR_epoll_pwait,    __NR_clock_gettime, __NR_rt_sigprocmask, __NR_rt_sigaction, __NR_rt_sigreturn,
    __NR_getpid,         __NR_gettid,       __NR_getppid,     __NR_umask,      __NR_waitid,
    __NR_wait4,          __NR_poll,         __NR_setfsuid,    __NR_setfsgid,   __NR_clock_nanosleep,
    __NR_restart_syscall, __NR_pidfd_send_signal, __NR_kill,  __NR_futex,      __NR_close_range,
    __NR_capget,         __NR_set_robust_list, __NR_rseq,
};
/* clang-format on */

const struct call *call_find(uint64_t nr)
{
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (calls[i].nr == nr)
            return &calls[i];
    return NULL;
}

bool call_can_fail(uint64_t nr, const uint64_t args[6])
{
    for (size_t i = 0; i < ARRAY_LEN(cannot_fail); i++)
        if (cannot_fail[i] == nr)
            return false;
    if (nr == __NR_write && (args[0] == 1 || args[0] == 2))
        return false; /* the log */
    if (nr == __NR_epoll_ctl && args[1] != EPOLL_CTL_ADD)
        return false; /* allocates nothing */
    return true;
}
