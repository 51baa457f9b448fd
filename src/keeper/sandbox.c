/* A create is three stretches that wait for somebody: the disk maker, the child, the agent. Between them
 * the keeper serves others.
 *
 *   sandbox_create   slot, name, disk             NEW       waits for an image disk, if it needs one
 *   start            journal, cgroup, clone, root STARTING  waits for the child's exec and the agent's byte
 *   on_ready         journal                      RUNNING
 *   sandbox_stop     journal, kill                STOPPING  waits for PID 1's death
 *   clear            cgroups, socket, journal     GONE      retried while the kernel holds on
 *
 * Whatever fails on the way goes to STOPPING too: there is one way out, and it is the tested one. All
 * else a sandbox has, mounts, disk, network, loop device, is held by its processes alone. */
#include "keeper/sandbox.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "keeper/child.h"
#include "keeper/ops.h"
#include "keeper/root.h"
#include "keeper/template.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#define TO(s) (1u << LIFE_##s)
#define TIE_GRACE_MS 10000
#define STUCK_MS 2000

/* Who may follow whom; in brackets, the only functions that make the move. */
static const unsigned next_life[LIFE_COUNT] = {
    [LIFE_NEW]      = TO(STARTING) | TO(STOPPING),               /* [start, sandbox_stop] */
    [LIFE_STARTING] = TO(RUNNING) | TO(STOPPING),                /* [on_ready, sandbox_stop] */
    [LIFE_RUNNING]  = TO(PAUSED) | TO(STOPPING),                 /* [sandbox_frozen, sandbox_stop] */
    [LIFE_PAUSED]   = TO(RUNNING) | TO(STOPPING),                /* [sandbox_frozen, sandbox_stop] */
    [LIFE_STOPPING] = TO(GONE),                                  /* [clear] */
    [LIFE_GONE]     = TO(NEW) | TO(RUNNING) | TO(STOPPING),      /* [sandbox_create, sandbox_adopt] */
};

static void set_life(struct keeper *k, struct sandbox *s, enum keeper_life life)
{
    assert(next_life[s->info.life] & (1u << life));
    if (s->info.life == LIFE_GONE)
        k->sandbox_count++;
    if (life == LIFE_GONE)
        k->sandbox_count--;
    s->info.life = life;
}

uint32_t sandbox_slot(const struct keeper *k, const struct sandbox *s)
{
    return (uint32_t) (s - k->sandboxes);
}

static int write_journal(struct keeper *k, const struct sandbox *s, struct err *err)
{
    struct journal_record record = { .sandbox = s->info, .pid_started = s->pid_started };

    return journal_write(&k->journal, sandbox_slot(k, s), &record, err);
}

struct sandbox *sandbox_find(struct keeper *k, const char *id_or_name)
{
    for (uint32_t i = 0; i < k->slot_count; i++) {
        struct sandbox *s = &k->sandboxes[i];

        if (s->info.life != LIFE_GONE && (strcmp(s->info.id, id_or_name) == 0 ||
                                          (s->info.name[0] && strcmp(s->info.name, id_or_name) == 0)))
            return s;
    }
    return NULL;
}

/* Round robin: an id range rests as long as can be before another sandbox gets it. */
static struct sandbox *free_slot(struct keeper *k)
{
    for (uint32_t i = 0; i < k->slot_count; i++) {
        uint32_t slot = (k->slot_next + i) % k->slot_count;

        if (k->sandboxes[slot].info.life == LIFE_GONE) {
            k->slot_next = (slot + 1) % k->slot_count;
            return &k->sandboxes[slot];
        }
    }
    return NULL;
}

static void begin_step(struct sandbox *s, enum create_step step)
{
    /* A step's field holds its beginning until end_step; microseconds of a create fit 32 bits. */
    s->step_us[step] = (uint32_t) (io_now_us() - s->begun_us);
}

static void end_step(struct sandbox *s, enum create_step step)
{
    s->step_us[step] = (uint32_t) (io_now_us() - s->begun_us) - s->step_us[step];
}

static void reset(struct sandbox *s)
{
    memset(s, 0, sizeof *s);
    s->info.life = LIFE_GONE;
    s->pid.fd = s->control.fd = s->ready.fd = s->disk_fd = -1;
    s->tied_to = -1;
}

/* ---- the way out ---- */

static void remove_socket(struct keeper *k, const char *id)
{
    char path[KEEPER_NAME_MAX + 16];

    (void) snprintf(path, sizeof path, "%s.sock", id);
    if (unlinkat(k->sandboxes_fd, path, 0) < 0 && errno != ENOENT)
        log_line(LOG_WARNING, "sandbox=%s its socket stays: %s", id, strerror(errno));
}

/* Removes what is left once the processes are dead. Stays STOPPING while the kernel holds a part. */
static void clear(struct keeper *k, struct sandbox *s)
{
    struct err err;
    int gone = cgroup_remove(&k->cgroups, s->info.id, &err);

    if (gone == 0)
        (void) cgroup_kill(&k->cgroups, s->info.id);
    if (gone < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    if (gone != 1)
        return;
    remove_socket(k, s->info.id);
    sysview_drop(&k->views, s->view);
    s->view = NULL;
    if (journal_clear(&k->journal, sandbox_slot(k, s), &err) < 0) {
        log_line(LOG_ERROR, "sandbox=%s %s", s->info.id, err.msg);
        return;
    }
    log_line(LOG_INFO, "gone sandbox=%s ms=%" PRIu64, s->info.id, io_now_ms() - s->stop_since_ms);
    set_life(k, s, LIFE_GONE);
    ops_sandbox_gone(k, s);
    reset(s);
}

static void on_control(struct keeper *k, struct watch *watch);

static void on_death(struct keeper *k, struct watch *watch)
{
    struct sandbox *s = container_of(watch, struct sandbox, pid);
    struct pollfd dead = { .fd = watch->fd, .events = POLLIN };

    /* A slot can be reused within one batch of events: ask again before believing it. */
    if (poll(&dead, 1, 0) != 1)
        return;
    if (s->control.fd >= 0) /* a child that failed said why before it died */
        on_control(k, &s->control);
    /* Reaps where we are the parent; an adopted one is reaped by the host's init. */
    (void) waitid(P_PIDFD, (id_t) watch->fd, NULL, WEXITED | WNOHANG);
    if (s->info.life != LIFE_STOPPING)
        sandbox_stop(k, s, s->info.life == LIFE_STARTING ? "its first process died" : "agent died");
    keeper_unwatch(k, &s->pid);
    clear(k, s);
}

void sandbox_stop(struct keeper *k, struct sandbox *s, const char *reason)
{
    struct err err;

    if (s->info.life == LIFE_STOPPING || s->info.life == LIFE_GONE)
        return;
    log_line(LOG_INFO, "stop sandbox=%s reason=\"%s\"", s->info.id, reason);
    if (!s->failure.kind)
        (void) err_set(&s->failure, ERR_NO_SANDBOX, "sandbox '%s' ended: %s", s->info.id, reason);
    s->stop_since_ms = io_now_ms();
    if (s->info.life == LIFE_PAUSED) /* v1: frozen processes do not die */
        (void) cgroup_freeze(&k->cgroups, s->info.id, false, &err);
    set_life(k, s, LIFE_STOPPING);
    if (write_journal(k, s, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    keeper_unwatch(k, &s->control); /* a child that waits for us sees the end and goes */
    keeper_unwatch(k, &s->ready);
    own_close(&s->disk_fd);
    if (s->pid.fd >= 0)
        (void) syscall(__NR_pidfd_send_signal, s->pid.fd, SIGKILL, NULL, 0);
    /* Without a process there is no death to wait for: the next tick clears it. */
}

static void fail(struct keeper *k, struct sandbox *s, const struct err *err)
{
    s->failure = *err;
    log_line(LOG_WARNING, "create failed sandbox=%s %s", s->info.id, err->msg);
    sandbox_stop(k, s, "create failed");
}

/* ---- starting ---- */

static int pid_start_time(int pid, uint64_t *ret, struct err *err)
{
    char path[32], text[1024];
    const char *at;

    (void) snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) < 0)
        return err_sys(err, errno, "read %s", path);
    at = strrchr(text, ')'); /* the name may hold anything, also brackets and spaces */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, " %" SCNu64, ret) != 1)
        return err_set(err, ERR_INTERNAL, "%s makes no sense", path);
    return 0;
}

static void on_ready(struct keeper *k, struct watch *watch)
{
    struct sandbox *s = container_of(watch, struct sandbox, ready);
    struct err err;
    char byte;
    ssize_t n = read(watch->fd, &byte, 1);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != 1) {
        /* The end without the byte: the child failed. Its report, if any, is on the control socket. */
        keeper_unwatch(k, watch);
        return;
    }
    end_step(s, STEP_CHILD);
    keeper_unwatch(k, watch);
    keeper_unwatch(k, &s->control);
    set_life(k, s, LIFE_RUNNING);
    if (pid_start_time(s->info.pid, &s->pid_started, &err) < 0 || write_journal(k, s, &err) < 0) {
        fail(k, s, &err);
        return;
    }
    log_line(LOG_DEBUG,
             "create id=%s us_total=%" PRIu64
             " us_disk=%u us_prepare=%u us_clone=%u us_root=%u us_child=%u",
             s->info.id, io_now_us() - s->begun_us, s->step_us[STEP_DISK],
             s->step_us[STEP_PREPARE], s->step_us[STEP_CLONE], s->step_us[STEP_ROOT],
             s->step_us[STEP_CHILD]);
    log_line(LOG_INFO, "running sandbox=%s name=%s template=%s pid=%d ids=%u profile=%s disk=%s",
             s->info.id, s->info.name[0] ? s->info.name : "-", s->info.template, s->info.pid,
             s->info.uid_base, s->info.flags & KEEPER_FLAG_ROOT ? "root" : "strict",
             keeper_disk_name(s->info.disk_kind));
    ops_sandbox_started(k, s);
}

static void on_control(struct keeper *k, struct watch *watch)
{
    struct sandbox *s = container_of(watch, struct sandbox, control);
    struct err err;
    ssize_t n = recv(watch->fd, &err, sizeof err, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    keeper_unwatch(k, watch); /* its end is the exec, or a death that on_death hears of */
    if (n == (ssize_t) sizeof err) {
        err.msg[sizeof err.msg - 1] = '\0';
        fail(k, s, &err);
    }
}

static int write_map(int pid, const char *file, uint32_t base, struct err *err)
{
    char path[40], text[40];

    (void) snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    (void) snprintf(text, sizeof text, "0 %u %u", base, IDS_PER_SANDBOX);
    if (io_write_text(AT_FDCWD, path, text) < 0)
        return err_sys(err, errno, "write %s", file);
    return 0;
}

/* What the parent does while the child gets ready: maps, root file system, then the word to go. */
static int give_root(struct sandbox *s, const struct template *t, int control, struct err *err)
{
    auto_close int userns = -1, root = -1;
    char path[40];
    int fds[CHILD_FD_COUNT];

    if (write_map(s->info.pid, "uid_map", s->info.uid_base, err) < 0 ||
        write_map(s->info.pid, "gid_map", s->info.uid_base, err) < 0)
        return -1;
    (void) snprintf(path, sizeof path, "/proc/%d/ns/user", s->info.pid);
    userns = open(path, O_RDONLY | O_CLOEXEC);
    if (userns < 0)
        return err_sys(err, errno, "open the user namespace");
    if (root_assemble(t, s->disk_fd, (enum keeper_disk) s->info.disk_kind, userns,
                      s->info.uid_base, &root, err) < 0)
        return -1;
    fds[CHILD_ROOT] = root;
    fds[CHILD_DISK] = s->disk_fd;
    if (io_send_fds(control, "g", 1, fds, CHILD_FD_COUNT) != 1)
        return err_sys(err, errno, "tell the child to go");
    own_close(&s->disk_fd);
    return 0;
}

static int clone_child(struct keeper *k, struct sandbox *s, const struct child_spec *spec,
                       struct err *err)
{
    int pidfd = -1;
    struct clone_args args = {
        /* Network, IPC and cgroup namespaces: by the child itself, see there. */
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_PIDFD | (spec->cgroup->v2_fd >= 0 ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uint64_t) (uintptr_t) &pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = spec->cgroup->v2_fd >= 0 ? (uint64_t) spec->cgroup->v2_fd : 0,
    };
    long pid = syscall(__NR_clone3, &args, sizeof args);

    if (pid < 0)
        return err_sys(err, errno, "clone");
    if (pid == 0)
        child_run(spec);
    s->info.pid = (int32_t) pid;
    return keeper_watch(k, &s->pid, pidfd, on_death, err);
}

/* The child and the two lines to it. */
static int launch(struct keeper *k, struct sandbox *s, const struct template *t,
                  const struct cgroup_entry *entry, struct err *err)
{
    auto_close int control = -1, control_child = -1, ready = -1, ready_child = -1;
    int pair[2];
    struct child_spec spec = {
        .limits = &s->info.limits,
        .template = t,
        .cgroup = entry,
        .filter_notify = &k->filter_notify,
        .filter_quiet = &k->filter_quiet,
        .id = s->info.id,
        .hostname = s->hostname,
        .view = s->view->name,
        .allow_root = s->info.flags & KEEPER_FLAG_ROOT,
        .dir_fd = k->sandboxes_fd,
        .agent_fd = k->agent_fd,
    };

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "socketpair");
    control = pair[0];
    control_child = pair[1];
    if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(err, errno, "pipe");
    ready = pair[0];
    ready_child = pair[1];
    spec.control_fd = control_child;
    spec.ready_fd = ready_child;

    begin_step(s, STEP_CLONE);
    if (clone_child(k, s, &spec, err) < 0)
        return -1;
    end_step(s, STEP_CLONE);
    own_close(&control_child);
    own_close(&ready_child);
    begin_step(s, STEP_ROOT);
    if (s->disk_fd < 0 &&
        disk_make_memory(&s->info.limits, s->info.uid_base, &s->disk_fd, err) < 0)
        return -1;
    if (give_root(s, t, control, err) < 0)
        return -1;
    end_step(s, STEP_ROOT);
    begin_step(s, STEP_CHILD);
    if (keeper_watch(k, &s->control, take_fd(&control), on_control, err) < 0)
        return -1;
    return keeper_watch(k, &s->ready, take_fd(&ready), on_ready, err);
}

static int start(struct keeper *k, struct sandbox *s, struct err *err)
{
    struct cgroup_entry entry = { .v2_fd = -1 };
    struct template t;
    int rc = -1;

    begin_step(s, STEP_PREPARE);
    set_life(k, s, LIFE_STARTING);
    if (write_journal(k, s, err) < 0 ||
        template_open(&t, k->templates_fd, s->info.template, err) < 0)
        return -1;
    s->view = sysview_take(&k->views, &s->info.limits, err);
    if (!s->view)
        goto out;
    if (cgroup_create(&k->cgroups, s->info.id, &s->info.limits, err) < 0 ||
        cgroup_entry_open(&k->cgroups, s->info.id, &entry, err) < 0)
        goto out;
    end_step(s, STEP_PREPARE);
    rc = launch(k, s, &t, &entry, err);
out:
    cgroup_entry_close(&entry);
    template_close(&t);
    return rc;
}

void sandbox_got_disk(struct keeper *k, uint32_t slot, int mount_fd, const struct err *why)
{
    struct sandbox *s = slot < k->slot_count ? &k->sandboxes[slot] : NULL;
    struct err err;

    /* It may have been stopped, and its slot even taken again, while the disk was made. */
    if (!s || s->info.life != LIFE_NEW || s->disk_fd >= 0) {
        if (mount_fd >= 0)
            (void) close(mount_fd);
        return;
    }
    if (mount_fd < 0) {
        fail(k, s, why);
        return;
    }
    s->disk_fd = mount_fd;
    end_step(s, STEP_DISK);
    if (start(k, s, &err) < 0)
        fail(k, s, &err);
}

static int check_room(struct keeper *k, const struct keeper_request *r, struct err *err)
{
    struct statfs state;

    if (limits_check(&r->limits, k->host_memory, k->host_cpu_milli, err) < 0)
        return -1;
    if (sandbox_find(k, r->sandbox))
        return err_set(err, ERR_NAME_TAKEN, "there is a sandbox '%s' already", r->sandbox);
    if (r->name[0] && sandbox_find(k, r->name))
        return err_set(err, ERR_NAME_TAKEN, "the name '%s' is taken", r->name);
    if (k->sandbox_count >= k->sandboxes_max)
        return err_set(err, ERR_TOO_MANY, "there are %u sandboxes, as many as allowed",
                       k->sandbox_count);
    if (!template_exists(k->templates_fd, r->template))
        return err_set(err, ERR_NO_TEMPLATE, "there is no template '%s'", r->template);
    if (fstatfs(k->state_fd, &state) == 0 && state.f_bavail < state.f_blocks / 50)
        return err_set(err, ERR_DISK_FULL, "less than 2%% of the host's disk is free");
    return 0;
}

static uint64_t real_time_ms(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t) now.tv_sec * 1000u + (uint64_t) now.tv_nsec / 1000000u;
}

static void fill(struct keeper *k, struct sandbox *s, const struct keeper_request *r,
                 int connection)
{
    reset(s);
    s->begun_us = io_now_us();
    memcpy(s->info.id, r->sandbox, sizeof s->info.id);
    memcpy(s->info.name, r->name, sizeof s->info.name);
    memcpy(s->info.template, r->template, sizeof s->info.template);
    memcpy(s->hostname, r->hostname[0] ? r->hostname : r->name[0] ? r->name : r->sandbox,
           sizeof s->hostname);
    s->info.flags = r->flags;
    s->info.limits = r->limits;
    s->info.slot = sandbox_slot(k, s);
    s->info.uid_base = ids_base(k->id_block, s->info.slot);
    s->info.disk_kind = disk_kind(&r->limits);
    s->info.created_ms = real_time_ms();
    if (r->flags & KEEPER_FLAG_TIED)
        s->tied_to = connection;
}

int sandbox_create(struct keeper *k, const struct keeper_request *r, int connection,
                   struct sandbox **ret, struct err *err)
{
    struct sandbox *s;
    int have_disk = 1;

    if (check_room(k, r, err) < 0)
        return -1;
    s = free_slot(k);
    if (!s)
        return err_set(err, ERR_NO_IDS, "all %u ranges of user ids are in use", k->slot_count);
    fill(k, s, r, connection);
    set_life(k, s, LIFE_NEW);
    *ret = s;
    begin_step(s, STEP_DISK);
    if (s->info.disk_kind == DISK_IMAGE)
        have_disk = disks_take(&k->disks, &r->limits, s->info.slot + 1, &s->disk_fd, err);
    if (have_disk > 0)
        end_step(s, STEP_DISK);
    if (have_disk < 0 || (have_disk > 0 && start(k, s, err) < 0))
        fail(k, s, err);
    return 0;
}

/* ---- living ---- */

void sandbox_adopt(struct keeper *k, uint32_t slot, const struct journal_record *record)
{
    struct sandbox *s = &k->sandboxes[slot];
    bool meant_to_live =
        record->sandbox.life == LIFE_RUNNING || record->sandbox.life == LIFE_PAUSED;
    uint64_t started = 0;
    struct err err;
    int pidfd = -1;

    reset(s);
    s->info = record->sandbox;
    s->pid_started = record->pid_started;
    s->info.life = LIFE_GONE;
    set_life(k, s, LIFE_RUNNING);
    if (meant_to_live)
        pidfd = (int) syscall(__NR_pidfd_open, s->info.pid, 0);
    if (pidfd >= 0 && (pid_start_time(s->info.pid, &started, &err) < 0 ||
                       started != s->pid_started))
        own_close(&pidfd); /* the number belongs to another process by now */
    if (pidfd < 0 || keeper_watch(k, &s->pid, pidfd, on_death, &err) < 0) {
        if (meant_to_live)
            log_line(LOG_WARNING, "lost sandbox=%s reason=\"died while no keeper ran\"",
                     s->info.id);
        sandbox_stop(k, s, meant_to_live ? "lost" : "was not finished");
        (void) cgroup_kill(&k->cgroups, s->info.id);
        return;
    }
    if (record->sandbox.life == LIFE_PAUSED)
        set_life(k, s, LIFE_PAUSED);
    if (s->info.flags & KEEPER_FLAG_TIED)
        s->tie_until_ms = io_now_ms() + TIE_GRACE_MS;
}

int sandbox_freeze(struct keeper *k, struct sandbox *s, bool frozen, struct err *err)
{
    if (s->info.life != LIFE_RUNNING && s->info.life != LIFE_PAUSED)
        return err_set(err, ERR_STATE, "sandbox '%s' is %s", s->info.id,
                       keeper_life_name(s->info.life));
    return cgroup_freeze(&k->cgroups, s->info.id, frozen, err);
}

void sandbox_frozen(struct keeper *k, struct sandbox *s, bool frozen)
{
    enum keeper_life life = frozen ? LIFE_PAUSED : LIFE_RUNNING;
    struct err err;

    if (s->info.life == life)
        return;
    set_life(k, s, life);
    if (write_journal(k, s, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
}

int sandbox_connect(struct keeper *k, const struct sandbox *s, int *ret_fd, struct err *err)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ucred peer;
    socklen_t len = sizeof peer;

    if (s->info.life != LIFE_RUNNING)
        return err_set(err, ERR_STATE, "sandbox '%s' is %s", s->info.id,
                       keeper_life_name(s->info.life));
    if (fd < 0)
        return err_sys(err, errno, "make a socket");
    (void) snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/%s.sock",
                    k->sandboxes_fd, s->info.id);
    if (connect(fd, (const struct sockaddr *) &to, sizeof to) < 0)
        return errno == EAGAIN
                   ? err_set(err, ERR_TOO_MANY, "sandbox '%s' has too many connections waiting",
                             s->info.id)
                   : err_sys(err, errno, "connect to sandbox '%s'", s->info.id);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid != s->info.pid) {
        log_line(LOG_ERROR, "sandbox=%s its socket belongs to pid=%d, not to pid=%d", s->info.id,
                 (int) peer.pid, s->info.pid);
        return err_set(err, ERR_UNAVAILABLE, "sandbox '%s' does not answer", s->info.id);
    }
    if (fcntl(fd, F_SETFL, 0) < 0)
        return err_sys(err, errno, "make the connection block");
    *ret_fd = take_fd(&fd);
    return 0;
}

int sandbox_stats(struct keeper *k, const struct sandbox *s, struct keeper_stats *ret,
                  struct err *err)
{
    struct statfs disk;
    char path[32];

    memset(ret, 0, sizeof *ret);
    if (cgroup_stats(&k->cgroups, s->info.id, ret, err) < 0)
        return -1;
    /* The kernel's own link to the sandbox's root: no name inside is looked up. */
    (void) snprintf(path, sizeof path, "/proc/%d/root", s->info.pid);
    if (statfs(path, &disk) == 0) {
        ret->disk_bytes = (uint64_t) (disk.f_blocks - disk.f_bfree) * (uint64_t) disk.f_bsize;
        ret->disk_inodes = (uint64_t) (disk.f_files - disk.f_ffree);
    }
    return 0;
}

int sandbox_tick(struct keeper *k)
{
    uint64_t now = io_now_ms();
    int wait = -1;

    for (uint32_t i = 0; i < k->slot_count; i++) {
        struct sandbox *s = &k->sandboxes[i];

        if (s->tie_until_ms && now >= s->tie_until_ms) {
            s->tie_until_ms = 0;
            sandbox_stop(k, s, "nobody came back for it");
        }
        if (s->tie_until_ms && (wait < 0 || wait > 1000))
            wait = 1000;
        if (s->info.life != LIFE_STOPPING || s->pid.fd >= 0)
            continue; /* on_death clears what has a process */
        clear(k, s);
        if (s->info.life == LIFE_STOPPING)
            wait = now - s->stop_since_ms > STUCK_MS ? 100 : 1;
    }
    return wait;
}
