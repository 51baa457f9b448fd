/* The order of steps, and why:
 *
 *   alone       every inherited descriptor goes first: nothing below can leak one.
 *   enter       its cgroups, by itself, so that whatever follows is limited and accounted, and a
 *               keeper that restarts finds it there.
 *   listen      a network namespace, and the agent's socket bound in it; then no further namespaces.
 *   wait        until the keeper has written the id maps and made the root, and says what the sandbox is. It mustn't make files
 *               before. Until here all children are alike, and one may wait for a sandbox that is not yet asked for.
 *   root        mounts, a new root. It mustn't have run anything of the tenant's: every path below is
 *               resolved with openat2 inside the new root, without links.
 *   confine     limits, capabilities, no_new_privs, Landlock; seccomp last, because it refuses most
 *               of what comes before it. The keeper gets a duplicate of the listener. Then exec. */
#include "jail/child.h"

#include "base/io.h"
#include "base/own.h"
#include "jail/confine.h"
#include "jail/low_fds.h"
#include "jail/mountfd.h"
#include "jail/mounts.h"
#include "jail/net.h"
#include "jail/spaces.h"
#include "jail/volumes.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Where descriptors are from `alone` on; the agent's own are in wire/boot.h. */
enum {
    FD_CONTROL = BOOT_FD_CONTROL,
    FD_KVM = BOOT_FD_KVM,       /* only of a virtual machine */
    FD_MEMORY = BOOT_FD_MEMORY, /* the same, with a memory that others have, too */
    FD_STATE = BOOT_FD_STATE,
    FD_ROOT =
        BOOT_FD_ROOT, /* the same, with a template that is files: as many as those are, at the exec */
    FD_BRIDGE = FD_ROOT + BOOT_ROOTS_MAX, /* only with a machine */
    FD_TASKS,                             /* as many as there are v1 hierarchies */
    FD_SPARE = 64,                        /* numbers from here on are free */
};

static bool is_vm(const struct child_spec *s)
{
    return s->machine && s->machine->vm;
}

static _Noreturn void fail(struct err *err)
{
    (void) send(FD_CONTROL, err, sizeof *err, MSG_NOSIGNAL);
    _exit(1);
}

/* While the control socket is not yet in its place. */
static _Noreturn void fail_early(int control_fd, int errnum)
{
    struct err err;

    err_sys(&err, errnum, "place the child's descriptors");
    (void) send(control_fd, &err, sizeof err, MSG_NOSIGNAL);
    _exit(2);
}

static _Noreturn void fail_sys(int errnum, const char *what)
{
    struct err err;

    err_sys(&err, errnum, "%s", what);
    fail(&err);
}

/* Moves what is needed to its place, through a range that is surely free, and closes the rest. */
static void step_alone(const struct child_spec *s)
{
    const struct machine *m = s->machine;
    const struct {
        int from, to;
    } of_machine[] = {
        { m ? m->kvm_fd : -1, FD_KVM },
        { m ? m->memory_fd : -1, FD_MEMORY },
        { m ? m->state_fd : -1, FD_STATE },
        { m ? m->bridge_fd : -1, FD_BRIDGE },
    };
    struct {
        int from, to;
    } move[2 + ARRAY_LEN(of_machine) + CG_HIERARCHIES_MAX] = {
        { s->control_fd, FD_CONTROL },
        { s->ready_fd, BOOT_FD_READY },
    };
    int count = 2;

    /* Until then a close would be the keeper's, too. */
    if (s->shares_table && low_fds_unshare() < 0)
        fail_early(s->control_fd, errno);
    for (size_t i = 0; i < ARRAY_LEN(of_machine); i++)
        if (of_machine[i].from >= 0) {
            move[count].from = of_machine[i].from;
            move[count++].to = of_machine[i].to;
        }
    for (size_t i = 0; i < s->cgroup->count; i++, count++) {
        move[count].from = s->cgroup->tasks_fd[i];
        move[count].to = FD_TASKS + (int) i;
    }
    for (int i = 0; i < count; i++) {
        int high = fcntl(move[i].from, F_DUPFD, FD_SPARE);

        if (high < 0) /* EINVAL: no number that high is allowed */
            fail_early(s->control_fd, errno == EINVAL ? EMFILE : errno);
        move[i].from = high;
    }
    for (int i = 0; i < count; i++)
        if (dup3(move[i].from, move[i].to, move[i].to == BOOT_FD_READY ? 0 : O_CLOEXEC) < 0)
            fail_early(move[0].from, errno);
    for (size_t i = 0; i < ARRAY_LEN(of_machine); i++)
        if (of_machine[i].from < 0)
            (void) close(of_machine[i].to);
    for (int fd = FD_ROOT; fd < FD_ROOT + BOOT_ROOTS_MAX; fd++) /* those come with the word to go */
        (void) close(fd);
    (void) close(BOOT_FD_LISTEN);
    (void) close(BOOT_FD_NOTIFY);
    if (io_close_from(FD_TASKS + (int) s->cgroup->count, false) < 0)
        fail_early(FD_CONTROL, errno);
}

static void step_fresh_start(void)
{
    sigset_t none;

    (void) prctl(PR_SET_NAME, "cove-child"); /* until the exec: one may wait for long */
    (void) signal(SIGPIPE, SIG_DFL);         /* the only one the keeper changes */
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    (void) umask(022);
    if (setsid() < 0)
        fail_sys(errno, "setsid");
    /* A session keyring survives fork and exec; where the kernel has none there is nothing to inherit. */
    if (syscall(__NR_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
        fail_sys(errno, "join a fresh keyring");
}

static void step_enter_cgroups(const struct child_spec *s)
{
    for (size_t i = 0; i < s->cgroup->count; i++) {
        int fd = FD_TASKS + (int) i;

        if (write(fd, "0", 1) != 1)
            fail_sys(errno, "enter the cgroup");
        (void) close(fd);
    }
    /* After entering, so that this cgroup becomes "/" of what can be seen from inside. */
    if (unshare(CLONE_NEWCGROUP) < 0)
        fail_sys(errno, "new cgroup namespace");
}

/* In the sandbox's own network namespace, so that a checkpoint finds the socket. The agent
 * sends away connections from inside. */
static void step_bind_agent_socket(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (fd < 0)
        fail_sys(errno, "make the agent's socket");
    memcpy(at.sun_path + 1, BOOT_AGENT_SOCKET, sizeof BOOT_AGENT_SOCKET - 1);
    if (bind(fd, (const struct sockaddr *) &at,
             (socklen_t) (offsetof(struct sockaddr_un, sun_path) + sizeof BOOT_AGENT_SOCKET)) < 0)
        fail_sys(errno, "bind the agent's socket");
    if (fd != BOOT_FD_LISTEN && (dup2(fd, BOOT_FD_LISTEN) < 0 || close(fd) < 0))
        fail_sys(errno, "place the agent's socket");
}

/* The sandbox's own /proc, attached later. The settings below are written through it: in a /proc that sandboxes share, the names of
 * each one's settings are found behind those of all others. */
static int step_proc(void)
{
    struct err err;
    int fd = mountfd_proc(&err);

    if (fd < 0)
        fail(&err);
    return fd;
}

/* By itself, so that its 0.4 ms pass beside the keeper's work on the root. */
static void step_network(int proc_fd)
{
    struct err err;

    if (unshare(CLONE_NEWNET) < 0)
        fail_sys(errno, "new network namespace");
    if (net_prepare(proc_fd, &err) < 0)
        fail(&err);
}

static void step_name(const struct child_order *o)
{
    if (sethostname(o->hostname, strlen(o->hostname)) < 0)
        fail_sys(errno, "set the host name");
}

/* Its namespaces are there by now. What the mounts below are made of counts as one more, so that count is for later. */
static int step_forbid_spaces(int proc_fd)
{
    struct err err;
    int fd = -1;

    if (spaces_forbid(proc_fd, &fd, &err) < 0)
        fail(&err);
    return fd;
}

static void step_bound_spaces(int proc_fd)
{
    struct err err;

    if (spaces_bound(proc_fd, &err) < 0)
        fail(&err);
}

/* Returns how many of the descriptors are the sandbox's; those of a machine's template are behind them. */
static size_t step_wait(const struct child_spec *s, struct child_order *o, int fds[CHILD_FDS_MAX])
{
    size_t count = 0, own;
    ssize_t n = io_recv_fds(FD_CONTROL, o, sizeof *o, fds, CHILD_FDS_MAX, &count);

    /* The end of the socket is a keeper that died or changed its mind: nothing to report, and no reader. */
    if (n < (ssize_t) offsetof(struct child_order, template.env) ||
        (size_t) n != child_order_size(o))
        _exit(3);
    own = CHILD_FD_COUNT + volume_use_count(o->volumes);
    if (count != own + (s->machine ? strlen(s->machine->roots) : 0))
        _exit(3);
    return own;
}

static void step_become_root_inside(void)
{
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        fail_sys(errno, "become the sandbox's root");
}

/* In the new root: the sandbox's own /dev/null, no file of the host. */
static void step_stdio(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        fail_sys(errno, "open /dev/null");
    for (int i = 0; i < 3; i++)
        if (dup2(fd, i) < 0)
            fail_sys(errno, "redirect stdio");
    (void) close(fd);
}

/* The keeper holds a duplicate for as long as the sandbox lives: while any is open, no other process can listen. */
static void step_give_listener(bool listening)
{
    const char word = listening ? CHILD_LISTENS : CHILD_QUIET;
    int fd = BOOT_FD_NOTIFY;

    if (io_send_fds(FD_CONTROL, &word, sizeof word, &fd, listening) != (ssize_t) sizeof word)
        fail_sys(errno, "hand over the listener");
}

/* As wire/boot.h has them. */
static void put_volumes(const struct volume_use uses[VOLUMES_MAX], char *out, size_t size)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < volume_use_count(uses); i++)
        len += (size_t) snprintf(out + len, size - len, "%c%s\n",
                                 uses[i].flags & VOLUME_READ_ONLY ? 'r' : 'w', uses[i].path);
}

/* In their places, through numbers that are surely free: these are wherever the message had put them. */
static void place_roots(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_SPARE);
        if (fds[i] < 0)
            fail_sys(errno, "keep the template's files");
    }
    for (size_t i = 0; i < count; i++)
        if (dup2(fds[i], FD_ROOT + (int) i) < 0)
            fail_sys(errno, "place the template's files");
}

/* The bridge gets the agent's arguments behind its own. Its failures go the child's way. */
static void exec_bridge(const struct child_spec *s, const struct child_order *o, int *root_fds,
                        char **argv, char **envp)
{
    const struct {
        int fd, at;
    } kept[] = { { 0, FD_CONTROL },
                 { s->machine->kvm_fd, FD_KVM },
                 { s->machine->memory_fd, FD_MEMORY },
                 { s->machine->state_fd, FD_STATE } };
    char cores[24], processes[24], inodes[24], volumes[VOLUMES_MAX * (VOLUME_PATH_MAX + 2)];

    (void) snprintf(cores, sizeof cores, "%" PRIu64, (o->limits.cpu_milli + 999) / 1000);
    (void) snprintf(processes, sizeof processes, "%" PRIu64, o->limits.processes);
    (void) snprintf(inodes, sizeof inodes, "%" PRIu64, o->limits.disk_inodes);
    argv[0] = (char *) "cove-bridge";
    argv[1] = (char *) (uintptr_t) s->machine->isolation;
    argv[2] = cores;
    argv[3] = processes;
    argv[4] = inodes;
    put_volumes(o->volumes, volumes, sizeof volumes);
    argv[5] = volumes;
    argv[6] = (char *) (uintptr_t) s->machine->way;
    argv[7] = (char *) (uintptr_t) s->machine->roots;
    argv[BOOT_BRIDGE_AGENT] = (char *) (uintptr_t) o->agent;
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        if (kept[i].fd >= 0 && fcntl(kept[i].at, F_SETFD, 0) < 0)
            fail_sys(errno, "keep the machine's descriptors");
    place_roots(root_fds, strlen(s->machine->roots));
    (void) syscall(__NR_execveat, FD_BRIDGE, "", argv, envp, AT_EMPTY_PATH);
    fail_sys(errno, "exec the bridge");
}

static void step_exec(const struct child_spec *s, const struct child_order *o, int *root_fds,
                      bool listening)
{
    char flags[16], memory[32], files[16];
    char *args[BOOT_BRIDGE_ARG_COUNT + 1] = { [BOOT_BRIDGE_AGENT] = (char *) "cove-agent",
                                              flags,
                                              (char *) (uintptr_t) o->template.user,
                                              (char *) (uintptr_t) o->template.workdir,
                                              memory,
                                              files,
                                              NULL };
    char **argv = args + BOOT_BRIDGE_AGENT;
    char *envp[TEMPLATE_ENV_COUNT + 1];
    const char *at = o->template.env;

    (void) snprintf(flags, sizeof flags, "%d",
                    (o->allow_root ? BOOT_ROOT : 0) | (listening ? BOOT_NOTIFY : 0) |
                        (s->machine ? BOOT_MUX : 0) | (is_vm(s) ? BOOT_MACHINE : 0));
    (void) snprintf(memory, sizeof memory, "%" PRIu64, o->limits.memory_bytes);
    (void) snprintf(files, sizeof files, "%" PRIu32, o->limits.open_files);
    for (size_t i = 0; i < o->template.env_count; i++, at += strlen(at) + 1)
        envp[i] = (char *) (uintptr_t) at;
    envp[o->template.env_count] = NULL;
    if (s->machine)
        exec_bridge(s, o, root_fds, args, envp);
    (void) execve(o->agent, argv, envp);
    fail_sys(errno, "exec the agent");
}

/* From here on: what the tenant's own processes, or the machine's, run in. */
static void step_root(const struct child_spec *s, const struct child_order *o, int *fds,
                      int proc_fd, int mounts_fd)
{
    struct err err;

    if (s->machine) {
        if (machine_mounts(s->machine, &o->template, o->view, fds[CHILD_ROOT], fds[CHILD_DISK],
                           proc_fd, &err) < 0 ||
            machine_volumes(o->volumes, fds + CHILD_FD_COUNT, &err) < 0 ||
            (is_vm(s) && spaces_forbid_mounts(&mounts_fd, &err) < 0))
            fail(&err);
        return;
    }
    if (jail_mounts(&o->template, &o->limits, o->view, fds[CHILD_ROOT], fds[CHILD_DISK],
                    o->shm_joined ? fds[CHILD_SHM] : -1, proc_fd, &err) < 0 ||
        jail_volumes(o->volumes, fds + CHILD_FD_COUNT, &err) < 0 ||
        spaces_forbid_mounts(&mounts_fd, &err) < 0)
        fail(&err);
}

static const struct seccomp_filter *machine_filter(const struct child_spec *s)
{
    if (!s->machine->vm)
        return s->filter_machine;
    return s->machine->kvm_fd < 0 ? s->filter_quiet : s->filter_kvm;
}

static bool step_confine(const struct child_spec *s, const struct child_order *o)
{
    bool listening = false;
    struct err err;

    if (s->machine ? machine_confine(s->machine, &o->limits, volume_use_count(o->volumes) > 0,
                                     machine_filter(s), &err) < 0
                   : confine_limits(&o->limits, &err) < 0 ||
                         confine_capabilities(BOOT_AGENT_CAPS, &err) < 0 ||
                         confine_kernel(s->filter_notify, s->filter_quiet, &listening, &err) < 0)
        fail(&err);
    return listening;
}

_Noreturn void child_run(const struct child_spec *s)
{
    static struct child_order order; /* static: larger than a stack frame should be */
    int fds[CHILD_FDS_MAX];
    int mounts_fd = -1, proc_fd;
    size_t own;
    bool listening;

    step_alone(s);
    step_fresh_start();
    step_enter_cgroups(s);
    proc_fd = step_proc();
    step_network(proc_fd);
    step_bind_agent_socket();
    if (s->machine && !is_vm(s))
        step_bound_spaces(proc_fd);
    else
        mounts_fd = step_forbid_spaces(proc_fd);
    own = step_wait(s, &order, fds);
    step_become_root_inside();
    step_name(&order);
    step_root(s, &order, fds, proc_fd, mounts_fd);
    step_stdio();
    listening = step_confine(s, &order);
    step_give_listener(listening);
    step_exec(s, &order, fds + own, listening);
    _exit(4);
}
