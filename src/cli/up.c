#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/common.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/template_host.h"
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* A keeper adopts what is there before it answers; a thousand sandboxes take a few seconds. */
#define READY_WITHIN_MS 60000
#define READY_EVERY_MS  20

struct up_options {
    const char *group, *max_sandboxes, *slots;
    bool verbose;
};

#define AT(field) offsetof(struct up_options, field)

/* clang-format off */
static const struct option up_options[] = {
    { 0, "group", OPTION_TEXT, AT(group), "NAME", COMPLETE_NONE,
      "let members of this group use cove, too" },
    { 0, "max-sandboxes", OPTION_TEXT, AT(max_sandboxes), "N", COMPLETE_NONE,
      "refuse more sandboxes than this" },
    { 0, "slots", OPTION_TEXT, AT(slots), "N", COMPLETE_NONE,
      "user id ranges to use" },
    { 'v', "verbose",       OPTION_FLAG, AT(verbose),       NULL,   COMPLETE_NONE, "log more" },
};

const struct verb up_verb = {
    .name = "up",
    .synopsis = "[OPTION…]",
    .summary = "start cove in the foreground",
    .details =
        "Makes the template 'host' if need be and starts the keeper. Ctrl-C stops the keeper;\n"
        "sandboxes made to stay go on, and the next 'cove up' finds them again. Needs root.",
    .options = up_options,
    .option_count = sizeof up_options / sizeof up_options[0],
    .run = verb_up,
};
/* clang-format on */

static int signals_open(sigset_t *before)
{
    sigset_t set;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGINT);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGHUP);
    (void) sigaddset(&set, SIGCHLD);
    (void) sigprocmask(SIG_BLOCK, &set, before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void keeper_argv(const struct up_options *options, const char *path, const char **argv)
{
    size_t n = 0;

    argv[n++] = path;
    argv[n++] = "--state";
    argv[n++] = report_state();
    if (options->group) {
        argv[n++] = "--group";
        argv[n++] = options->group;
    }
    if (options->max_sandboxes) {
        argv[n++] = "--max-sandboxes";
        argv[n++] = options->max_sandboxes;
    }
    if (options->slots) {
        argv[n++] = "--slots";
        argv[n++] = options->slots;
    }
    if (options->verbose)
        argv[n++] = "--verbose";
    argv[n] = NULL;
}

static pid_t keeper_start(const struct up_options *options, const sigset_t *mask, struct err *err)
{
    const char *argv[16];
    char path[PATH_MAX];
    pid_t pid;

    if (program_find("cove-keeper", path, sizeof path, err) < 0)
        return -1;
    keeper_argv(options, path, argv);
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "fork");
    if (pid > 0)
        return pid;
    /* Its own group: Ctrl-C comes from us, once. */
    (void) setpgid(0, 0);
    (void) sigprocmask(SIG_SETMASK, mask, NULL);
    (void) execv(path, (char **) (uintptr_t) argv);
    report_note("start %s: %s", path, strerror(errno));
    _exit(126);
}

/* 0: ready; 1: not yet. */
static int is_ready(struct keeper_hello *hello)
{
    struct link link;
    struct err err;
    int r;

    if (link_open(&link, report_state(), &err) < 0)
        return 1;
    link.patience_ms = 1000;
    r = keeper_hello(&link, hello, &err);
    link_close(&link);
    return r < 0 ? 1 : 0;
}

static void print_ready(const struct keeper_hello *hello)
{
    const char *state = getenv("COVE_STATE");
    bool is_default = !state || !state[0] || strcmp(state, COVE_STATE_DEFAULT) == 0;

    printf("cove is ready: %u of %u sandboxes, template '%s', state %s\n", hello->sandboxes,
           hello->sandboxes_max, hello->default_template, report_state());
    printf("isolation: %s\n", hello->isolation);
    printf("try it in another terminal:  cove%s%s run -- python3 -c 'print(1+1)'\n",
           is_default ? "" : " --state ", is_default ? "" : state);
    (void) fflush(stdout);
}

static int exit_code_of(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    report_note("the keeper was ended by signal %d; sandboxes go on, 'cove up' finds them again",
                WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

/* Until the keeper ends: announces that it is ready, hands signals on. */
static int watch(pid_t keeper, int signal_fd)
{
    uint64_t begin = io_now_ms();
    bool ready = false, told = false;

    for (;;) {
        struct pollfd p = { .fd = signal_fd, .events = POLLIN };
        struct signalfd_siginfo info;
        struct keeper_hello hello;
        int status;

        (void) poll(&p, 1, ready ? -1 : READY_EVERY_MS);
        while (read(signal_fd, &info, sizeof info) == (ssize_t) sizeof info)
            if (info.ssi_signo != SIGCHLD)
                (void) kill(keeper, (int) info.ssi_signo);
        if (waitpid(keeper, &status, WNOHANG) == keeper)
            return exit_code_of(status);
        if (!ready && is_ready(&hello) == 0) {
            ready = true;
            print_ready(&hello);
        }
        if (!ready && !told && io_now_ms() - begin > READY_WITHIN_MS) {
            told = true;
            report_note("the keeper does not answer yet; still waiting");
        }
    }
}

/* Root's alone. With --group its members may pass through to the socket, and to nothing else: the
 * templates hold setuid programs of root that are meant for sandboxes. */
static int state_make(const struct up_options *options, struct err *err)
{
    const char *state = report_state();
    auto_close int fd = -1;
    struct group *group;
    uint64_t gid;

    if (mkdir(state, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make the state directory %s", state);
    if (!options->group)
        return 0;
    group = getgrnam(options->group);
    if (!group && parse_u64(options->group, &gid, err) < 0)
        return err_set(err, ERR_USAGE, "up: there is no group '%.60s'", options->group);
    fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fchown(fd, 0, group ? group->gr_gid : (gid_t) gid) < 0 || fchmod(fd, 0710) < 0)
        return err_sys(err, errno, "let the group '%s' into %s", options->group, state);
    if (mkdirat(fd, "templates", 0700) < 0 && fchmodat(fd, "templates", 0700, 0) < 0)
        return err_sys(err, errno, "keep the group '%s' out of %s/templates", options->group,
                       state);
    return 0;
}

static int up(const struct up_options *options, struct err *err)
{
    struct keeper_hello hello;
    auto_close int signal_fd = -1;
    sigset_t before;
    pid_t keeper;

    if (geteuid() != 0)
        return err_set(err, ERR_DENIED, "up: the keeper needs root");
    if (is_ready(&hello) == 0)
        return err_set(err, ERR_STATE, "a keeper (pid %u) already serves %s", hello.pid,
                       report_state());
    if (state_make(options, err) < 0 || template_host_ensure(report_state(), err) < 0)
        return -1;
    signal_fd = signals_open(&before);
    if (signal_fd < 0)
        return err_sys(err, errno, "signals");
    keeper = keeper_start(options, &before, err);
    if (keeper < 0)
        return -1;
    return watch(keeper, signal_fd);
}

int verb_up(int argc, char **argv)
{
    struct up_options options = { .verbose = false };
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&up_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 0)
        return common_excess(&up_verb, operands[0]);
    code = up(&options, &err);
    return code < 0 ? report_error(&err) : code;
}
