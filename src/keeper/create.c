/* A create is three stretches that wait for somebody: the disk maker, the child, the agent. Between them
 * the keeper serves others.
 *
 *   create_begin   slot, name, disk              NEW       waits for an image disk, if it needs one
 *   start          journal, cgroup, clone, root  STARTING  waits for the child's exec and the agent
 *   on_ready       journal                       RUNNING
 *
 * A failure anywhere is sandbox_fail: the sandbox is stopped, and its caller told when it is gone. */
#include "keeper/create.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "jail/child.h"
#include "jail/creds.h"
#include "keeper/life.h"
#include "keeper/bases.h"
#include "keeper/load.h"
#include "keeper/merge.h"
#include "keeper/ops.h"
#include "keeper/pool.h"
#include "jail/root.h"
#include "keeper/sandbox.h"
#include "jail/template.h"
#include "keeper/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static void begin_step(struct sandbox *s, enum create_step step)
{
    /* A step's field holds its beginning until end_step; microseconds of a create fit 32 bits. */
    s->step_us[step] = (uint32_t) (io_now_us() - s->begun_us);
}

static void end_step(struct sandbox *s, enum create_step step)
{
    s->step_us[step] = (uint32_t) (io_now_us() - s->begun_us) - s->step_us[step];
}

/* Loaded from the image that it is, without its processes. */
static bool is_resumed(const struct sandbox *s)
{
    return s->image[0] && strcmp(s->image, s->info.id) == 0;
}

void create_running(struct keeper *k, struct sandbox *s)
{
    struct err err;

    sandbox_set_life(k, s, LIFE_RUNNING);
    if (sandbox_record(k, s, &err) < 0) {
        sandbox_fail(k, s, &err);
        return;
    }
    log_line(LOG_DEBUG,
             "create id=%s us_total=%" PRIu64
             " us_disk=%u us_prepare=%u us_clone=%u us_root=%u us_child=%u",
             s->info.id, io_now_us() - s->begun_us, s->step_us[STEP_DISK], s->step_us[STEP_PREPARE],
             s->step_us[STEP_CLONE], s->step_us[STEP_ROOT], s->step_us[STEP_CHILD]);
    log_line(LOG_INFO, "running sandbox=%s name=%s template=%s pid=%d ids=%u profile=%s disk=%s",
             s->info.id, s->info.name[0] ? s->info.name : "-", s->info.template, s->info.pid,
             s->info.uid_base, s->info.flags & KEEPER_FLAG_ROOT ? "root" : "strict",
             keeper_disk_name(s->info.disk_kind));
    pool_made(k, s);
    ops_sandbox_started(k, s);
}

static void on_ready(struct keeper *k, struct watch *watch)
{
    struct sandbox *s = container_of(watch, struct sandbox, ready);
    struct err err;
    bool resumed;
    char byte;
    ssize_t n = read(watch->fd, &byte, 1);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        err_sys(&err, errno, "hear from the agent");
        sandbox_fail(k, s, &err);
        return;
    }
    if (n == 0) {
        /* The end without the byte: the child failed. Its report, if any, is on the control line. */
        keeper_unwatch(k, watch);
        return;
    }
    end_step(s, STEP_CHILD);
    keeper_unwatch(k, watch);
    if (create_take_listener(k, s, &err) < 0 || sandbox_pid_started(s->info.pid, &s->pid_started, &err) < 0 ||
        (is_resumed(s) && image_retire(&k->images, s->image, &err) < 0)) {
        sandbox_fail(k, s, &err);
        return;
    }
    resumed = is_resumed(s);
    s->image[0] = '\0';
    create_running(k, s);
    /* Only now: until the record says so, what it was is what it is. */
    if (resumed && s->info.life != LIFE_RUNNING) {
        (void) image_unretire(&k->images, s->info.id);
    } else if (resumed) {
        images_forget(&k->images, s->info.id);
        load_discard(k, s->info.id, ".old");
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

int create_write_maps(int pid, uint32_t base, struct err *err)
{
    return write_map(pid, "uid_map", base, err) < 0 ? -1 : write_map(pid, "gid_map", base, err);
}

/* What the parent does while the child gets ready: maps, root file system, then the word to go. */
static int give_root(struct sandbox *s, const struct template *t, int control, struct err *err)
{
    auto_close int userns = -1, root = -1, shm = -1;
    struct root_layers layers = { .disk_fd = s->disk_fd,
                                  .kind = (enum keeper_disk) s->info.disk_kind,
                                  .base_count = s->layers.count - 1 };
    char path[40];
    int fds[CHILD_FD_COUNT + VOLUMES_MAX];
    size_t volumes = volume_use_count(s->volumes);
    struct err said;
    int rc;

    if (create_write_maps(s->info.pid, s->info.uid_base, err) < 0)
        return -1;
    (void) snprintf(path, sizeof path, "/proc/%d/ns/user", s->info.pid);
    userns = open(path, O_RDONLY | O_CLOEXEC);
    if (userns < 0)
        return err_sys(err, errno, "open the user namespace");
    memcpy(layers.base_fd, s->base_fd + 1, layers.base_count * sizeof layers.base_fd[0]);
    if (root_own_bases(layers.base_fd, layers.base_count, err) < 0)
        return -1;
    rc = root_assemble(t, &layers, userns, s->info.uid_base, &root, &shm, err);
    for (size_t i = 0; i < layers.base_count; i++)
        own_close(&layers.base_fd[i]);
    if (rc < 0 || volumes_map(s, userns, err) < 0)
        return -1;
    fds[CHILD_ROOT] = root;
    fds[CHILD_DISK] = s->disk_fd;
    fds[CHILD_SHM] = shm < 0 ? s->disk_fd : shm; /* the child knows whether to look */
    memcpy(fds + CHILD_FD_COUNT, s->volume_fd, sizeof s->volume_fd);
    if (io_send_fds(control, "g", 1, fds, CHILD_FD_COUNT + volumes) != 1) {
        err_sys(err, errno, "tell the child to go");
        /* It may be dead already, and have said why. */
        if (create_hear_child(s, control, &said) == (ssize_t) sizeof said)
            *err = said;
        return -1;
    }
    own_close(&s->disk_fd);
    volumes_let_go(s);
    return 0;
}

static int clone_child(struct keeper *k, struct sandbox *s, const struct child_spec *spec,
                       struct err *err)
{
    int pidfd = -1;
    struct clone_args args = {
        /* The network's and the cgroup's are the child's to make. */
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC |
                 CLONE_PIDFD | (spec->cgroup->v2_fd >= 0 ? CLONE_INTO_CGROUP : 0),
        .pidfd = (uint64_t) (uintptr_t) &pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = spec->cgroup->v2_fd >= 0 ? (uint64_t) spec->cgroup->v2_fd : 0,
    };
    long pid;
    int errnum;

    if (creds_owner(s->info.uid_base, err) < 0) {
        (void) creds_owner(0, err);
        return -1;
    }
    pid = syscall(__NR_clone3, &args, sizeof args);
    if (pid == 0)
        child_run(spec);
    errnum = errno;
    (void) creds_owner(0, err);
    if (pid < 0)
        return err_sys(err, errnum, "clone");
    s->info.pid = (int32_t) pid;
    if (keeper_watch(k, &s->pid, pidfd, sandbox_on_death, err) < 0) {
        /* Nobody would hear of its death. */
        (void) kill((pid_t) pid, SIGKILL);
        (void) waitpid((pid_t) pid, NULL, 0);
        return -1;
    }
    return 0;
}

/* The child and the two lines to it. */
static int launch(struct keeper *k, struct sandbox *s, const struct template *t,
                  const struct cgroup_entry *entry, struct err *err)
{
    auto_close int control = -1, control_child = -1, ready = -1, ready_child = -1;
    int pair[2];
    struct child_spec spec = {
        .limits = s->info.limits,
        .template = t,
        .cgroup = entry,
        .filter_notify = &k->filter_notify,
        .filter_quiet = &k->filter_quiet,
        .allow_root = s->info.flags & KEEPER_FLAG_ROOT,
        .shm_joined = s->layers.count > 1,
    };

    memcpy(spec.id, s->info.id, sizeof spec.id);
    memcpy(spec.hostname, s->hostname, sizeof spec.hostname);
    memcpy(spec.view, s->view->name, sizeof spec.view);
    memcpy(spec.volumes, s->volumes, sizeof spec.volumes);
    (void) snprintf(spec.agent, sizeof spec.agent, AGENTS_AT "/%s", k->agents.name);
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
    if (s->disk_fd < 0 && disk_make_memory(&s->info.limits, s->info.uid_base, &s->disk_fd, err) < 0)
        return -1;
    if (give_root(s, t, control, err) < 0)
        return -1;
    end_step(s, STEP_ROOT);
    begin_step(s, STEP_CHILD);
    if (keeper_watch(k, &s->control, take_fd(&control), create_on_control, err) < 0)
        return -1;
    return keeper_watch(k, &s->ready, take_fd(&ready), on_ready, err);
}

static int start(struct keeper *k, struct sandbox *s, struct err *err)
{
    struct cgroup_entry entry = { .v2_fd = -1 };
    struct template t;
    struct limits limits;
    struct stat tree;
    int rc = -1;

    begin_step(s, STEP_PREPARE);
    sandbox_set_life(k, s, LIFE_STARTING);
    if (template_open_tree(&t, k->templates_fd, s->info.template, s->template_inode, err) < 0)
        return -1;
    s->build = t.build;
    if (fstat(t.root_fd, &tree) == 0)
        s->template_inode = (uint64_t) tree.st_ino;
    if (sandbox_record(k, s, err) < 0)
        goto out;
    s->view = sysview_take(&k->views, &s->info.limits, err);
    if (!s->view)
        goto out;
    limits = s->info.limits;
    if (s->image_memory) { /* criu works within them, beside processes that may be as many as are allowed */
        limits.processes += LOAD_EXTRA_PROCESSES;
        limits.memory_bytes += LOAD_EXTRA_MEMORY;
    }
    if (cgroup_create(&k->cgroups, s->made_as, &limits, err) < 0 ||
        cgroup_entry_open(&k->cgroups, s->made_as, &entry, err) < 0)
        goto out;
    end_step(s, STEP_PREPARE);
    rc = s->image_memory ? load_processes(k, s, &t, err) : launch(k, s, &t, &entry, err);
out:
    cgroup_entry_close(&entry);
    template_close(&t);
    return rc;
}

/* Takes the descriptor. NULL: nobody waits for it any more. */
static struct sandbox *give_to_who_ordered(struct keeper *k, uint32_t order, int mount_fd)
{
    for (uint32_t i = 0; i < k->slot_count; i++) {
        struct sandbox *s = &k->sandboxes[i];

        if (s->info.life != LIFE_NEW)
            continue;
        if (s->disk_order == order) {
            s->disk_fd = mount_fd;
            return s;
        }
        if (volumes_take(s, order, mount_fd))
            return s;
    }
    return NULL;
}

/* Its disk and its volumes are here. */
static bool complete(const struct sandbox *s)
{
    return (s->info.disk_kind == DISK_MEMORY || s->disk_fd >= 0) && volumes_here(s);
}

bool create_got_disk(struct keeper *k, uint32_t order, int mount_fd, const struct err *why)
{
    struct sandbox *s = give_to_who_ordered(k, order, mount_fd);

    if (!s)
        return false;
    if (mount_fd < 0) {
        sandbox_fail(k, s, why);
        return true;
    }
    create_go_on(k, s);
    return true;
}

void create_go_on(struct keeper *k, struct sandbox *s)
{
    struct err err;
    int bases;

    if (!complete(s))
        return;
    bases = bases_open(k, s, &err);
    if (bases == 0)
        return;
    end_step(s, STEP_DISK);
    if (bases < 0 || start(k, s, &err) < 0)
        sandbox_fail(k, s, &err);
}

/* Round robin: an id range rests as long as can be before another sandbox gets it. */
static struct sandbox *free_slot(struct keeper *k)
{
    for (uint32_t i = 0; i < k->slot_limit; i++) {
        uint32_t slot = (k->slot_next + i) % k->slot_limit;

        if (k->sandboxes[slot].info.life == LIFE_GONE) {
            k->slot_next = (slot + 1) % k->slot_limit;
            return &k->sandboxes[slot];
        }
    }
    return NULL;
}

/* Those in the pool count for nobody but the pool. */
static int check_count(const struct keeper *k, const struct keeper_request *r, struct err *err)
{
    uint32_t count =
        r->flags & KEEPER_FLAG_POOLED ? k->sandbox_count : k->sandbox_count - k->pooled;

    return count >= k->sandboxes_max
               ? err_set(err, ERR_TOO_MANY, "there are %u sandboxes, as many as allowed", count)
               : 0;
}

/* A sandbox that is paused to disk keeps its id. */
static int check_id(const struct keeper *k, const struct keeper_request *r, struct err *err)
{
    if (images_have(&k->images, r->sandbox))
        return err_set(err, ERR_NAME_TAKEN, "there is an image '%s' already", r->sandbox);
    return 0;
}

static int check_room(struct keeper *k, const struct keeper_request *r, uint64_t *ret_build,
                      struct err *err)
{
    struct statfs state;
    struct template t;

    if (limits_check(&r->limits, k->host_memory, k->host_cpu_milli, err) < 0)
        return -1;
    if (sandbox_find(k, r->sandbox) || sandbox_made_as(k, r->sandbox))
        return err_set(err, ERR_NAME_TAKEN, "there is a sandbox '%s' already", r->sandbox);
    if (r->name[0] && sandbox_find(k, r->name))
        return err_set(err, ERR_NAME_TAKEN, "the name '%s' is taken", r->name);
    if (check_count(k, r, err) < 0)
        return -1;
    if (template_open(&t, k->templates_fd, r->template, err) < 0)
        return -1;
    *ret_build = t.build;
    template_close(&t);
    if (volumes_check(k, r->sandbox, r->volumes, err) < 0)
        return -1;
    if (fstatfs(k->state_fd, &state) == 0 &&
        r->limits.disk_bytes > (uint64_t) state.f_blocks * (uint64_t) state.f_bsize)
        return err_set(err, ERR_LIMIT_HOST, "limit 'disk': more than the host's disk has");
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

void create_name(struct sandbox *s, const struct keeper_request *r, int connection)
{
    memcpy(s->info.id, r->sandbox, sizeof s->info.id);
    memcpy(s->info.name, r->name, sizeof s->info.name);
    memcpy(s->hostname,
           r->hostname[0] ? r->hostname
           : r->name[0]   ? r->name
                          : r->sandbox,
           sizeof s->hostname);
    memcpy(s->volumes, r->volumes, sizeof s->volumes);
    s->info.flags = r->flags;
    s->info.created_ms = real_time_ms();
    if (r->flags & KEEPER_FLAG_TIED)
        s->tied_to = connection;
}

static void fill(struct keeper *k, struct sandbox *s, const struct keeper_request *r,
                 int connection)
{
    sandbox_reset(s);
    create_name(s, r, connection);
    s->info.flags &= ~KEEPER_FLAG_TAKE; /* it was not */
    memcpy(s->made_as, r->sandbox, sizeof s->made_as);
    memcpy(s->info.template, r->template, sizeof s->info.template);
    s->info.limits = r->limits;
    s->info.slot = sandbox_slot(k, s);
    s->info.uid_base = ids_base(k->id_block, s->info.slot);
    s->info.disk_kind = disk_kind(&r->limits, r->flags & KEEPER_FLAG_TIED);
    s->layers.count = 1;
    s->begun_us = io_now_us();
}

static struct sandbox *take_slot(struct keeper *k, const struct keeper_request *r, int connection,
                                 struct err *err)
{
    struct sandbox *s;

    pool_make_room(k);
    s = free_slot(k);
    if (!s) {
        err_set(err, ERR_NO_IDS, "all %u ranges of user ids are in use", k->slot_limit);
        return NULL;
    }
    fill(k, s, r, connection);
    sandbox_set_life(k, s, LIFE_NEW);
    begin_step(s, STEP_DISK);
    s->disk_order = keeper_next_order(k);
    return s;
}

int create_begin(struct keeper *k, const struct keeper_request *r, int connection,
                 struct sandbox **ret, struct err *err)
{
    uint64_t build = 0;
    struct sandbox *s;
    int have_disk = 1;

    if (check_id(k, r, err) < 0 || check_room(k, r, &build, err) < 0)
        return -1;
    s = r->flags & KEEPER_FLAG_TAKE ? pool_take(k, r, build, connection) : NULL;
    if (s) {
        *ret = s;
        return 0;
    }
    s = take_slot(k, r, connection, err);
    if (!s)
        return -1;
    *ret = s;
    if (s->info.disk_kind == DISK_IMAGE)
        have_disk = disks_take(&k->disks, &r->limits, s->disk_order, &s->layers.number[0],
                               &s->disk_fd, err);
    if (have_disk < 0 || volumes_order(k, s, err) < 0)
        sandbox_fail(k, s, err);
    else
        create_go_on(k, s);
    return 0;
}

void create_over_image(struct keeper *k, struct sandbox *s, const struct image_meta *meta)
{
    struct err err;
    int have_disk;

    if (is_resumed(s)) {
        s->info.created_ms = meta->image.sandbox.created_ms;
        s->layers = meta->layers;
        have_disk = disks_open(&k->disks, s->layers.number[0], false, s->disk_order, &err);
    } else { /* a disk of its own, over those of the image */
        s->layers.count = meta->layers.count + 1;
        memcpy(s->layers.number + 1, meta->layers.number,
               meta->layers.count * sizeof meta->layers.number[0]);
        have_disk = disks_take(&k->disks, &s->info.limits, s->disk_order, &s->layers.number[0],
                               &s->disk_fd, &err);
    }
    if (have_disk < 0 || volumes_order(k, s, &err) < 0)
        sandbox_fail(k, s, &err);
    else
        create_go_on(k, s);
}

int create_from_image(struct keeper *k, const struct keeper_request *r,
                      const struct image_meta *meta, bool same, bool files_only,
                      struct sandbox **ret, struct err *err)
{
    uint64_t build = 0;
    struct sandbox *s;

    if ((!same && check_id(k, r, err) < 0) || check_room(k, r, &build, err) < 0)
        return -1;
    s = r->flags & KEEPER_FLAG_TAKE ? pool_take(k, r, build, -1) : NULL;
    if (s) {
        *ret = s;
        return 0;
    }
    s = take_slot(k, r, -1, err);
    if (!s)
        return -1;
    *ret = s;
    memcpy(s->image, meta->image.id, sizeof s->image);
    if (r->flags & KEEPER_FLAG_POOLED) {
        memcpy(s->origin, meta->image.id, sizeof s->origin);
        s->info.flags |= KEEPER_FLAG_LOADED;
    }
    s->image_memory = meta->image.flags & KEEPER_IMAGE_MEMORY && !files_only;
    s->template_inode = meta->template_inode;
    s->info.flags |= meta->image.sandbox.flags & KEEPER_FLAG_ROUTED;
    if (!same && merge_needed(&meta->layers))
        merge_before(k, s);
    else
        create_over_image(k, s, meta);
    return 0;
}
