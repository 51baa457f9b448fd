/* io.h - whole reads and writes, deadlines, and descriptors over unix sockets. */
#ifndef COVE_BASE_IO_H
#define COVE_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* All of it or -1 with errno; a peer that closes early is EPIPE. EINTR is retried; a descriptor
 * that is set O_NONBLOCK is waited for, and so is one with a time limit of its own (SO_RCVTIMEO): without an end. */
int io_write_all(int fd, const void *data, size_t len);
int io_read_all(int fd, void *data, size_t len);

/* The same with an end: until_ms is a moment of io_now_ms(), for all bytes together, so that a peer that sends them one by one
 * cannot extend it. Then -1 with ETIMEDOUT. For peers that are not trusted to answer. */
int io_read_until(int fd, void *data, size_t len, uint64_t until_ms);
/* true: one of the events, or the peer's end. false: errno, ETIMEDOUT at that moment. */
bool io_wait_until(int fd, short events, uint64_t until_ms);

/* Up to size bytes of a whole small file. The text is NUL-terminated; returns its length or -1. */
ssize_t io_read_text(int dirfd, const char *path, char *out, size_t size);
int io_write_text(int dirfd, const char *path, const char *text);

/* Milliseconds and microseconds of CLOCK_MONOTONIC. */
uint64_t io_now_ms(void);
uint64_t io_now_us(void);
/* Milliseconds since 1970, which may be set. */
uint64_t io_real_ms(void);
/* That much later, on CLOCK_MONOTONIC: for waits that a clock that is set must not stretch. */
struct timespec io_after_ms(uint64_t ms);

#define IO_FDS_MAX 32

/* One message with descriptors on a unix socket. Receiving closes descriptors that do not fit, and
 * marks all others O_CLOEXEC. recv returns the length, 0 at the end, -1 with errno. The
 * flags are recvmsg's. */
ssize_t io_send_fds(int sock, const void *data, size_t len, const int *fds, size_t fd_count);
ssize_t io_recv_fds(int sock, void *data, size_t size, int *ret_fds, size_t max_fds,
                    size_t *ret_fd_count);
ssize_t io_recv_fds_with(int sock, void *data, size_t size, int *ret_fds, size_t max_fds,
                         size_t *ret_fd_count, int flags);

/* Closes every descriptor from `first` on, or with `on_exec` has exec close them. -1 with errno: some may be open still, so a child must not
 * continue. */
int io_close_from(int first, bool on_exec);

/* For a child: whatever it must not hold is closed, but these and the first three. Sorts fds; -1 among them is
 * fine. A child that cannot close them ends (status 1). */
void io_keep_only(int *fds, size_t count);

#endif
