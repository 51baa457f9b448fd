/* lift.c - tries to lift the filter of a sandbox from inside, as a clever tenant would.
 *
 * It adds a filter of its own that asks a listener about every call that a sandbox refuses, listens, and answers "continue":
 * of two filters that ask, the kernel asks the newer one's listener. Then it tries what the filter is there to refuse.
 *
 *   lift          prints a line for each attempt, "held …" or "LIFTED …"; ends with 0 if all were held, else 1
 *
 * On a host, without a filter around it, everything gets through: that is how the test knows that it tries. */
#include "base/own.h"
#include "wire/seccomp_table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV 32
#endif

static const uint32_t refused[] = {
#define REFUSE(name) __NR_##name,
    SECCOMP_REFUSED
#undef REFUSE
        __NR_socket, /* by its arguments */
};

static int lifted;

static void say(const char *what, bool through, int errnum)
{
    lifted |= through;
    printf("%s %s%s%s\n", through ? "LIFTED" : "held", what, through ? "" : ": ",
           through ? "" : strerror(errnum));
    (void) fflush(stdout);
}

/* The newer filter: what it does not ask about is allowed, which an older one may still refuse. */
static int add_filter(unsigned flags)
{
    struct sock_filter code[2 * ARRAY_LEN(refused) + 8];
    struct sock_fprog program = { .filter = code };
    unsigned short n = 0;

    code[n++] =
        (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        code[n++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1);
        code[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    code[n++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = n;
    return (int) syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* ---- what the filter is there for ---- */

static long new_user(void)
{
    return unshare(CLONE_NEWUSER);
}
static long new_network(void)
{
    return unshare(CLONE_NEWUSER | CLONE_NEWNET);
}
static long new_mounts(void)
{
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0
               ? -1
               : mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}
static long packet(void)
{
    return unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 ? -1 : socket(AF_PACKET, SOCK_RAW, 0);
}
static long netfilter(void)
{
    return socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
}
static long vsock(void)
{
    return socket(AF_VSOCK, SOCK_STREAM, 0);
}
static long uring(void)
{
    char params[256] = { 0 };

    return syscall(__NR_io_uring_setup, 1, params);
}
static long fault_fd(void)
{
    return syscall(__NR_userfaultfd, 1 /* USER_MODE_ONLY */);
}
static long key(void)
{
    return syscall(__NR_add_key, "user", "lift", "x", 1, -1 /* thread's keyring */);
}
static long handle(void)
{
    struct {
        unsigned bytes;
        int type;
        char data[128];
    } h = { .bytes = 128 };
    int mount_id;

    return syscall(__NR_name_to_handle_at, AT_FDCWD, "/", &h, &mount_id, 0);
}

/* While it is saved, the agent is less closed than usual. */
static long agents_memory(void)
{
    return open("/proc/1/mem", O_RDWR);
}
static long agents_files(void)
{
    return open("/proc/1/fd/5", O_RDWR);
}

static const struct {
    const char *what;
    long (*call)(void);
} attempts[] = {
    { "a user namespace", new_user },
    { "a network namespace", new_network },
    { "mounts", new_mounts },
    { "a packet socket", packet },
    { "a netfilter socket", netfilter },
    { "a vsock socket", vsock },
    { "io_uring", uring },
    { "userfaultfd", fault_fd },
    { "a key", key },
    { "a file handle", handle },
    { "the agent's memory", agents_memory },
    { "the agent's descriptors", agents_files },
};

/* "Continue" to all that children ask, until the last is gone. */
static void answer(int listener, pid_t child)
{
    struct pollfd p = { .fd = listener, .events = POLLIN };
    char request[256], response[256];

    while (waitpid(child, NULL, WNOHANG) == 0) {
        struct seccomp_notif *notif = (void *) request;
        struct seccomp_notif_resp *resp = (void *) response;

        if (poll(&p, 1, 20) != 1)
            continue;
        memset(request, 0, sizeof request);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, notif) < 0)
            continue;
        memset(response, 0, sizeof response);
        resp->id = notif->id;
        resp->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        (void) ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, resp);
    }
}

static void attempt(size_t i, int listener)
{
    struct {
        long rc;
        int errnum;
    } result = { -1, ETIMEDOUT };
    int ends[2];
    pid_t pid;

    if (pipe(ends) < 0)
        return;
    pid = fork();
    if (pid == 0) {
        (void) alarm(10);
        result.rc = attempts[i].call();
        result.errnum = errno;
        IGNORE(write(ends[1], &result, sizeof result) < 0);
        _exit(0);
    }
    (void) close(ends[1]);
    if (listener >= 0)
        answer(listener, pid);
    else
        (void) waitpid(pid, NULL, 0);
    IGNORE(read(ends[0], &result, sizeof result) < 0);
    (void) close(ends[0]);
    say(attempts[i].what, result.rc >= 0, result.errnum);
}

int main(void)
{
    static const unsigned flags[] = {
        SECCOMP_FILTER_FLAG_NEW_LISTENER,
        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC |
            SECCOMP_FILTER_FLAG_TSYNC_ESRCH,
    };
    int listener = -1;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return 2;
    for (size_t i = 0; i < ARRAY_LEN(flags) && listener < 0; i++)
        listener = add_filter(flags[i]);
    if (listener < 0)
        say("a listener", false, errno);
    else
        printf("made a listener\n"); /* that it helps is to be seen */
    for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
        attempt(i, listener);
    return lifted;
}
