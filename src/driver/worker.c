#include "driver/worker.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "jail/root.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP_MAX (16 + 2 * CG_HIERARCHIES_MAX + LAYERS_MAX + VOLUMES_MAX)

static void let_go(const struct worker *w, int answer)
{
    const struct keeper *k = w->keeper;
    const struct sandbox *s = &w->sandbox;
    int keep[KEEP_MAX] = { answer,
                           w->scratch_fd,
                           s->pid.fd,
                           s->disk_fd,
                           k->host->templates_fd,
                           k->journal.fd,
                           k->host->disks.dir_fd,
                           k->host->images.dir_fd,
                           k->host->criu.ids_fd,
                           k->host->nets.own_fd,
                           k->host->nets.parent_fd,
                           k->host->criu.uffd_fd,
                           k->host->bridge_fd,
                           k->host->kvm_fd,
                           s->listener,
                           k->state_fd };
    size_t count = 16;

    for (size_t i = 0; i < k->host->cgroups.count; i++) {
        keep[count++] = k->host->cgroups.hierarchy[i].root_fd;
        keep[count++] = k->host->cgroups.hierarchy[i].parent_fd;
    }
    for (size_t i = 0; i < LAYERS_MAX; i++)
        keep[count++] = s->base_fd[i];
    for (size_t i = 0; i < VOLUMES_MAX; i++)
        keep[count++] = s->volume_fd[i];
    io_keep_only(keep, count);
}

static void clear_scratch(const char *name)
{
    auto_dir DIR *dir = opendir(name);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            (void) unlinkat(dirfd(dir), entry->d_name, 0);
    (void) rmdir(name);
}

static int open_scratch(char name[32], struct err *err)
{
    int fd;

    (void) snprintf(name, 32, "/run/%d", (int) getpid());
    clear_scratch(name); /* of one that had this number, and was killed */
    if (mkdir(name, 0755) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make %s", name);
    fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_sys(err, errno, "open %s", name) : fd;
}

/* While we are still in the keeper's mount namespace: Linux before 6.15 clones nothing of another. */
static int own_bases(struct sandbox *s, struct err *err)
{
    return s->base_fd[1] < 0 ? 0 : root_own_bases(s->base_fd + 1, s->layers.count - 1, err);
}

static _Noreturn void run(struct worker *w, worker_deed *deed, const struct keeper_request *request,
                          int answer)
{
    char scratch[32] = "";
    struct err err = { .kind = ERR_NONE };

    (void) setsid();
    if (own_bases(&w->sandbox, &err) == 0) {
        if (unshare(CLONE_NEWNS) < 0)
            err_sys(&err, errno, "new mount namespace");
        else
            w->scratch_fd = open_scratch(scratch, &err);
    }
    let_go(w, answer);
    if (w->scratch_fd < 0 || deed(w, request, &err) < 0)
        w->result.err = err;
    clear_scratch(scratch);
    /* A keeper that is gone does not hear it; what was done is done. */
    (void) send(answer, &w->result, sizeof w->result, MSG_NOSIGNAL);
    _exit(0);
}

static void on_answer(struct keeper *k, struct watch *watch)
{
    struct sandbox *s = container_of(watch, struct sandbox, control);
    struct worker_result result;
    worker_end *end = s->worker_end;
    ssize_t n = recv(watch->fd, &result, sizeof result, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    keeper_unwatch(k, watch);
    if (s->worker > 0)
        (void) waitpid(s->worker, NULL, 0); /* it said its word, or died: it does not keep us */
    s->worker = 0;
    s->worker_end = NULL;
    if (n != (ssize_t) sizeof result &&
        (s->info.life == LIFE_PAUSING || s->info.life == LIFE_STARTING)) {
        log_line(LOG_WARNING, "sandbox=%s the process that worked on it died", s->info.id);
        s->unsettled =
            true; /* how far it came is found out by sandbox_tick; criu may still be at it */
        return;
    }
    if (n != (ssize_t) sizeof result) {
        memset(&result, 0, sizeof result);
        err_set(&result.err, ERR_INTERNAL, "the process that worked on it died");
    }
    end(k, s, &result);
    if (s->doomed && s->info.life != LIFE_GONE)
        sandbox_stop(k, s, "destroyed");
}

/* criu remembers what it finds, areas of memory and open files, and what it writes is in the page cache for a while: about as much as the
 * sandbox has. Not its share of the processors: a sandbox with a hundredth of one would not be saved in time. */
static struct limits work_limits(const struct sandbox *s)
{
    struct limits limits = s->info.limits;

    limits.memory_bytes += WORKER_EXTRA_MEMORY;
    limits.processes = WORKER_PROCESSES;
    if (limits.cpu_milli < WORKER_CPU_MILLI)
        limits.cpu_milli = WORKER_CPU_MILLI;
    return limits;
}

int worker_start(struct keeper *k, struct sandbox *s, const char *name, worker_deed *deed,
                 const struct keeper_request *request, worker_end *end, struct err *err)
{
    struct worker w = { .keeper = k, .sandbox = *s, .scratch_fd = -1 };
    struct limits limits = work_limits(s);
    struct cgroup_entry entry;
    int pair[2];
    pid_t pid;

    if (s->worker || s->doomed)
        return err_set(err, ERR_STATE, "sandbox '%s' is being worked on", s->info.id);
    if (cgroup_work_open(&k->host->cgroups, s->cgroup, &limits, &entry, err) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        cgroup_entry_close(&entry);
        return err_sys(err, errno, "socketpair");
    }
    pid = cgroup_fork(&entry);
    if (pid == 0) {
        (void) prctl(PR_SET_NAME, name);
        run(&w, deed, request, pair[1]);
    }
    cgroup_entry_close(&entry);
    (void) close(pair[1]);
    if (pid < 0) {
        (void) close(pair[0]);
        return err_sys(err, errno, "fork a worker");
    }
    s->worker = pid;
    s->worker_since_ms = io_now_ms();
    keeper_attend(k, s);
    s->worker_end = end;
    return keeper_watch(k, &s->control, pair[0], on_answer, err);
}

bool worker_fork_apart(void)
{
    pid_t child = fork();

    if (child == 0) {
        if (fork() == 0)
            return true;
        _exit(0);
    }
    if (child > 0)
        (void) waitpid(child, NULL, 0);
    return false;
}

void worker_clear_images(struct keeper *k)
{
    int keep[] = { k->host->images.dir_fd };

    if (!worker_fork_apart())
        return;
    io_keep_only(keep, ARRAY_LEN(keep));
    images_clear(&k->host->images);
    _exit(0);
}
