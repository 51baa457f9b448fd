/* A jail is started in two stretches that wait for another process: the child, the agent. Between them the keeper serves others.
 *
 *   launch_start   journal, cgroup, clone, root  STARTING  waits for the child's exec and the agent
 *   on_ready       journal                       RUNNING   (create_running)
 *
 * The cgroup and the clone may have been made before the create was asked for: spare.h. */
#include "driver/jail/launch.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "driver/io_rule.h"
#include "driver/jail/hear.h"
#include "driver/jail/load.h"
#include "driver/jail/loader.h"
#include "driver/jail/spare.h"
#include "driver/layers.h"
#include "jail/child.h"
#include "jail/creds.h"
#include "jail/root.h"
#include "keeper/create.h"
#include "keeper/life.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Loaded from the image that it is, without its processes. */
static bool is_resumed(const struct sandbox *s)
{
    return s->image[0] && strcmp(s->image, s->info.id) == 0;
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
    create_end_step(s, STEP_CHILD);
    keeper_unwatch(k, watch);
    if (hear_take_listener(k, s, &err) < 0 ||
        sandbox_pid_started(s->info.pid, &s->pid_started, &err) < 0 ||
        (is_resumed(s) && image_retire(&k->host->images, s->image, &err) < 0)) {
        sandbox_fail(k, s, &err);
        return;
    }
    resumed = is_resumed(s);
    s->image[0] = '\0';
    create_running(k, s);
    /* Only now: until the record says so, what it was is what it is. */
    if (resumed && s->info.life != LIFE_RUNNING) {
        (void) image_unretire(&k->host->images, s->info.id);
    } else if (resumed) {
        images_forget(&k->host->images, s->info.id);
        host_discard_image(k, s->info.id, ".old");
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

int launch_write_maps(int pid, uint32_t base, struct err *err)
{
    return write_map(pid, "uid_map", base, err) < 0 ? -1 : write_map(pid, "gid_map", base, err);
}

static void fill_order(const struct keeper *k, const struct sandbox *s, const struct template *t,
                       struct child_order *ret)
{
    ret->limits = s->info.limits;
    memcpy(ret->hostname, s->hostname, sizeof ret->hostname);
    memcpy(ret->view, s->view_name, sizeof ret->view);
    memcpy(ret->volumes, s->volumes, sizeof ret->volumes);
    ret->allow_root = s->info.flags & KEEPER_FLAG_ROOT;
    ret->shm_joined = s->layers.count > 1;
    (void) snprintf(ret->agent, sizeof ret->agent, AGENTS_AT "/%s", k->host->agents.name);
    memcpy(&ret->template, t, offsetof(struct template, env) + t->env_used);
}

/* The word to go: what the sandbox is, with what its mounts are made of. */
static int say_go(const struct keeper *k, struct sandbox *s, const struct template *t,
                  const struct machine *machine, int control, int root, int shm, struct err *err)
{
    static struct child_order order; /* static: larger than a stack frame should be */
    int fds[CHILD_FDS_MAX] = {
        [CHILD_ROOT] = root,
        [CHILD_DISK] = s->disk_fd,
        [CHILD_SHM] = shm < 0 ? s->disk_fd : shm, /* the child knows whether to look */
    };
    size_t count = CHILD_FD_COUNT + volume_use_count(s->volumes);
    size_t roots = machine ? strlen(machine->roots) : 0;
    struct err said;
    ssize_t size, sent;

    memcpy(fds + CHILD_FD_COUNT, s->volume_fd, sizeof s->volume_fd);
    if (roots > 0)
        memcpy(fds + count, machine->root_fd, roots * sizeof fds[0]);
    fill_order(k, s, t, &order);
    size = (ssize_t) child_order_size(&order);
    sent = io_send_fds(control, &order, (size_t) size, fds, count + roots);
    if (sent != size)
        err_sys(err, errno, "tell the child to go");
    explicit_bzero(&order, (size_t) size); /* a copy of our memory is in the next child */
    if (sent == size)
        return 0;
    /* It may be dead already, and have said why. */
    if (hear_child(s, control, &said) == (ssize_t) sizeof said)
        *err = said;
    return -1;
}

/* What the parent does while the child gets ready: maps, root file system, then the word to go. Layers are closed behind that, or
 * the child would wait for each. */
static int give_root(const struct keeper *k, struct sandbox *s, const struct template *t,
                     const struct machine *machine, const struct launch_lines *lines,
                     bool in_worker, struct err *err)
{
    auto_close int userns = -1, root = -1, shm = -1;
    struct root_layers layers = { .disk_fd = s->disk_fd,
                                  .kind = (enum keeper_disk) s->info.disk_kind,
                                  .base_count = s->layers.count - 1 };
    char path[40];
    int rc;

    if (!lines->mapped && launch_write_maps(s->info.pid, s->info.uid_base, err) < 0)
        return -1;
    (void) snprintf(path, sizeof path, "/proc/%d/ns/user", s->info.pid);
    userns = open(path, O_RDONLY | O_CLOEXEC);
    if (userns < 0)
        return err_sys(err, errno, "open the user namespace");
    memcpy(layers.base_fd, s->base_fd + 1, layers.base_count * sizeof layers.base_fd[0]);
    if (!in_worker && root_own_bases(layers.base_fd, layers.base_count, err) < 0)
        return -1;
    rc = root_assemble(t, &layers, userns, s->info.uid_base, &root, &shm, err);
    if (rc == 0)
        rc = volumes_map(s, userns, err);
    if (rc == 0)
        rc = say_go(k, s, t, machine, lines->control, root, shm, err);
    root_close_template(&layers);
    for (size_t i = 0; i < layers.base_count; i++)
        own_close(&layers.base_fd[i]);
    if (rc < 0)
        return -1;
    own_close(&s->disk_fd);
    volumes_let_go(s);
    return 0;
}

/* Into the namespaces that the child gets copies of. A machine gets the keeper's own mounts: what is in it has CAP_SYS_ADMIN. */
static int enter_parents(const struct host *host, const struct launch_kind *kind, struct err *err)
{
    if (nets_enter_parent(&host->nets, err) < 0)
        return -1;
    if (!kind->machine && mount_parent_enter(&host->mount_parent, kind->with_usr, err) < 0) {
        nets_leave(&host->nets);
        return -1;
    }
    return 0;
}

static void leave_parents(const struct host *host, const struct launch_kind *kind)
{
    if (!kind->machine)
        mount_parent_leave(&host->mount_parent);
    nets_leave(&host->nets);
}

static int clone_child(const struct host *host, const struct launch_kind *kind,
                       const struct child_spec *spec, struct launch_lines *ret, struct err *err)
{
    struct clone_args args = {
        /* The network's and the cgroup's are the child's to make. */
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC |
                 CLONE_PIDFD | (spec->cgroup->v2_fd >= 0 ? CLONE_INTO_CGROUP : 0) |
                 (spec->shares_table ? CLONE_FILES : 0),
        .pidfd = (uint64_t) (uintptr_t) &ret->pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = spec->cgroup->v2_fd >= 0 ? (uint64_t) spec->cgroup->v2_fd : 0,
    };
    long pid;
    int errnum;

    if (enter_parents(host, kind, err) < 0)
        return -1;
    if (creds_owner(kind->uid_base, err) < 0) {
        (void) creds_owner(0, err);
        leave_parents(host, kind);
        return -1;
    }
    pid = syscall(__NR_clone3, &args, sizeof args);
    if (pid == 0)
        child_run(spec);
    errnum = errno;
    (void) creds_owner(0, err);
    leave_parents(host, kind);
    if (pid < 0)
        return err_sys(err, errnum, "clone");
    ret->pid = (pid_t) pid;
    return 0;
}

/* Its death would be heard of by no process. */
static void end_child(struct sandbox *s)
{
    (void) kill((pid_t) s->info.pid, SIGKILL);
    (void) waitpid((pid_t) s->info.pid, NULL, 0);
    s->info.pid = 0;
}

void launch_free_fds(struct keeper *k, struct sandbox *s)
{
    low_fds_free(&k->host->low_fds, s->low_fds);
    s->low_fds = 0;
}

/* The descriptors of `spec`, and of what it points to, get low numbers. */
static int place_fds(unsigned row, struct child_spec *spec, struct cgroup_entry *entry,
                     struct machine *machine, struct err *err)
{
    int *of_machine[] = { &machine->bridge_fd, &machine->kvm_fd, &machine->memory_fd,
                          &machine->state_fd };
    int *fds[LOW_FDS_EACH] = { &spec->control_fd, &spec->ready_fd };
    unsigned count = 2;

    _Static_assert(LOW_FDS_EACH >= 2 + ARRAY_LEN(of_machine) + CG_HIERARCHIES_MAX,
                   "a place for each");
    for (size_t i = 0; spec->machine && i < ARRAY_LEN(of_machine); i++)
        if (*of_machine[i] >= 0)
            fds[count++] = of_machine[i];
    for (size_t i = 0; i < entry->count; i++)
        fds[count++] = &entry->tasks_fd[i];
    for (unsigned i = 0; i < count; i++) {
        *fds[i] = low_fds_put(row, i, *fds[i]);
        if (*fds[i] < 0)
            return err_sys(err, errno, "place the child's descriptors");
    }
    spec->cgroup = entry;
    spec->machine = spec->machine ? machine : NULL;
    spec->shares_table = true;
    return 0;
}

int launch_child(struct keeper *k, const struct launch_kind *kind, const struct cgroup_entry *entry,
                 struct launch_lines *ret, struct err *err)
{
    auto_close int control = -1, control_child = -1, ready = -1, ready_child = -1;
    struct cgroup_entry placed = *entry;
    struct machine own = kind->machine ? *kind->machine : (struct machine){ .kvm_fd = -1 };
    int pair[2];
    struct child_spec spec = {
        .cgroup = entry,
        .filter_notify = &k->host->filter_notify,
        .filter_quiet = &k->host->filter_quiet,
        .filter_machine = &k->host->filter_machine,
        .filter_kvm = &k->host->filter_kvm,
        .machine = kind->machine,
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
    if (kind->low_fds && place_fds(kind->low_fds, &spec, &placed, &own, err) < 0)
        return -1;
    if (clone_child(k->host, kind, &spec, ret, err) < 0)
        return -1;
    ret->control = take_fd(&control);
    ret->ready = take_fd(&ready);
    return 0;
}

int launch_root(const struct keeper *k, struct sandbox *s, const struct template *t,
                const struct machine *machine, const struct launch_lines *lines, bool in_worker,
                struct err *err)
{
    create_begin_step(s, STEP_ROOT);
    if (s->disk_fd < 0 && disk_make_memory(&s->info.limits, s->info.uid_base, &s->disk_fd, err) < 0)
        return -1;
    if (give_root(k, s, t, machine, lines, in_worker, err) < 0)
        return -1;
    create_end_step(s, STEP_ROOT);
    return 0;
}

/* A child of its own, in its cgroups. */
static int begin_child(struct keeper *k, struct sandbox *s, bool with_usr,
                       const struct machine *machine, struct launch_lines *ret, struct err *err)
{
    struct launch_kind kind = { .uid_base = s->info.uid_base,
                                .with_usr = with_usr,
                                .machine = machine };
    struct cgroup_entry entry;
    int rc;

    if (cgroup_entry_open(&k->host->cgroups, s->cgroup, &entry, err) < 0)
        return -1;
    create_begin_step(s, STEP_CLONE);
    kind.low_fds = s->low_fds = low_fds_take(&k->host->low_fds);
    rc = launch_child(k, &kind, &entry, ret, err);
    cgroup_entry_close(&entry);
    if (rc < 0)
        return -1;
    s->info.pid = (int32_t) ret->pid;
    create_end_step(s, STEP_CLONE);
    if (keeper_watch(k, &s->pid, take_fd(&ret->pidfd), sandbox_on_death, err) < 0) {
        end_child(s);
        return -1;
    }
    return 0;
}

/* The limit of processor time is written while the child gets ready: it takes as long as there are sandboxes, and until the
 * create is answered nothing but our own programs run in it. */
static int launch(struct keeper *k, struct sandbox *s, const struct template *t,
                  const struct machine *machine, const struct limits *limits,
                  struct launch_lines *lines, struct err *err)
{
    if (lines->control < 0 && begin_child(k, s, t->host_usr, machine, lines, err) < 0)
        return -1;
    if (launch_root(k, s, t, machine, lines, false, err) < 0)
        return -1;
    create_begin_step(s, STEP_CHILD);
    if (cgroup_share(&k->host->cgroups, s->cgroup, limits, err) < 0 ||
        keeper_watch(k, &s->control, take_fd(&lines->control), hear_on_control, err) < 0)
        return -1;
    return keeper_watch(k, &s->ready, take_fd(&lines->ready), on_ready, err);
}

void launch_close(struct launch_lines *lines)
{
    own_close(&lines->pidfd);
    own_close(&lines->control);
    own_close(&lines->ready);
}

/* With every limit but that of processor time. */
static int make_cgroups(struct keeper *k, const struct sandbox *s, const struct limits *limits,
                        bool made, struct err *err)
{
    if ((made ? cgroup_bound : cgroup_create)(&k->host->cgroups, s->cgroup, limits, err) < 0)
        return -1;
    return io_rule_begin(k, s, err);
}

static int start(struct keeper *k, struct sandbox *s, const struct machine *machine,
                 worker_deed *loader, struct err *err)
{
    struct launch_lines lines = LAUNCH_NO_LINES;
    struct template t;
    struct limits limits;
    bool spare;
    int rc = -1;

    create_begin_step(s, STEP_PREPARE);
    sandbox_set_life(k, s, LIFE_STARTING);
    if (template_open_tree(&t, k->host->templates_fd, s->info.template, s->template_inode, err) < 0)
        return -1;
    s->build = t.build;
    s->template_inode = t.inode;
    io_rule_find(k, s);
    if (layers_mount(k->host, &t, err) < 0)
        goto out;
    spare = spare_take(k, s, !machine && !s->image_memory, t.host_usr, &lines);
    if (sandbox_record(k, s, err) < 0)
        goto out;
    s->view = sysview_take(&k->host->views, &s->info.limits, err);
    if (!s->view)
        goto out;
    memcpy(s->view_name, s->view->name, sizeof s->view_name);
    limits = s->info.limits;
    if (machine)
        machine_allow(machine->vm, &limits);
    if (s->image_memory &&
        !machine) { /* criu works within them, beside processes that may be as many as are allowed */
        limits.processes += LOAD_EXTRA_PROCESSES;
        limits.memory_bytes += LOAD_EXTRA_MEMORY;
    }
    if (make_cgroups(k, s, &limits, spare, err) < 0)
        goto out;
    create_end_step(s, STEP_PREPARE);
    if (!s->image_memory)
        rc = launch(k, s, &t, machine, &limits, &lines, err);
    else if (cgroup_share(&k->host->cgroups, s->cgroup, &limits, err) == 0)
        rc = load_processes(k, s, loader, err);
out:
    launch_close(&lines);
    template_close(&t);
    return rc;
}

void launch_machine(struct keeper *k, struct sandbox *s, const struct machine *machine,
                    worker_deed *loader)
{
    struct err err;

    if (start(k, s, machine, loader, &err) < 0)
        sandbox_fail(k, s, &err);
}

void launch_start(struct keeper *k, struct sandbox *s)
{
    launch_machine(k, s, NULL, loader_run);
}
