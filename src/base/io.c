#include "base/io.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FDS_OF_A_MESSAGE 253   /* SCM_MAX_FD of Linux */
#define POLL_MOST_MS     60000 /* of one poll(), whose milliseconds are an int */

static int wait_for(int fd, short events)
{
    struct pollfd p = { .fd = fd, .events = events };

    return poll(&p, 1, -1) < 0 && errno != EINTR ? -1 : 0;
}

int io_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n >= 0) {
            at += n;
            len -= (size_t) n;
        } else if (errno == EAGAIN) {
            if (wait_for(fd, POLLOUT) < 0)
                return -1;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

int io_read_all(int fd, void *data, size_t len)
{
    char *at = data;

    while (len > 0) {
        ssize_t n = read(fd, at, len);

        if (n > 0) {
            at += n;
            len -= (size_t) n;
        } else if (n == 0) {
            errno = EPIPE;
            return -1;
        } else if (errno == EAGAIN) {
            if (wait_for(fd, POLLIN) < 0)
                return -1;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

bool io_wait_until(int fd, short events, uint64_t until_ms)
{
    struct pollfd p = { .fd = fd, .events = events };

    for (;;) {
        uint64_t now = io_now_ms(), left = until_ms > now ? until_ms - now : 0;
        int n = poll(&p, 1, left > POLL_MOST_MS ? POLL_MOST_MS : (int) left);

        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
        if (io_now_ms() >= until_ms) {
            errno = ETIMEDOUT;
            return false;
        }
    }
}

/* A byte now and then wins no time: the moment is the same for all of them. */
int io_read_until(int fd, void *data, size_t len, uint64_t until_ms)
{
    char *at = data;

    while (len > 0) {
        ssize_t n;

        if (!io_wait_until(fd, POLLIN, until_ms))
            return -1;
        n = read(fd, at, len);
        if (n > 0) {
            at += n;
            len -= (size_t) n;
            continue;
        }
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n == 0)
            errno = EPIPE;
        return -1;
    }
    return 0;
}

ssize_t io_read_text(int dirfd, const char *path, char *out, size_t size)
{
    auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    size_t len = 0;

    if (fd < 0)
        return -1;
    while (len < size - 1) {
        ssize_t n = read(fd, out + len, size - 1 - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t) n;
    }
    out[len] = '\0';
    return (ssize_t) len;
}

int io_write_text(int dirfd, const char *path, const char *text)
{
    auto_close int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return -1;
    return io_write_all(fd, text, strlen(text));
}

uint64_t io_now_us(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000u + (uint64_t) now.tv_nsec / 1000u;
}

uint64_t io_real_ms(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

uint64_t io_now_ms(void)
{
    return io_now_us() / 1000u;
}

struct timespec io_after_ms(uint64_t ms)
{
    struct timespec at;

    (void) clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t) (ms / 1000);
    at.tv_nsec += (long) (ms % 1000) * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

ssize_t io_send_fds(int sock, const void *data, size_t len, const int *fds, size_t fd_count)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * IO_FDS_MAX)];
        struct cmsghdr align;
    } control;
    struct iovec iov = { .iov_base = (void *) (uintptr_t) data, .iov_len = len };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    ssize_t n;

    if (fd_count > IO_FDS_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (fd_count > 0) {
        struct cmsghdr *cmsg;

        memset(&control, 0, sizeof control);
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * fd_count);
    }
    do {
        n = sendmsg(sock, &msg, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* A peer may send a socket that is set to wait for its data when it is closed last: not at our expense. */
static void close_foreign(int fd)
{
    struct linger at_once = { .l_onoff = 1, .l_linger = 0 };

    (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void) close(fd);
}

/* Keeps what fits, closes the rest: a peer may send more descriptors than it was asked for. */
static void collect_fds(struct msghdr *msg, int *ret_fds, size_t max_fds, size_t *ret_fd_count)
{
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
        size_t count;

        if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
            continue;
        count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof fd);
            if (*ret_fd_count < max_fds)
                ret_fds[(*ret_fd_count)++] = fd;
            else
                close_foreign(fd);
        }
    }
}

ssize_t io_recv_fds_with(int sock, void *data, size_t size, int *ret_fds, size_t max_fds,
                         size_t *ret_fd_count, int flags)
{
    union {
        /* As many as one message can hold: what is cut off would be closed by the kernel, lingering. */
        char bytes[CMSG_SPACE(sizeof(int) * FDS_OF_A_MESSAGE)];
        struct cmsghdr align;
    } control;
    struct iovec iov = { .iov_base = data, .iov_len = size };
    struct msghdr msg = { .msg_iov = &iov,
                          .msg_iovlen = 1,
                          .msg_control = control.bytes,
                          .msg_controllen = sizeof control.bytes };
    ssize_t n;

    *ret_fd_count = 0;
    do {
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | flags);
    } while (n < 0 && errno == EINTR);
    if (n >= 0)
        collect_fds(&msg, ret_fds, max_fds, ret_fd_count);
    return n;
}

ssize_t io_recv_fds(int sock, void *data, size_t size, int *ret_fds, size_t max_fds,
                    size_t *ret_fd_count)
{
    return io_recv_fds_with(sock, data, size, ret_fds, max_fds, ret_fd_count, 0);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

/* Up to INT_MAX, the largest number that there can be: gVisor refuses an end above it. */
int io_close_from(int first, bool on_exec)
{
    return (int) syscall(__NR_close_range, (unsigned) first, (unsigned) INT_MAX,
                         on_exec ? 4u /* CLOSE_RANGE_CLOEXEC */ : 0u);
}

void io_keep_only(int *fds, size_t count)
{
    int last = 2;

    qsort(fds, count, sizeof *fds, by_number);
    for (size_t i = 0; i < count; i++) {
        if (fds[i] <= last)
            continue;
        if (fds[i] > last + 1 && syscall(__NR_close_range, last + 1, fds[i] - 1, 0) < 0)
            _exit(1);
        last = fds[i];
    }
    if (io_close_from(last + 1, false) < 0)
        _exit(1);
}
