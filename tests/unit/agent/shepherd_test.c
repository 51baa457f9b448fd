/* A shepherd that waits for a command, and the moment between its look at an order and its reading: it is traced, so that
 * the moment can be held. */
#include "agent/core/spawn_pack.h"
#include "agent/proc/shepherd.h"
#include "base/io.h"
#include "base/own.h"
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <linux/ptrace.h>

#define PATIENCE_MS 30000
#define STEPS       1000
#define OWN_FDS     20 /* away from the numbers that a shepherd uses */

static char program[] = "/no/such/program";
static char *argv_room[] = { NULL, program, NULL }, *envp[] = { NULL };
static int ours, theirs;

static size_t pack(char *out, size_t size)
{
    struct spawn spawn = { .user = { .name = "root", .home = "/" },
                           .argv = argv_room + 1,
                           .envp = envp };

    return spawn_pack(&spawn, out, size);
}

static void unburden(void *data)
{
    (void) data;
}

static void run_shepherd(void)
{
    static char bytes[8192];
    struct spawn spawn;
    sigset_t child;

    (void) sigemptyset(&child);
    (void) sigaddset(&child, SIGCHLD);
    (void) sigprocmask(SIG_BLOCK, &child, NULL);
    (void) dup2(open("/dev/null", O_RDWR | O_CLOEXEC), SHEPHERD_NULL);
    if (spawn_unpack(&spawn, bytes, pack(bytes, sizeof bytes)) < 0 ||
        ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        _exit(99);
    (void) raise(SIGSTOP);
    shepherd_main(&spawn, theirs, true, unburden, NULL);
}

/* What it says next; 0: nothing. */
static uint32_t next_news(void)
{
    struct pollfd p = { .fd = ours, .events = POLLIN };
    struct shepherd_news news = { .what = 0 };

    if (poll(&p, 1, PATIENCE_MS) > 0)
        (void) recv(ours, &news, sizeof news, MSG_DONTWAIT);
    return news.what;
}

static bool stops(pid_t pid)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFSTOPPED(status);
}

static pid_t begin_shepherd(void)
{
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    ours = fcntl(pair[0], F_DUPFD_CLOEXEC, OWN_FDS);
    theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, OWN_FDS);
    (void) close(pair[0]);
    (void) close(pair[1]);
    pid = fork();
    if (pid == 0)
        run_shepherd();
    CHECK(stops(pid));
    CHECK(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0);
    CHECK(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0);
    CHECK_INT(next_news(), NEWS_FAILED);
    return pid;
}

/* Until a system call of the stopped shepherd has returned an order. */
static bool gets_order(pid_t pid)
{
    for (int i = 0; i < STEPS; i++) {
        struct ptrace_syscall_info info = { .op = PTRACE_SYSCALL_INFO_NONE };

        if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0 || !stops(pid))
            return false;
        (void) ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
        if (info.op == PTRACE_SYSCALL_INFO_EXIT &&
            info.exit.rval == (int64_t) sizeof(struct shepherd_order))
            return true;
    }
    return false;
}

static void end_shepherd(pid_t pid)
{
    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, NULL, 0);
    own_close(&ours);
    own_close(&theirs);
}

static void a_start_that_comes_in_place_of_a_late_order_is_carried_out(void)
{
    static struct shepherd_start start;
    struct shepherd_order late = { .what = ORDER_SIGNAL, .signal = SIGTERM }, taken;
    size_t len = pack(start.spawn, sizeof start.spawn) + sizeof start.order;
    pid_t pid = begin_shepherd();

    CHECK(kill(pid, SIGSTOP) == 0 && stops(pid));
    CHECK(send(ours, &late, sizeof late, 0) > 0);
    CHECK(gets_order(pid));
    CHECK(recv(theirs, &taken, sizeof taken, MSG_DONTWAIT) > 0); /* as spare_take_back */
    CHECK_INT(taken.what, ORDER_SIGNAL);
    start.order = (struct shepherd_order){ .what = ORDER_START, .cookie = 2 };
    CHECK(send(ours, &start, len, 0) > 0);
    CHECK(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0);
    CHECK_INT(next_news(), NEWS_FAILED);
    end_shepherd(pid);
}

static void late_orders_are_passed_over(void)
{
    static struct shepherd_start start;
    struct shepherd_order late = { .what = ORDER_SIGNAL, .signal = SIGTERM };
    size_t len = pack(start.spawn, sizeof start.spawn) + sizeof start.order;
    pid_t pid = begin_shepherd();

    start.order = (struct shepherd_order){ .what = ORDER_START, .cookie = 2 };
    for (int i = 0; i < 3; i++)
        CHECK(send(ours, &late, sizeof late, 0) > 0);
    CHECK(send(ours, &start, len, 0) > 0);
    CHECK_INT(next_news(), NEWS_FAILED);
    end_shepherd(pid);
}

int main(void)
{
    static const struct check_test tests[] = {
        T(a_start_that_comes_in_place_of_a_late_order_is_carried_out),
        T(late_orders_are_passed_over),
    };

    return check_run(tests, ARRAY_LEN(tests));
}
