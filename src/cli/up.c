#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/common.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/serve.h"
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
    const char *group, *max_sandboxes, *slots, *listen;
    const char *domain, *public_domain, *tls_listen, *tls_cert, *tls_key;
    bool verbose, no_server;
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
    { 0, "listen", OPTION_TEXT, AT(listen), "ADDR:PORT", COMPLETE_NONE,
      "where the HTTP server listens (" SERVE_LISTEN_PRESET ")" },
    { 0, "domain", OPTION_TEXT, AT(domain), "NAME", COMPLETE_NONE,
      "name of the server; ports of sandboxes are below it" },
    { 0, "public-domain", OPTION_TEXT, AT(public_domain), "NAME[:PORT]", COMPLETE_NONE,
      "what SDKs are told to find ports of sandboxes below" },
    { 0, "tls-listen", OPTION_TEXT, AT(tls_listen), "ADDR:PORT", COMPLETE_NONE,
      "HTTPS here, and plain HTTP at --listen" },
    { 0, "tls-cert", OPTION_TEXT, AT(tls_cert), "FILE", COMPLETE_FILE,
      "certificate chain, PEM; without --tls-listen, HTTPS at --listen" },
    { 0, "tls-key", OPTION_TEXT, AT(tls_key), "FILE", COMPLETE_FILE,
      "its private key, PEM" },
    { 0, "no-server", OPTION_FLAG, AT(no_server), NULL, COMPLETE_NONE,
      "start the keeper alone" },
    { 'v', "verbose",       OPTION_FLAG, AT(verbose),       NULL,   COMPLETE_NONE, "log more" },
};

const struct verb up_verb = {
    .name = "up",
    .synopsis = "[OPTION…]",
    .summary = "start cove in the foreground",
    .details =
        "Makes the template 'host' if need be, starts the keeper, and the HTTP server as the user\n"
        "'cove'. Ctrl-C stops both; sandboxes made to stay go on, and the next 'cove up' finds\n"
        "them again. Needs root.",
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

static void print_ready(const struct keeper_hello *hello, const struct serve *serve)
{
    const char *state = getenv("COVE_STATE");
    bool is_default = !state || !state[0] || strcmp(state, COVE_STATE_DEFAULT) == 0;

    printf("cove is ready: %u of %u sandboxes, template '%s', state %s\n", hello->sandboxes,
           hello->sandboxes_max, hello->default_template, report_state());
    printf("isolation: %s\n", hello->isolation);
    printf("try it in another terminal:  cove%s%s run -- python3 -c 'print(1+1)'\n",
           is_default ? "" : " --state ", is_default ? "" : state);
    if (serve->listen_fd >= 0) {
        const char *scheme = serve->tls_cert && serve->tls_fd < 0 ? "https" : "http";

        printf("the API is at %s://%s (docs/api.md):\n", scheme, serve->listen);
        printf("  curl -X POST %s://%s/v1/sandboxes\n", scheme, serve->listen);
        if (serve->tls_fd >= 0)
            printf("and with TLS at https://%s (docs/previews.md)\n", serve->tls_listen);
    }
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

struct watched {
    pid_t keeper;
    struct serve *serve;
    const sigset_t *mask; /* of the children */
    struct keeper_hello hello;
    bool started, ready, stopping; /* the keeper answers; all do; they are ending */
    int failed;                    /* exit code when the server could not be kept up */
};

/* The server first, so that requests under way still reach the keeper; the keeper when it is gone. */
static void stop(struct watched *w, int number)
{
    w->stopping = true;
    (void) kill(w->serve->pid > 0 ? w->serve->pid : w->keeper, number);
}

static void take_signals(struct watched *w, int signal_fd)
{
    struct signalfd_siginfo info;

    while (read(signal_fd, &info, sizeof info) == (ssize_t) sizeof info) {
        int number = (int) info.ssi_signo;

        if (number == SIGCHLD)
            continue;
        if (number == SIGHUP && w->serve->pid > 0) {
            struct err err;

            if (serve_copy_tls(w->serve, report_state(), &err) < 0)
                report_note("%s; the old certificate stays", err.msg);
            (void) kill(w->serve->pid, number);
        } else if (number == SIGHUP)
            (void) kill(w->keeper, number);
        else if (!w->stopping)
            stop(w, number);
        else /* asked twice: no more waiting for requests */
            (void) kill(w->serve->pid > 0 ? w->serve->pid : w->keeper,
                        w->serve->pid > 0 ? SIGKILL : number);
    }
}

static void server_ended(struct watched *w)
{
    struct err err;

    w->serve->pid = -1;
    if (!w->stopping && serve_again(w->serve, report_state(), w->mask, &err) == 0)
        return;
    if (!w->stopping)
        w->failed = report_error(&err);
    w->stopping = true;
    (void) kill(w->keeper, SIGTERM);
}

static void keeper_ready(struct watched *w)
{
    struct err err;

    w->started = true;
    if (w->serve->listen_fd >= 0 && serve_start(w->serve, report_state(), w->mask, &err) < 0) {
        w->failed = report_error(&err);
        stop(w, SIGTERM);
    }
}

static void look_whether_ready(struct watched *w)
{
    if (!w->started && is_ready(&w->hello) == 0)
        keeper_ready(w);
    if (!w->started || w->stopping)
        return;
    w->ready = w->serve->listen_fd < 0 || serve_is_ready(w->serve, READY_EVERY_MS);
    if (w->ready)
        print_ready(&w->hello, w->serve);
}

/* Until the keeper ends: announces that it is ready, hands signals on, keeps the server up. */
static int watch(struct watched *w, int signal_fd)
{
    uint64_t begin = io_now_ms();
    bool told = false;

    for (;;) {
        struct pollfd p = { .fd = signal_fd, .events = POLLIN };
        int status;

        (void) poll(&p, 1, w->ready ? -1 : READY_EVERY_MS);
        take_signals(w, signal_fd);
        if (waitpid(w->keeper, &status, WNOHANG) == w->keeper) {
            if (w->serve->pid > 0) {
                (void) kill(w->serve->pid, SIGTERM);
                (void) waitpid(w->serve->pid, NULL, 0);
            }
            return w->failed ? w->failed : exit_code_of(status);
        }
        if (w->serve->pid > 0 && waitpid(w->serve->pid, &status, WNOHANG) == w->serve->pid)
            server_ended(w);
        if (!w->ready)
            look_whether_ready(w);
        if (!w->started && !told && io_now_ms() - begin > READY_WITHIN_MS) {
            told = true;
            report_note("the keeper does not answer yet; still waiting");
        }
    }
}

static int group_find(const char *name, gid_t *ret, struct err *err)
{
    const struct group *group = getgrnam(name);
    uint64_t gid;

    if (!group && parse_u64(name, &gid, err) < 0)
        return err_set(err, ERR_USAGE, "up: there is no group '%.60s'", name);
    *ret = group ? group->gr_gid : (gid_t) gid;
    return 0;
}

/* Root's alone. The server, and with --group that group's members, may pass through to what is theirs and see
 * nothing else: the templates hold setuid programs of root that are meant for sandboxes. */
static int state_make(const struct up_options *options, const struct serve *serve, struct err *err)
{
    const char *state = report_state();
    auto_close int fd = -1;
    bool server = serve->listen_fd >= 0;

    if (mkdir(state, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make the state directory %s", state);
    if (!options->group && !server)
        return 0;
    fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fchown(fd, 0, serve->keeper_gid) < 0 || fchmod(fd, server ? 0711 : 0710) < 0)
        return err_sys(err, errno, "let others pass through %s", state);
    if (mkdirat(fd, "templates", 0700) < 0 && fchmodat(fd, "templates", 0700, 0) < 0)
        return err_sys(err, errno, "keep others out of %s/templates", state);
    return 0;
}

/* Who may reach the keeper, and the server's socket: all that can be refused before anything is started. */
static int prepare(const struct up_options *options, struct serve *serve, struct err *err)
{
    const char *listen = options->listen ? options->listen : SERVE_LISTEN_PRESET;

    if (options->no_server && options->listen)
        return err_set(err, ERR_USAGE, "up: --listen and --no-server exclude each other");
    if (!options->no_server &&
        (serve_user(serve, err) < 0 || serve_listen(serve, listen, options->tls_listen, err) < 0))
        return -1;
    return options->group ? group_find(options->group, &serve->keeper_gid, err) : 0;
}

static int up(struct up_options *options, struct err *err)
{
    struct serve serve = {
        .listen_fd = -1,
        .tls_fd = -1,
        .probe_fd = -1,
        .pid = -1,
        .verbose = options->verbose,
        .domain = options->domain,
        .public_domain = options->public_domain,
        .tls_cert = options->tls_cert,
        .tls_key = options->tls_key,
    };
    struct watched w = { .serve = &serve };
    struct keeper_hello hello;
    auto_close int signal_fd = -1;
    char group[32];
    sigset_t before;

    if (geteuid() != 0)
        return err_set(err, ERR_DENIED, "up: the keeper needs root");
    if (is_ready(&hello) == 0)
        return err_set(err, ERR_STATE, "a keeper (pid %u) already serves %s", hello.pid,
                       report_state());
    if (prepare(options, &serve, err) < 0 || state_make(options, &serve, err) < 0 ||
        template_host_ensure(report_state(), err) < 0)
        return -1;
    if (!options->group && serve.listen_fd >= 0) {
        (void) snprintf(group, sizeof group, "%u", (unsigned) serve.keeper_gid);
        options->group = group;
    }
    signal_fd = signals_open(&before);
    if (signal_fd < 0)
        return err_sys(err, errno, "signals");
    w.mask = &before;
    w.keeper = keeper_start(options, &before, err);
    if (w.keeper < 0)
        return -1;
    return watch(&w, signal_fd);
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
