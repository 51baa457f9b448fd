#include "cli/question.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_THERE    127
#define CHILDREN_MAX 256
#define KILL_ROUNDS  1000

/* What a program of another user gets of our environment; the rest may be secret. */
static const char *const shared[] = { "PATH",        "LANG",     "DOCKER_CONFIG", "HTTPS_PROXY",
                                      "https_proxy", "NO_PROXY", "no_proxy" };

static int change_environment(const struct passwd *user)
{
    const char *kept[ARRAY_LEN(shared)];
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(shared); i++)
        kept[i] = getenv(shared[i]); /* the texts stay where they are */
    if (clearenv() != 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(shared); i++)
        r |= kept[i] ? setenv(shared[i], kept[i], 1) : 0;
    r |= setenv("HOME", user->pw_dir, 1);
    r |= setenv("USER", user->pw_name, 1);
    return r | setenv("LOGNAME", user->pw_name, 1);
}

/* For good, as the program does not start otherwise. */
static int become(uid_t uid)
{
    const struct passwd *user = uid == geteuid() ? NULL : getpwuid(uid);

    if (uid == geteuid())
        return 0;
    if (!user || initgroups(user->pw_name, user->pw_gid) < 0 ||
        setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 || change_environment(user) != 0)
        return -1;
    return setresuid(uid, uid, uid);
}

/* In a session of its own: a terminal of root's would take what another user's program puts into its input. */
static _Noreturn void be_program(const struct question *q, int in, int out)
{
    sigset_t none;

    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    (void) signal(SIGPIPE, SIG_DFL);
    if (setsid() < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        become(q->uid) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        _exit(126);
    (void) execvp(q->argv[0], (char *const *) (uintptr_t) q->argv);
    _exit(NOT_THERE);
}

/* Written before anybody reads: the input fits into a pipe. */
static int open_input(const char *text, int *ret_fd, struct err *err)
{
    size_t len = text ? strlen(text) : 0;
    int ends[2], r;

    if (len >= QUESTION_INPUT_MAX)
        return err_set(err, ERR_TOO_BIG, "too much to ask");
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "make a pipe");
    *ret_fd = ends[0];
    r = io_write_all(ends[1], text, len);
    (void) close(ends[1]);
    return r < 0 ? err_sys(err, errno, "write to a pipe") : 0;
}

static int read_output(const struct question *q, int fd, uint64_t until_ms, struct err *err)
{
    size_t len = 0;
    ssize_t n = 1;

    while (n != 0 && len < q->size - 1) {
        if (!io_wait_until(fd, POLLIN, until_ms))
            return err_set(err, ERR_TIMEOUT, "%s did not answer within %llu s", q->argv[0],
                           (unsigned long long) (q->most_ms + 999) / 1000);
        n = read(fd, q->out + len, q->size - 1 - len);
        if (n < 0 && errno != EINTR)
            return err_sys(err, errno, "read from %s", q->argv[0]);
        len += n > 0 ? (size_t) n : 0;
    }
    q->out[len] = '\0';
    return len == q->size - 1
               ? err_set(err, ERR_TOO_BIG, "%s said more than %zu bytes", q->argv[0], len - 1)
               : 0;
}

/* Its output has ended; the program may still run. */
static int await_end(const struct question *q, pid_t pid, uint64_t until_ms, struct err *err)
{
    auto_close int pid_fd = (int) syscall(SYS_pidfd_open, pid, 0);

    return io_wait_until(pid_fd, POLLIN, until_ms)
               ? 0
               : err_set(err, ERR_TIMEOUT, "%s does not end", q->argv[0]);
}

static int exit_code(const struct question *q, int status, struct err *err)
{
    if (!WIFEXITED(status))
        return err_set(err, ERR_STATE, "%s was ended by signal %d", q->argv[0], WTERMSIG(status));
    return WEXITSTATUS(status) == NOT_THERE
               ? err_set(err, ERR_UNAVAILABLE, "there is no program %s", q->argv[0])
               : WEXITSTATUS(status);
}

/* ---- what the program started ---- */

struct children {
    pid_t pids[CHILDREN_MAX];
    size_t count;
};

/* Of a kernel that does not list children: none. */
static void read_children(struct children *ret)
{
    char path[64];
    FILE *file;

    ret->count = 0;
    (void) snprintf(path, sizeof path, "/proc/self/task/%d/children", (int) getpid());
    file = fopen(path, "re");
    while (file && ret->count < CHILDREN_MAX && fscanf(file, "%d", &ret->pids[ret->count]) == 1)
        ret->count++;
    if (file)
        (void) fclose(file);
}

static bool has(const struct children *children, pid_t pid)
{
    for (size_t i = 0; i < children->count; i++)
        if (children->pids[i] == pid)
            return true;
    return false;
}

/* Orphans are our children (a subreaper's), also those that made a session of their own; those of a process that is killed come in the next
 * round. `before` are none of the program's. */
static void kill_orphans(const struct children *before)
{
    struct children now;
    size_t killed = 1;

    for (int round = 0; killed > 0 && round < KILL_ROUNDS; round++) {
        killed = 0;
        read_children(&now);
        for (size_t i = 0; i < now.count; i++)
            if (!has(before, now.pids[i]) && kill(now.pids[i], SIGKILL) == 0) {
                (void) waitpid(now.pids[i], NULL, 0);
                killed++;
            }
    }
}

int question_ask(const struct question *q, struct err *err)
{
    uint64_t until_ms = io_now_ms() + q->most_ms;
    auto_close int in = -1, from = -1, to = -1;
    int ends[2], status = 0, was = 0, r;
    struct children before;
    pid_t pid;

    if (open_input(q->input, &in, err) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "make a pipe");
    from = ends[0];
    to = ends[1];
    read_children(&before);
    (void) prctl(PR_GET_CHILD_SUBREAPER, &was);
    (void) prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "start %s", q->argv[0]);
    if (pid == 0)
        be_program(q, in, to);
    own_close(&to);
    r = read_output(q, from, until_ms, err);
    if (r == 0)
        r = await_end(q, pid, until_ms, err);
    /* With its process group; its own end, if that has come, is not changed by this. */
    (void) kill(-pid, SIGKILL);
    (void) kill(pid, SIGKILL); /* it may have no group of its own yet */
    (void) waitpid(pid, &status, 0);
    if (r < 0) /* of one that answered, a daemon may stay: gpg-agent */
        kill_orphans(&before);
    (void) prctl(PR_SET_CHILD_SUBREAPER, was);
    return r < 0 ? -1 : exit_code(q, status, err);
}
