/* main.c - PID 1 of a sandbox; called as `sudo`, the client of its own elevation; as
 * `entrypoint`, what starts the command of an image; as `init`, the first process of a virtual machine's
 * kernel.
 *
 * The agent blocks every signal and reads SIGCHLD from a descriptor. One thread, one loop; whatever
 * could take long is done by children: shepherds run commands, workers do file operations. */
#include "agent/core/agent.h"
#include "agent/core/box.h"
#include "agent/core/rights.h"
#include "agent/door.h"
#include "agent/egress_rules.h"
#include "agent/entrypoint.h"
#include "agent/forget.h"
#include "agent/init.h"
#include "agent/ops.h"
#include "agent/proc/ahead.h"
#include "agent/proc/proc.h"
#include "agent/proc/procs.h"
#include "agent/proc/shepherd.h"
#include "agent/sudo.h"
#include "agent/trunk.h"
#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define REAPS_PER_TURN 64

/* What lives as long as the process; large enough to stay off the stack, small enough to be
 * resident. */
static struct agent the_agent;
static struct watch child_watch;
static struct timer reap_timer;

static void reap(struct timer *timer);

static void on_child(struct watch *watch, uint32_t events)
{
    struct signalfd_siginfo info;

    (void) events;
    IGNORE(read(watch->fd, &info, sizeof info) < 0);
    reap(&reap_timer);
}

static void reap(struct timer *timer)
{
    for (int i = 0; i < REAPS_PER_TURN; i++) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid <= 0)
            return;
        if (!ops_worker_reaped(&the_agent, pid))
            (void) proc_reaped(&the_agent, pid, status);
    }
    /* More may be waiting, and their signal is used up. */
    loop_arm(&the_agent.loop, timer, 0, reap);
}

static int take_signals(struct agent *agent, struct err *err)
{
    static const unsigned long plain[4]; /* the kernel's struct sigaction: handler, flags, … none */
    sigset_t set;

    /* Once here, so that no command has to: a disposition other than default would be inherited. By the
     * kernel's own call: libcs keep two or three signals to themselves, which may come ignored, too. */
    for (int number = 1; number <= 64; number++)
        (void) syscall(SYS_rt_sigaction, number, plain, NULL, 8);
    (void) sigfillset(&set);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return err_sys(err, errno, "block signals");
    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGCHLD);
    child_watch =
        (struct watch){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .ready = on_child };
    if (child_watch.fd < 0 || loop_watch(&agent->loop, &child_watch, EPOLLIN) < 0)
        return err_sys(err, errno, "signals");
    return 0;
}

static int read_args(struct agent *agent, char **argv, char **envp, uint64_t *ret_flags,
                     struct err *err)
{
    uint64_t flags, files;

    if (parse_u64(argv[1], &flags, err) < 0 || parse_u64(argv[4], &agent->memory_limit, err) < 0 ||
        parse_u64(argv[5], &files, err) < 0)
        return -1;
    if (flags & ~(uint64_t) (BOOT_ROOT | BOOT_NOTIFY | BOOT_MUX | BOOT_MACHINE) ||
        (flags & BOOT_NOTIFY && flags & BOOT_MUX) || (flags & BOOT_MACHINE && !(flags & BOOT_MUX)))
        return err_set(err, ERR_INVALID, "unknown boot flags");
    if (!argv[2][0])
        return err_set(err, ERR_INVALID, "no user");
    agent->base = (struct spawn_base){ .root_profile = flags & BOOT_ROOT,
                                       .env = envp,
                                       .user = argv[2],
                                       .workdir = argv[3],
                                       .open_files = flags & BOOT_MUX ? files : 0 };
    *ret_flags = flags;
    return 0;
}

/* A guest's descriptors as boot.h says of a sandbox's: standard input becomes the trunk's, and /dev/null takes its place and those
 * of what a guest does not have. */
static int take_trunk(int *ret_trunk, struct err *err)
{
    auto_close int first = open("/dev/null", O_RDWR | O_CLOEXEC), null = -1;

    *ret_trunk = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, BOOT_FD_NOTIFY + 1);
    null = fcntl(first, F_DUPFD_CLOEXEC, BOOT_FD_NOTIFY + 1);
    if (null < 0 || *ret_trunk < 0)
        return err_sys(err, errno, "take the trunk");
    own_close(&first);
    if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return err_sys(err, errno, "redirect stdio");
    if (dup3(null, BOOT_FD_LISTEN, O_CLOEXEC) < 0 || dup3(null, BOOT_FD_READY, O_CLOEXEC) < 0)
        return err_sys(err, errno, "take the first descriptors");
    return 0;
}

static int say_ready(bool guest, struct err *err)
{
    if (!guest && io_write_all(BOOT_FD_READY, "1", 1) < 0)
        return err_sys(err, errno, "say ready");
    /* The number stays taken: shepherds count on it (shepherd.h). */
    if (dup3(0, SHEPHERD_NULL, O_CLOEXEC) < 0)
        return err_sys(err, errno, "keep /dev/null");
    if (guest && dup2(0, STDERR_FILENO) < 0) /* until here, the host hears what goes wrong */
        return err_sys(err, errno, "redirect stdio");
    return 0;
}
_Static_assert(SHEPHERD_NULL == BOOT_FD_READY && SHEPHERD_CONTROL == BOOT_FD_LISTEN,
               "the first descriptors are never free for anything else");

/* Beside those of every agent. */
static uint64_t own_caps(uint64_t flags)
{
    return (flags & BOOT_MUX ? BOOT_GUEST_CAPS : 0) |
           (flags & BOOT_MACHINE ? BOOT_MACHINE_CAPS : 0);
}

static int boot(struct agent *agent, char **argv, char **envp, struct err *err)
{
    uint64_t flags = 0;
    bool guest;
    int trunk = -1;

    if (read_args(agent, argv, envp, &flags, err) < 0)
        return err_wrap(err, "arguments");
    (void) prctl(PR_SET_NAME, "cove-agent", 0, 0, 0);
    guest = flags & BOOT_MUX;
    agent->machine = flags & BOOT_MACHINE;
    agent->gvisor = guest && !agent->machine;
    if (guest && take_trunk(&trunk, err) < 0)
        return -1;
    if (guest)
        egress_rules_prepare(agent->gvisor);
    if (rights_boot(own_caps(flags), agent->machine && flags & BOOT_ROOT, err) < 0 ||
        loop_init(&agent->loop, err) < 0 || take_signals(agent, err) < 0)
        return -1;
    agent->started_ms = io_now_ms();
    if (agent->machine) {
        forget_begin(&agent->loop);
        box_open();
    }
    if (flags & BOOT_NOTIFY) {
        (void) fcntl(BOOT_FD_NOTIFY, F_SETFD, FD_CLOEXEC);
        if (refusals_open(&agent->refusals, &agent->loop, BOOT_FD_NOTIFY, err) < 0)
            return -1;
    }
    if (door_open(agent, guest ? -1 : BOOT_FD_LISTEN, err) < 0)
        return -1;
    /* Of a guest, the trunk's first answer is the word that it is ready: behind all else. */
    if (say_ready(guest, err) < 0)
        return -1;
    /* Behind the word: no create waits for it. */
    if (!(flags & BOOT_ROOT))
        rights_bound_strict();
    if (guest && trunk_open(agent, trunk, err) < 0)
        return -1;
    if (agent->gvisor)
        ahead_begin(agent);
    return 0;
}

int main(int argc, char **argv, char **envp)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = argc > 0 ? (slash ? slash + 1 : argv[0]) : "";
    struct err err;

    if (strcmp(name, "sudo") == 0)
        return sudo_main(argc, argv, envp);
    if (strcmp(name, "entrypoint") == 0)
        return entrypoint_main(argc, argv, envp);
    if (getpid() == 1 && strcmp(name, "init") == 0)
        return init_main();
    if (getpid() != 1 || argc != BOOT_ARG_COUNT) {
        (void) fprintf(stderr,
                       "cove-agent " COVE_VERSION ": started by cove-keeper, as process 1\n");
        return 2;
    }
    if (boot(&the_agent, argv, envp, &err) < 0) {
        /* The holder of the other end of BOOT_FD_READY sees it close without a byte. */
        (void) fprintf(stderr, "cove-agent: %s\n", err.msg);
        return 1;
    }
    for (;;) {
        loop_turn(&the_agent.loop);
        procs_sweep(&the_agent);
        conns_sweep(&the_agent);
    }
}
