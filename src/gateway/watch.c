#include "gateway/watch.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "client/gateway_start.h"
#include "egress/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define WAIT_LEAST_MS 100
#define WAIT_MOST_MS  5000
#define HEALTHY_MS    10000 /* a program that lived that long is started again at once */

struct watch {
    struct gateway_start start;
    int signal_fd;
    uint64_t begun_ms, wait_ms;
    pid_t pid; /* 0: none */
};

static void find_user(struct watch *w)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam(GATEWAY_USER) : NULL;

    if (geteuid() != 0) {
        log_line(LOG_WARNING, "the gateway has the server's user id: 'cove up' gives it its own");
        return;
    }
    w->start.uid = user && user->pw_uid != 0 ? user->pw_uid : EGRESS_UID;
    w->start.gid = user && user->pw_uid != 0 ? user->pw_gid : EGRESS_UID;
}

/* In the child. */
__attribute__((noreturn)) static void become(const struct watch *w, pid_t parent)
{
    sigset_t none;

    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    /* After setuid, which undoes the signal: the gateway ends with its watcher, also with one that has ended by now. */
    if (gateway_drop_privilege(&w->start) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
        getppid() == parent)
        gateway_exec(&w->start);
    log_line(LOG_ERROR, "the gateway cannot be started: %s", strerror(errno));
    _exit(126);
}

static void start(struct watch *w)
{
    pid_t self = getpid();

    w->begun_ms = io_now_ms();
    w->pid = fork();
    if (w->pid == 0)
        become(w, self);
    if (w->pid < 0) {
        w->pid = 0;
        log_line(LOG_ERROR, "the gateway cannot be started: %s", strerror(errno));
    }
}

static void ended(struct watch *w, int status)
{
    bool healthy = io_now_ms() - w->begun_ms >= HEALTHY_MS;

    w->pid = 0;
    w->wait_ms = healthy || w->wait_ms == 0      ? WAIT_LEAST_MS
                 : w->wait_ms * 2 > WAIT_MOST_MS ? WAIT_MOST_MS
                                                 : w->wait_ms * 2;
    if (WIFSIGNALED(status))
        log_line(LOG_WARNING, "the gateway was ended by signal %d; again in %" PRIu64 " ms",
                 WTERMSIG(status), w->wait_ms);
    else
        log_line(LOG_WARNING, "the gateway ended with exit code %d; again in %" PRIu64 " ms",
                 WEXITSTATUS(status), w->wait_ms);
    w->begun_ms = io_now_ms();
}

/* False: coved is gone. */
static bool wait_for_news(struct watch *w)
{
    struct pollfd polls[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                              { .fd = w->signal_fd, .events = POLLIN } };
    uint64_t gone = io_now_ms() - w->begun_ms;
    struct signalfd_siginfo info;
    int left = w->pid != 0 ? -1 : gone >= w->wait_ms ? 0 : (int) (w->wait_ms - gone);

    if (poll(polls, ARRAY_LEN(polls), left) < 0 && errno != EINTR)
        return false;
    while (read(w->signal_fd, &info, sizeof info) == (ssize_t) sizeof info)
        ;
    return polls[0].revents == 0;
}

int watch(int listen_fd, struct err *err)
{
    struct watch w = { .start = { .listen_fd = listen_fd, .peer = getuid() } };
    sigset_t set;
    int status;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGCHLD);
    (void) sigprocmask(SIG_SETMASK, &set, NULL);
    w.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    w.start.program_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (w.signal_fd < 0 || w.start.program_fd < 0)
        return err_sys(err, errno, "watch the gateway");
    find_user(&w);
    do {
        if (w.pid != 0 && waitpid(w.pid, &status, WNOHANG) == w.pid)
            ended(&w, status);
        if (w.pid == 0 && io_now_ms() - w.begun_ms >= w.wait_ms)
            start(&w);
    } while (wait_for_news(&w));
    if (w.pid != 0) {
        (void) kill(w.pid, SIGKILL);
        (void) waitpid(w.pid, NULL, 0);
    }
    return 0;
}
