/* The keeper's table of descriptors, and a child that leaves it. */
#include "check.h"

#include "jail/low_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct low_fds low_fds;

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void numbers_in_use_are_not_taken(void)
{
    int fd;

    /* The program that starts this one may have left descriptors open at these numbers. */
    (void) syscall(__NR_close_range, 3u, ~0u, 0u);
    fd = fcntl(0, F_DUPFD_CLOEXEC, LOW_FDS_FIRST + 5);
    CHECK(fd >= LOW_FDS_FIRST && fd < LOW_FDS_END);
    low_fds_open(&low_fds);
    CHECK_INT(low_fds_take(&low_fds),
              0); /* children get a copy of all, as if there were no such numbers */
    low_fds_free(&low_fds, 0);
    CHECK(is_open(fd) && !is_open(LOW_FDS_FIRST));
    CHECK(close(fd) == 0);
}

/* A kernel without close_range, as a child of ours finds it. */
static bool forbid_close_range(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = sizeof code / sizeof code[0], .filter = code };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void a_kernel_that_lets_no_child_leave_gets_none(void)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        if (!forbid_close_range())
            _exit(2);
        low_fds_open(&low_fds);
        _exit(low_fds_take(&low_fds) != 0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK_INT(status, 0);
}

static void a_row_belongs_to_one_child_until_it_is_free(void)
{
    unsigned rows[LOW_FDS_ROWS];

    low_fds_open(&low_fds);
    for (unsigned i = 0; i < LOW_FDS_ROWS; i++) {
        rows[i] = low_fds_take(&low_fds);
        CHECK(rows[i] > 0);
        for (unsigned j = 0; j < i; j++)
            CHECK(rows[i] != rows[j]);
    }
    CHECK_INT(low_fds_take(&low_fds), 0);
    low_fds_free(&low_fds, rows[3]);
    CHECK_INT(low_fds_take(&low_fds), rows[3]);
    for (unsigned i = 0; i < LOW_FDS_ROWS; i++)
        low_fds_free(&low_fds, rows[i]);
    for (int fd = LOW_FDS_FIRST; fd < LOW_FDS_END; fd++)
        CHECK(is_open(fd)); /* no other descriptor gets the number */
}

/* Exit status of a child that shares our table until it leaves. */
static int in_child(int place, int high, int line)
{
    struct clone_args args = { .flags = CLONE_FILES, .exit_signal = SIGCHLD };
    pid_t pid = (pid_t) syscall(__NR_clone3, &args, sizeof args);
    int status = -1;

    if (pid == 0) {
        if (low_fds_unshare() < 0 || is_open(high) || !is_open(place))
            _exit(1);
        if (write(place, "x", 1) != 1 || close(place) < 0 || close(LOW_FDS_FIRST) < 0 ||
            is_open(line))
            _exit(2);
        _exit(0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_child_keeps_its_places_and_nothing_behind_them(void)
{
    unsigned row = low_fds_take(&low_fds);
    int pair[2], high, line, place;
    char byte = 0;

    CHECK(pipe2(pair, O_CLOEXEC) == 0);
    high = fcntl(0, F_DUPFD_CLOEXEC, LOW_FDS_END + 100);
    line = fcntl(pair[1], F_DUPFD_CLOEXEC, LOW_FDS_END);
    CHECK(high >= LOW_FDS_END && line >= LOW_FDS_END);
    place = low_fds_put(row, LOW_FDS_EACH - 1, line);
    CHECK(place > LOW_FDS_FIRST && place < LOW_FDS_END);
    CHECK_INT(in_child(place, high, line), 0);
    CHECK(is_open(high) && is_open(line) && is_open(place) && is_open(LOW_FDS_FIRST));
    CHECK(read(pair[0], &byte, 1) == 1 && byte == 'x');
    low_fds_free(&low_fds, row);
    CHECK(close(line) == 0 && close(pair[1]) == 0 && close(high) == 0);
    CHECK(read(pair[0], &byte, 1) == 0); /* an empty place holds nothing open */
    CHECK(close(pair[0]) == 0);
}

CHECK_MAIN(T(numbers_in_use_are_not_taken), T(a_kernel_that_lets_no_child_leave_gets_none),
           T(a_row_belongs_to_one_child_until_it_is_free),
           T(a_child_keeps_its_places_and_nothing_behind_them))
