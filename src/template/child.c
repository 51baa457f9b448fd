#include "template/child.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Theory: init (PID 1 of a new pid namespace, in a mount namespace of its own) starts the program
 * and reaps. When the program ends, init ends, and the kernel ends every process in the namespace;
 * the mount namespace goes with the last of them. init dies with us (PDEATHSIG), and to interrupt
 * is to kill init. Terminal signals reach only us: the program has its own session. */

#define LINE_MAX_BYTES 1024
#define EXIT_NO_EXEC   127

static int signal_fd = -1;
static int interrupted;
static sigset_t old_mask;

static void ending_signals(sigset_t *set)
{
    (void) sigemptyset(set);
    (void) sigaddset(set, SIGINT);
    (void) sigaddset(set, SIGTERM);
    (void) sigaddset(set, SIGHUP);
}

int child_signals_init(struct err *err)
{
    sigset_t set;

    ending_signals(&set);
    interrupted = 0;
    if (sigprocmask(SIG_BLOCK, &set, &old_mask) < 0)
        return err_sys(err, errno, "block signals");
    signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0)
        return err_sys(err, errno, "wait for signals");
    return 0;
}

void child_signals_done(void)
{
    if (signal_fd < 0)
        return;
    (void) close(signal_fd);
    signal_fd = -1;
    (void) sigprocmask(SIG_SETMASK, &old_mask, NULL);
}

int child_interrupted(void)
{
    struct signalfd_siginfo info;

    if (!interrupted && signal_fd >= 0 && read(signal_fd, &info, sizeof info) == sizeof info)
        interrupted = (int) info.ssi_signo;
    return interrupted;
}

/* A clean environment: what the caller has set could change what gets built. Proxies and a
 * registry of their own are how some hosts reach their mirrors. */
static char **clean_env(const char *const *extra)
{
    static const char *const fixed[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/root",
        "LANG=C.UTF-8",
        "LC_ALL=C.UTF-8",
        "DEBIAN_FRONTEND=noninteractive",
    };
    static const char *const passed[] = { "http_proxy", "https_proxy", "no_proxy",
                                          "npm_config_registry" };
    static char *env[32];
    static char proxies[ARRAY_LEN(passed)][512];
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        env[n++] = (char *) (uintptr_t) fixed[i];
    for (size_t i = 0; i < ARRAY_LEN(passed); i++)
        if (getenv(passed[i])) {
            (void) snprintf(proxies[i], sizeof proxies[i], "%s=%s", passed[i], getenv(passed[i]));
            env[n++] = proxies[i];
        }
    for (; extra && *extra && n + 1 < ARRAY_LEN(env); extra++)
        env[n++] = (char *) (uintptr_t) *extra;
    env[n] = NULL;
    return env;
}

static void exec_program(const char *const *argv, char **env, int out_fd)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;

    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    (void) setsid();
    (void) umask(022);
    if (dup2(null_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(out_fd, 2) < 0 || chdir("/") < 0)
        _exit(126);
    (void) execvpe(argv[0], (char *const *) (uintptr_t) argv, env);
    (void) dprintf(2, "exec %s: %s\n", argv[0], strerror(errno));
    _exit(EXIT_NO_EXEC);
}

/* PID 1 of the namespace. Ends as the program did. */
static void be_init(const char *const *argv, char **env, int out_fd)
{
    pid_t program, ended;
    int status;

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        (void) dprintf(out_fd, "mount /proc: %s\n", strerror(errno));
        _exit(126);
    }
    program = fork();
    if (program == 0)
        exec_program(argv, env, out_fd);
    (void) close(out_fd);
    if (program < 0)
        _exit(126);
    while ((ended = waitpid(-1, &status, 0)) != program)
        if (ended < 0 && errno != EINTR)
            _exit(126);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

struct splitter {
    const struct child *child;
    char line[LINE_MAX_BYTES];
    size_t len;
};

/* Lines end with \n or \r; long ones are cut. */
static void split(struct splitter *s, const char *data, size_t len)
{
    if (s->child->log_fd >= 0)
        (void) io_write_all(s->child->log_fd, data, len);
    for (size_t i = 0; i < len; i++) {
        if (data[i] != '\n' && data[i] != '\r') {
            if (s->len < sizeof s->line - 1 && data[i])
                s->line[s->len++] = data[i];
            continue;
        }
        s->line[s->len] = '\0';
        if (s->len && s->child->line)
            s->child->line(s->child->context, s->line);
        s->len = 0;
    }
}

/* Until the end of the output or a signal. */
static void follow(const struct child *child, int fd)
{
    struct splitter splitter = { .child = child };
    struct pollfd polls[] = { { .fd = fd, .events = POLLIN },
                              { .fd = signal_fd, .events = POLLIN } };
    char data[8192];

    while (!child_interrupted()) {
        ssize_t n;

        if (poll(polls, ARRAY_LEN(polls), -1) < 0 && errno != EINTR)
            return;
        if (!polls[0].revents)
            continue;
        n = read(fd, data, sizeof data);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        split(&splitter, data, (size_t) n);
    }
}

static int ended_how(const char *name, int status, struct err *err)
{
    if (interrupted)
        return err_set(err, ERR_STATE, "interrupted");
    if (WIFSIGNALED(status))
        return err_set(err, ERR_INTERNAL, "%s was ended by signal %d", name, WTERMSIG(status));
    if (WEXITSTATUS(status) == EXIT_NO_EXEC)
        return err_set(err, ERR_UNAVAILABLE, "%s is not installed (tools/deps run)", name);
    if (WEXITSTATUS(status) != 0)
        return err_set(err, ERR_INTERNAL, "%s failed (exit code %d)", name, WEXITSTATUS(status));
    return 0;
}

int child_run(const struct child *child, struct err *err)
{
    auto_close int read_fd = -1, write_fd = -1;
    char **env = clean_env(child->env);
    int fds[2], status = 0;
    pid_t init;

    if (child_interrupted())
        return err_set(err, ERR_STATE, "interrupted");
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(err, errno, "make a pipe");
    read_fd = fds[0];
    write_fd = fds[1];
    init =
        (pid_t) syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | SIGCHLD, 0, 0, 0, 0);
    if (init < 0)
        return err_sys(err, errno, "make namespaces for %s", child->argv[0]);
    if (init == 0)
        be_init(child->argv, env, write_fd);
    own_close(&write_fd);
    follow(child, read_fd);
    if (interrupted)
        (void) kill(init, SIGKILL);
    while (waitpid(init, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(err, errno, "wait for %s", child->argv[0]);
    return ended_how(child->argv[0], status, err);
}

int child_ask(const char *const *argv, char *out, size_t size, struct err *err)
{
    auto_close int read_fd = -1, write_fd = -1;
    char **env = clean_env(NULL);
    size_t len = 0;
    int fds[2], status = 0;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(err, errno, "make a pipe");
    read_fd = fds[0];
    write_fd = fds[1];
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "fork for %s", argv[0]);
    if (pid == 0)
        exec_program(argv, env, write_fd);
    own_close(&write_fd);
    for (ssize_t n = 1; n > 0 && len<size - 1; len += n> 0 ? (size_t) n : 0)
        n = read(read_fd, out + len, size - 1 - len);
    own_close(&read_fd);
    out[len] = '\0';
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(err, errno, "wait for %s", argv[0]);
    return ended_how(argv[0], status, err);
}
