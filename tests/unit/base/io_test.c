#include "base/io.h"

#include "base/own.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void reading_all_of_less_is_a_broken_pipe(void)
{
    char data[8];
    int fds[2];

    CHECK(pipe2(fds, O_CLOEXEC) == 0);
    CHECK(write(fds[1], "abc", 3) == 3);
    (void) close(fds[1]);
    errno = 0;
    CHECK_INT(io_read_all(fds[0], data, 8), -1);
    CHECK_INT(errno, EPIPE);
    (void) close(fds[0]);
}

/* A peer that sends a byte every few milliseconds, for ever. */
static pid_t drip(int fds[2])
{
    pid_t pid = -1;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    pid = fork();
    if (pid == 0) {
        (void) close(fds[0]);
        while (send(fds[1], "x", 1, MSG_NOSIGNAL) == 1)
            (void) usleep(5000);
        _exit(0);
    }
    (void) close(fds[1]);
    return pid;
}

static void a_peer_that_drips_wins_no_time(void)
{
    char data[100000];
    uint64_t begin;
    int fds[2];
    pid_t pid = drip(fds);

    begin = io_now_ms();
    errno = 0;
    CHECK_INT(io_read_until(fds[0], data, sizeof data, begin + 200), -1);
    CHECK_INT(errno, ETIMEDOUT);
    CHECK(io_now_ms() >= begin + 200);
    CHECK_INT(io_read_until(fds[0], data, 3, io_now_ms() + 60000),
              0); /* who asks for what comes gets it */
    (void) close(fds[0]);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

static void a_silent_peer_is_waited_for_until_then(void)
{
    uint64_t begin = io_now_ms();
    char data[8];
    int fds[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    errno = 0;
    CHECK_INT(io_read_until(fds[0], data, sizeof data, begin + 50), -1);
    CHECK_INT(errno, ETIMEDOUT);
    errno = 0;
    CHECK(!io_wait_until(fds[0], POLLIN, begin)); /* a moment that has passed is no endless wait */
    CHECK_INT(errno, ETIMEDOUT);
    (void) close(fds[1]);
    errno = 0;
    CHECK_INT(io_read_until(fds[0], data, sizeof data, begin + 60000), -1);
    CHECK_INT(errno, EPIPE);
    (void) close(fds[0]);
}

static void whole_writes_wait_for_a_descriptor_that_does_not_block(void)
{
    static char data[300000];
    int fds[2], status;
    pid_t pid;

    CHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
    pid = fork();
    if (pid == 0)
        _exit(io_read_all(fds[0], data, sizeof data) == 0 ? 0 : 1);
    CHECK_INT(io_write_all(fds[1], data, sizeof data), 0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    (void) close(fds[0]);
    (void) close(fds[1]);
}

static void small_files_come_as_text_and_are_cut_to_fit(void)
{
    char dir[] = "/tmp/cove-io-XXXXXX", text[8];
    int fd;

    CHECK(mkdtemp(dir) != NULL);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void) close(openat(fd, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK_INT(io_write_text(fd, "f", "0123456789"), 0);
    CHECK_INT(io_read_text(fd, "f", text, sizeof text), 7);
    CHECK_STR(text, "0123456");
    CHECK_INT(io_read_text(fd, "none", text, sizeof text), -1);
    CHECK(symlinkat("f", fd, "l") == 0);
    CHECK_INT(io_read_text(fd, "l", text, sizeof text), -1);
    CHECK_INT(io_write_text(fd, "l", "x"), -1);
    CHECK(mkfifoat(fd, "fifo", 0600) == 0);
    CHECK_INT(io_read_text(fd, "fifo", text, sizeof text), 0); /* and does not hang */
    (void) unlinkat(fd, "f", 0);
    (void) unlinkat(fd, "l", 0);
    (void) unlinkat(fd, "fifo", 0);
    (void) close(fd);
    (void) rmdir(dir);
}

static int open_fds(void)
{
    int count = 0;

    for (int fd = 0; fd < 200; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void descriptors_cross_a_socket_and_those_unwanted_are_closed(void)
{
    int pair[2], got[2] = { -1, -1 }, before, sent[3];
    size_t count = 0;
    char data[4];

    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    for (int i = 0; i < 3; i++)
        sent[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    before = open_fds();
    CHECK_INT(io_send_fds(pair[0], "hi", 2, sent, 3), 2);
    CHECK_INT(io_recv_fds(pair[1], data, sizeof data, got, 2, &count), 2);
    CHECK_INT(count, 2);
    CHECK_INT(open_fds(), before + 2);
    CHECK(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
    for (int i = 0; i < 3; i++)
        (void) close(sent[i]);
    (void) close(got[0]);
    (void) close(got[1]);
    (void) close(pair[0]);
    CHECK_INT(io_recv_fds(pair[1], data, sizeof data, got, 2, &count), 0);
    (void) close(pair[1]);
}

static void more_descriptors_than_fit_a_message_are_refused(void)
{
    int pair[2], fds[IO_FDS_MAX + 1] = { 0 };

    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK_INT(io_send_fds(pair[0], "x", 1, fds, IO_FDS_MAX + 1), -1);
    CHECK_INT(errno, EINVAL);
    (void) close(pair[0]);
    (void) close(pair[1]);
}

CHECK_MAIN(T(reading_all_of_less_is_a_broken_pipe), T(a_peer_that_drips_wins_no_time),
           T(a_silent_peer_is_waited_for_until_then),
           T(whole_writes_wait_for_a_descriptor_that_does_not_block),
           T(small_files_come_as_text_and_are_cut_to_fit),
           T(descriptors_cross_a_socket_and_those_unwanted_are_closed),
           T(more_descriptors_than_fit_a_message_are_refused))
