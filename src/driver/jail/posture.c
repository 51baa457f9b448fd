#include "driver/jail/posture.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "driver/jail/connect.h"
#include "driver/worker.h"
#include "jail/spaces.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"
#include "keeper/talk.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LISTENER_KIND "anon_inode:seccomp notify"
#define STOP_MS       5000 /* how long a tracee may take to stop */

static bool is_listener(const char *path)
{
    char kind[64];
    ssize_t n = readlink(path, kind, sizeof kind - 1);

    if (n < 0)
        return false;
    kind[n] = '\0';
    return strcmp(kind, LISTENER_KIND) == 0;
}

/* The number is the agent's to use as it likes: what is there must be what we look for. */
int posture_listener(const struct sandbox *s)
{
    auto_close int fd = (int) syscall(__NR_pidfd_getfd, s->pid.fd, BOOT_FD_NOTIFY, 0);
    char path[40];

    (void) snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd >= 0 && is_listener(path) ? take_fd(&fd) : -1;
}

bool posture_listens(const struct sandbox *s)
{
    char path[40];

    (void) snprintf(path, sizeof path, "/proc/%d/fd/%d", (int) s->info.pid, BOOT_FD_NOTIFY);
    return is_listener(path);
}

/* Files of /proc/<pid> are the process's own only if it is dumpable. */
static bool is_dumpable(const struct sandbox *s)
{
    char path[40];
    struct stat st;

    (void) snprintf(path, sizeof path, "/proc/%d/io", (int) s->info.pid);
    return stat(path, &st) < 0 || st.st_uid == s->info.uid_base;
}

int posture_check(const struct sandbox *s, struct err *err)
{
    if (s->filter_form == FILTER_LISTENS && !posture_listens(s))
        return err_set(err, ERR_UNAVAILABLE, "the agent is without its listener of refused calls");
    if (is_dumpable(s))
        return err_set(err, ERR_UNAVAILABLE, "the agent's memory is open to its sandbox");
    return 0;
}

void posture_adopt(struct keeper *k, struct sandbox *s)
{
    struct err err;

    if (s->filter_form == FILTER_UNKNOWN && spaces_forbid_in(s->pid.fd, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    s->listener = posture_listener(s);
    if (s->listener >= 0) {
        s->filter_form = FILTER_LISTENS;
    } else if (s->filter_form == FILTER_UNKNOWN) { /* save_settle finds out */
        s->was_frozen = s->info.life == LIFE_PAUSED;
        sandbox_set_life(k, s, LIFE_PAUSING);
        s->unsettled = true;
    } else if (s->filter_form == FILTER_LISTENS && posture_listens(s)) {
        log_line(LOG_WARNING, "sandbox=%s its listener cannot be held by the keeper: no saves",
                 s->info.id);
    } else if (s->filter_form == FILTER_LISTENS) {
        log_line(LOG_ERROR, "unconfined sandbox=%s its listener of refused calls is lost",
                 s->info.id);
        sandbox_stop(k, s, "its confinement was in doubt");
        (void) cgroup_kill(&k->host->cgroups, s->cgroup);
    }
}

/* ---- a filter that no record tells of ---- */

static int wait_for_stop(pid_t pid)
{
    const struct timespec moment = { .tv_nsec = 1000000 };
    uint64_t until = io_now_ms() + STOP_MS;
    int status;

    while (io_now_ms() < until) {
        pid_t got = waitpid(pid, &status, WNOHANG | __WALL);

        if (got == pid)
            return WIFSTOPPED(status) ? 0 : -1;
        if (got < 0 && errno != EINTR)
            return -1;
        (void) nanosleep(&moment, NULL);
    }
    return -1;
}

/* Whether one of the filters of a stopped process confines by itself; tried from the oldest. */
static bool has_quiet_filter(pid_t pid)
{
    struct sock_filter code[BPF_MAXINSNS];

    for (uintptr_t n = 0;; n++) {
        long len = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *) n, code);

        if (len <= 0)
            return false;
        if (seccomp_confines(code, (size_t) len))
            return true;
    }
}

/* Stops the agent for a moment. Only for sandboxes of a version that wrote down nothing, once in their life. */
static int check_filter(const struct sandbox *s, struct err *err)
{
    pid_t pid = s->info.pid;
    bool quiet = false;

    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
        return err_sys(err, errno, "look at the agent's filter");
    if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0 && wait_for_stop(pid) == 0)
        quiet = has_quiet_filter(pid);
    (void) ptrace(PTRACE_DETACH, pid, NULL, NULL); /* or it is let go with our end */
    return quiet ? 0
                 : err_set(err, ERR_UNAVAILABLE,
                           "the agent is without its listener, and its filter needs one");
}

int posture_put_back(struct keeper *k, const struct sandbox *s, struct err *err)
{
    struct err why = { .kind = ERR_NONE };
    bool answered;

    if (net_unlock(&k->host->nets, s->pid.fd, &why) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, why.msg);
    answered = connect_resumed(&k->host->nets, s->pid.fd, s->info.pid, TALK_CONTINUE, 0,
                               s->listener, &why) == 0;
    if (!answered)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, why.msg);
    if (posture_check(s, err) < 0)
        return -1;
    if (s->filter_form != FILTER_UNKNOWN)
        return 0;
    /* An agent of the version before obeys a late order to make ready: only its answer shows that there is none. */
    if (!answered)
        return err_set(err, ERR_UNAVAILABLE, "the agent does not answer: %.200s", why.msg);
    return check_filter(s, err);
}

int posture_continue(struct worker *w, const struct keeper_request *r, struct err *err)
{
    (void) r;
    return posture_put_back(w->keeper, &w->sandbox, err);
}

int posture_tell_continue(struct keeper *k, const struct sandbox *s, bool same, struct err *err)
{
    const struct sandbox own = *s; /* the keeper's table is not in a process that it forks */
    int keep[] = { own.pid.fd, k->host->nets.own_fd };

    (void) same;
    if (posture_check(s, err) < 0)
        return -1;
    if (!worker_fork_apart())
        return 0;
    io_keep_only(keep, ARRAY_LEN(keep));
    (void) net_unlock(&k->host->nets, own.pid.fd, err);
    if (connect_resumed(&k->host->nets, own.pid.fd, own.info.pid, TALK_CONTINUE, 0, -1, err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", own.info.id, err->msg);
    _exit(0);
}
