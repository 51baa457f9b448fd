/* seccomp_table.h - which system calls a sandbox may make: one row each.
 *
 * Three answers. ALLOW: the kernel does it. REFUSE: known to be dangerous; the caller gets EPERM, and
 * the refusal is counted and reported with the program's name. Whatever has no row gets ENOSYS,
 * so that a call invented tomorrow is off today and programs fall back as on an older kernel.
 * Calls with rules about their arguments are in jail/seccomp.c (`rules`), the commands of ioctl in ioctl_table.h.
 *
 * The old asynchronous I/O (io_setup …) has no row: its contexts are counted for the whole host, so that
 * one sandbox could take them from all; databases continue without. Neither has modify_ldt: segments are for 16 and 32-bit
 * programs, which have no calls here.
 *
 * Included more than once, with ALLOW and REFUSE defined by the includer: the filter is made of
 * these lists, and so is the test that executes every row. */
#ifndef COVE_WIRE_SECCOMP_TABLE_H
#define COVE_WIRE_SECCOMP_TABLE_H

#include <sys/syscall.h>

#ifndef __NR_quotactl_fd
#define __NR_quotactl_fd 443 /* newer than musl 1.2.3 */
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452 /* newer than the headers of Debian 12 */
#endif

/* clang-format off */
#define SECCOMP_ALLOWED \
    /* bytes in and out */ \
    ALLOW(read) ALLOW(write) ALLOW(readv) ALLOW(writev) ALLOW(pread64) ALLOW(pwrite64) \
    ALLOW(preadv) ALLOW(pwritev) ALLOW(preadv2) ALLOW(pwritev2) ALLOW(sendfile) ALLOW(splice) \
    ALLOW(tee) ALLOW(copy_file_range) ALLOW(lseek) ALLOW(ftruncate) ALLOW(truncate) \
    ALLOW(fallocate) ALLOW(fsync) ALLOW(fdatasync) ALLOW(sync) ALLOW(syncfs) \
    ALLOW(sync_file_range) ALLOW(fadvise64) ALLOW(readahead) \
    /* descriptors */ \
    ALLOW(open) ALLOW(openat) ALLOW(openat2) ALLOW(creat) ALLOW(close) ALLOW(close_range) \
    ALLOW(dup) ALLOW(dup2) ALLOW(dup3) ALLOW(fcntl) ALLOW(flock) ALLOW(pipe) ALLOW(pipe2) \
    ALLOW(poll) ALLOW(ppoll) ALLOW(select) ALLOW(pselect6) ALLOW(epoll_create) \
    ALLOW(epoll_create1) ALLOW(epoll_ctl) ALLOW(epoll_wait) ALLOW(epoll_pwait) \
    ALLOW(epoll_pwait2) ALLOW(eventfd) ALLOW(eventfd2) ALLOW(signalfd) ALLOW(signalfd4) \
    ALLOW(timerfd_create) ALLOW(timerfd_settime) ALLOW(timerfd_gettime) ALLOW(inotify_init) \
    ALLOW(inotify_init1) ALLOW(inotify_add_watch) ALLOW(inotify_rm_watch) \
    /* files by name */ \
    ALLOW(access) ALLOW(faccessat) ALLOW(faccessat2) ALLOW(stat) ALLOW(fstat) ALLOW(lstat) \
    ALLOW(newfstatat) ALLOW(statx) ALLOW(statfs) ALLOW(fstatfs) ALLOW(getdents) ALLOW(getdents64) \
    ALLOW(getcwd) ALLOW(chdir) ALLOW(fchdir) ALLOW(mkdir) ALLOW(mkdirat) ALLOW(rmdir) \
    ALLOW(unlink) ALLOW(unlinkat) ALLOW(rename) ALLOW(renameat) ALLOW(renameat2) ALLOW(link) \
    ALLOW(linkat) ALLOW(symlink) ALLOW(symlinkat) ALLOW(readlink) ALLOW(readlinkat) ALLOW(chmod) \
    ALLOW(fchmod) ALLOW(fchmodat) ALLOW(fchmodat2) ALLOW(chown) ALLOW(fchown) ALLOW(lchown) \
    ALLOW(fchownat) ALLOW(utime) ALLOW(utimes) ALLOW(utimensat) ALLOW(futimesat) ALLOW(mknod) \
    ALLOW(mknodat) ALLOW(umask) ALLOW(chroot) \
    /* extended attributes */ \
    ALLOW(getxattr) ALLOW(lgetxattr) ALLOW(fgetxattr) ALLOW(setxattr) ALLOW(lsetxattr) \
    ALLOW(fsetxattr) ALLOW(listxattr) ALLOW(llistxattr) ALLOW(flistxattr) ALLOW(removexattr) \
    ALLOW(lremovexattr) ALLOW(fremovexattr) \
    /* memory */ \
    ALLOW(mmap) ALLOW(munmap) ALLOW(mprotect) ALLOW(mremap) ALLOW(brk) ALLOW(madvise) \
    ALLOW(mincore) ALLOW(msync) ALLOW(mlock) ALLOW(mlock2) ALLOW(munlock) ALLOW(mlockall) \
    ALLOW(munlockall) ALLOW(membarrier) ALLOW(memfd_create) ALLOW(pkey_alloc) ALLOW(pkey_free) \
    ALLOW(pkey_mprotect) ALLOW(get_mempolicy) \
    /* processes */ \
    ALLOW(fork) ALLOW(vfork) ALLOW(execve) ALLOW(execveat) ALLOW(exit) ALLOW(exit_group) \
    ALLOW(wait4) ALLOW(waitid) ALLOW(kill) ALLOW(tkill) ALLOW(tgkill) ALLOW(pidfd_open) \
    ALLOW(pidfd_send_signal) \
    /* signals and waiting */ \
    ALLOW(rt_sigaction) ALLOW(rt_sigprocmask) ALLOW(rt_sigreturn) ALLOW(rt_sigpending) \
    ALLOW(rt_sigtimedwait) ALLOW(rt_sigqueueinfo) ALLOW(rt_tgsigqueueinfo) ALLOW(rt_sigsuspend) \
    ALLOW(sigaltstack) ALLOW(pause) ALLOW(nanosleep) ALLOW(clock_nanosleep) \
    ALLOW(restart_syscall) \
    /* who am I */ \
    ALLOW(getpid) ALLOW(getppid) ALLOW(gettid) ALLOW(getuid) ALLOW(geteuid) ALLOW(getgid) \
    ALLOW(getegid) ALLOW(getresuid) ALLOW(getresgid) ALLOW(getgroups) ALLOW(getpgrp) \
    ALLOW(getpgid) ALLOW(getsid) ALLOW(setpgid) ALLOW(setsid) ALLOW(setuid) ALLOW(setgid) \
    ALLOW(setreuid) ALLOW(setregid) ALLOW(setresuid) ALLOW(setresgid) ALLOW(setgroups) \
    ALLOW(setfsuid) ALLOW(setfsgid) ALLOW(capget) ALLOW(capset) \
    /* threads */ \
    ALLOW(prctl) ALLOW(arch_prctl) ALLOW(set_tid_address) ALLOW(set_robust_list) \
    ALLOW(get_robust_list) ALLOW(futex_waitv) ALLOW(rseq) \
    /* scheduling and limits */ \
    ALLOW(sched_yield) ALLOW(sched_getaffinity) ALLOW(sched_setaffinity) ALLOW(sched_getparam) \
    ALLOW(sched_setparam) ALLOW(sched_getscheduler) ALLOW(sched_setscheduler) \
    ALLOW(sched_get_priority_max) ALLOW(sched_get_priority_min) ALLOW(sched_rr_get_interval) \
    ALLOW(sched_getattr) ALLOW(sched_setattr) ALLOW(getpriority) ALLOW(setpriority) \
    ALLOW(ioprio_get) ALLOW(ioprio_set) ALLOW(getrlimit) ALLOW(setrlimit) \
    ALLOW(getrusage) ALLOW(times) ALLOW(sysinfo) ALLOW(uname) ALLOW(getrandom) ALLOW(getcpu) \
    /* second fences that programs put up for themselves; seccomp() has a rule */ \
    ALLOW(landlock_create_ruleset) ALLOW(landlock_add_rule) \
    ALLOW(landlock_restrict_self) \
    /* System V and POSIX IPC, in the sandbox's own namespace */ \
    ALLOW(shmget) ALLOW(shmat) ALLOW(shmdt) ALLOW(shmctl) ALLOW(semget) ALLOW(semop) \
    ALLOW(semtimedop) ALLOW(semctl) ALLOW(msgget) ALLOW(msgsnd) ALLOW(msgrcv) ALLOW(msgctl) \
    ALLOW(mq_open) ALLOW(mq_unlink) ALLOW(mq_timedsend) ALLOW(mq_timedreceive) ALLOW(mq_notify) \
    ALLOW(mq_getsetattr) \
    /* sockets, once made: socket(), setsockopt() and messages have rules */ \
    ALLOW(bind) ALLOW(listen) ALLOW(accept) ALLOW(accept4) ALLOW(connect) \
    ALLOW(getsockname) ALLOW(getpeername) \
    ALLOW(shutdown) ALLOW(getsockopt) \
    /* clocks and timers */ \
    ALLOW(clock_gettime) ALLOW(clock_getres) ALLOW(gettimeofday) ALLOW(time) ALLOW(timer_create) \
    ALLOW(timer_settime) ALLOW(timer_gettime) ALLOW(timer_getoverrun) ALLOW(timer_delete) \
    ALLOW(alarm) ALLOW(getitimer) ALLOW(setitimer)

/* A listener answers these, so that an operator sees the attempt. */
#define SECCOMP_REFUSED \
    /* mounts: the jail's walls */ \
    REFUSE(mount) REFUSE(umount2) REFUSE(pivot_root) REFUSE(move_mount) REFUSE(open_tree) \
    REFUSE(fsopen) REFUSE(fsconfig) REFUSE(fsmount) REFUSE(fspick) REFUSE(mount_setattr) \
    /* fresh namespaces bring every capability within them */ \
    REFUSE(unshare) REFUSE(setns) \
    /* kernel surfaces that most escapes of the last years went through */ \
    REFUSE(bpf) REFUSE(perf_event_open) REFUSE(userfaultfd) REFUSE(io_uring_setup) \
    REFUSE(io_uring_enter) REFUSE(io_uring_register) \
    /* keyrings are not namespaced by what we have */ \
    REFUSE(keyctl) REFUSE(add_key) REFUSE(request_key) \
    /* the machine itself */ \
    REFUSE(kexec_load) REFUSE(kexec_file_load) REFUSE(init_module) REFUSE(finit_module) \
    REFUSE(delete_module) REFUSE(reboot) REFUSE(swapon) REFUSE(swapoff) REFUSE(acct) \
    REFUSE(quotactl) REFUSE(quotactl_fd) REFUSE(syslog) REFUSE(iopl) REFUSE(ioperm) \
    REFUSE(adjtimex) REFUSE(clock_adjtime) REFUSE(clock_settime) REFUSE(settimeofday) \
    REFUSE(sethostname) REFUSE(setdomainname) REFUSE(vhangup) \
    /* files past their names, whole-file-system watches */ \
    REFUSE(name_to_handle_at) REFUSE(open_by_handle_at) REFUSE(fanotify_init) \
    REFUSE(fanotify_mark) REFUSE(lookup_dcookie) REFUSE(ustat) REFUSE(nfsservctl) \
    /* other processes' insides, and pages moved about to win races */ \
    REFUSE(kcmp) REFUSE(pidfd_getfd) REFUSE(process_madvise) REFUSE(move_pages) \
    REFUSE(migrate_pages) REFUSE(mbind) REFUSE(set_mempolicy) REFUSE(vmsplice)
/* clang-format on */

#endif
