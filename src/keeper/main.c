/* cove-keeper: makes, pauses and removes sandboxes, and hands out connections to them. Runs as root, has
 * no network, reads no paths and no JSON. `cove up` starts it. */
#include "base/io.h"
#include "base/kernel.h"
#include "base/log.h"
#include "base/own.h"
#include "base/parse.h"
#include "keeper/adopt.h"
#include "keeper/keeper.h"
#include "keeper/life.h"
#include "keeper/ops.h"
#include "keeper/pool.h"
#include "keeper/rights.h"
#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define BATCH        64
#define LOCK_WAIT_MS 2000
#define QUIT_MS      5000 /* for the pool to end */

struct options {
    const char *state;
    const char *group;
    uint64_t sandboxes_max;
    uint64_t slots;
    bool verbose;
    struct host_options host;
};

/* ---- start ---- */

static void usage(FILE *out)
{
    (void) fprintf(
        out,
        "usage: cove-keeper --state DIR [--group NAME|GID] [--max-sandboxes N]"
        " [--slots N] [--verbose]\n\n"
        "  --state DIR        sockets, journal, templates and sandboxes\n"
        "  --group NAME|GID   who, besides root, may talk to it\n"
        "  --max-sandboxes N  refuse more than N at once (default %u)\n"
        "  --slots N          user id ranges to use, at most %u\n"
        "  --stage-layers     mount layers as Linux before 6.15 needs it\n"
        "  --disk-reserve N   bytes of the host's disk to keep free (512M, 10G; default: 2 %%,\n"
        "                     at least 64M, at most 4G): below, writes in sandboxes get ENOSPC\n"
        "  --layers N         merge an image's layers from N on (2 to %d, the default)\n"
        "  --all-pages        no large image is restored while its memory still comes\n"
        "  --no-spare         no child is made before a create asks for one\n"
        "  --allow-vm-emulated  virtual machines without KVM, for tests: no boundary of its own\n"
        "  --verbose          log every create with its timings\n"
        "  --version, --help\n",
        HOST_SLOTS, HOST_SLOTS, LAYERS_MAX);
}

static int parse_count(const char *text, const char *option, uint64_t least, uint64_t most,
                       uint64_t *ret, struct err *err)
{
    if (parse_u64(text, ret, err) < 0)
        return err_wrap(err, "--%s", option);
    if (*ret < least || *ret > most)
        return err_set(err, ERR_USAGE, "--%s: not between %" PRIu64 " and %" PRIu64, option, least,
                       most);
    return 0;
}

static int parse_options(int argc, char **argv, struct options *o, struct err *err)
{
    static const struct option names[] = {
        { "state", required_argument, NULL, 's' },
        { "group", required_argument, NULL, 'g' },
        { "max-sandboxes", required_argument, NULL, 'm' },
        { "slots", required_argument, NULL, 'n' },
        { "verbose", no_argument, NULL, 'v' },
        { "stage-layers", no_argument, NULL, 'l' },
        { "all-pages", no_argument, NULL, 'a' },
        { "no-spare", no_argument, NULL, 'p' },
        { "allow-vm-emulated", no_argument, NULL, 'e' },
        { "layers", required_argument, NULL, 'y' },
        { "disk-reserve", required_argument, NULL, 'r' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { NULL, 0, NULL, 0 },
    };
    uint64_t layers;
    int c;

    *o = (struct options){ .sandboxes_max = HOST_SLOTS,
                           .slots = HOST_SLOTS,
                           .host = { .layers = LAYERS_MAX } };
    while ((c = getopt_long(argc, argv, "", names, NULL)) >= 0) {
        switch (c) {
        case 's':
            o->host.state = o->state = optarg;
            break;
        case 'g':
            o->group = optarg;
            break;
        case 'l':
            o->host.stage_layers = true;
            break;
        case 'a':
            o->host.all_pages = true;
            break;
        case 'p':
            o->host.no_spare = true;
            break;
        case 'e':
            o->host.vm_emulated = true;
            break;
        case 'v':
            o->verbose = true;
            break;
        case 'm':
            if (parse_count(optarg, "max-sandboxes", 1, HOST_SLOTS, &o->sandboxes_max, err) < 0)
                return -1;
            break;
        case 'n':
            if (parse_count(optarg, "slots", 1, HOST_SLOTS, &o->slots, err) < 0)
                return -1;
            break;
        case 'y':
            if (parse_count(optarg, "layers", 2, LAYERS_MAX, &layers, err) < 0)
                return -1;
            o->host.layers = (uint32_t) layers;
            break;
        case 'r':
            if (parse_size(optarg, &o->host.reserve, err) < 0)
                return err_wrap(err, "--disk-reserve");
            break;
        case 'h':
            usage(stdout);
            exit(0);
        case 'V':
            (void) puts("cove-keeper " COVE_VERSION);
            exit(0);
        default:
            return err_set(err, ERR_USAGE, "unknown option; see --help");
        }
    }
    if (!o->state || optind != argc)
        return err_set(err, ERR_USAGE, "--state DIR is needed, and nothing else; see --help");
    return 0;
}

/* By hand: a static program cannot load what the C library would ask. */
static int find_group(const char *name, int *ret_gid, struct err *err)
{
    char line[1024];
    uint64_t gid;
    auto_file FILE *file = NULL;

    if (parse_u64(name, &gid, err) == 0 && gid < INT32_MAX) {
        *ret_gid = (int) gid;
        return 0;
    }
    file = fopen("/etc/group", "re");
    while (file && fgets(line, sizeof line, file)) {
        char *rest = strchr(line, ':');
        int found;

        if (!rest)
            continue;
        *rest = '\0';
        rest = strchr(rest + 1, ':');
        if (strcmp(line, name) == 0 && rest && sscanf(rest, ":%d", &found) == 1) {
            *ret_gid = found;
            return 0;
        }
    }
    return err_set(err, ERR_USAGE, "--group: there is no group '%.60s'", name);
}

/* One keeper per state. A dead keeper's child may hold the lock for the moment it takes to notice. */
static int lock_state(int state_fd, struct err *err)
{
    uint64_t until = io_now_ms() + LOCK_WAIT_MS;
    int fd = openat(state_fd, "keeper.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(err, errno, "open keeper.lock");
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (io_now_ms() > until)
            return err_set(err, ERR_STATE, "another keeper runs on this state directory");
        (void) usleep(10000);
    }
    return 0; /* held until we end */
}

static int open_state(struct keeper *k, const struct options *o, struct err *err)
{
    struct stat st;

    if (mkdir(o->state, 0711) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make %s", o->state);
    k->state_fd = open(o->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (k->state_fd < 0)
        return err_sys(err, errno, "open %s", o->state);
    if (fstat(k->state_fd, &st) < 0 || st.st_uid != 0 || (st.st_mode & 022))
        return err_set(err, ERR_DENIED, "%s: must belong to root, and only root may write to it",
                       o->state);
    if (lock_state(k->state_fd, err) < 0)
        return -1;
    if (faccessat(k->state_fd, "restore.ready", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(err, ERR_STATE, "a restore of this state is not finished: start 'cove up'");
    return journal_open(&k->journal, k->state_fd, err);
}

static void on_signal(struct keeper *k, struct watch *watch)
{
    struct signalfd_siginfo info;

    if (read(watch->fd, &info, sizeof info) == (ssize_t) sizeof info) {
        log_line(LOG_INFO, "ending signal=%u sandboxes=%u: they keep running", info.ssi_signo,
                 k->sandbox_count - k->pooled);
        /* They have no owner yet: without us no program would know of them. */
        pool_clear(k, "the keeper ends");
        k->quit_ms = io_now_ms();
        k->quit = true;
    }
}

static int watch_signals(struct keeper *k, struct err *err)
{
    sigset_t set;
    int fd;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGINT);
    (void) sigaddset(&set, SIGHUP);
    (void) sigprocmask(SIG_BLOCK, &set, NULL);
    (void) signal(SIGPIPE, SIG_IGN);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_sys(err, errno, "signalfd");
    return keeper_watch(k, &k->signals, fd, on_signal, err);
}

#define FILES_WANTED 65536u

static void measure_host(struct keeper *k)
{
    struct sysinfo info;
    struct rlimit files;

    if (sysinfo(&info) == 0)
        k->host_memory = (uint64_t) info.totalram * info.mem_unit;
    k->host_cpu_milli = (uint64_t) sysconf(_SC_NPROCESSORS_ONLN) * 1000u;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return;
    /* A shell's hard limit may be 4096: not enough for two descriptors of each sandbox. Without CAP_SYS_RESOURCE it stays. */
    if (files.rlim_max < FILES_WANTED)
        (void) setrlimit(RLIMIT_NOFILE, &(struct rlimit){ files.rlim_cur, FILES_WANTED });
    (void) getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void) setrlimit(RLIMIT_NOFILE, &files);
}

/* Not inherited: children have no business with other sandboxes' records, and a fork that need not copy them
 * is a quarter faster. */
static void *map_table(size_t size, struct err *err)
{
    void *table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (table == MAP_FAILED || madvise(table, size, MADV_DONTFORK) < 0) {
        err_sys(err, errno, "make the table of sandboxes");
        return NULL;
    }
    return table;
}

static int make_table(struct keeper *k, const struct options *o, struct err *err)
{
    k->sandboxes_max = (uint32_t) o->sandboxes_max;
    k->slot_limit = (uint32_t) o->slots;
    k->sandboxes = map_table(HOST_SLOTS * sizeof *k->sandboxes, err);
    if (!k->sandboxes)
        return -1;
    sandbox_rows(k, host_slots(k));
    return 0;
}

static int begin(struct keeper *k, const struct options *o, int gid, struct err *err)
{
    if (make_table(k, o, err) < 0)
        return -1;
    pool_open(k);
    return adopt_all(k, err) < 0 ? -1 : ops_listen(k, gid, err);
}

static int set_up(struct keeper *k, const struct options *o, struct err *err)
{
    int gid = -1;

    k->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (k->epoll_fd < 0)
        return err_sys(err, errno, "epoll");
    measure_host(k);
    if (o->group && find_group(o->group, &gid, err) < 0)
        return -1;
    if (open_state(k, o, err) < 0 || watch_signals(k, err) < 0 || host_open(k, &o->host, err) < 0)
        return -1;
    if (begin(k, o, gid, err) == 0)
        return 0;
    host_close(k);
    return -1;
}

/* As epoll_wait, but 0 is not "do not wait": it is as soon as makes sense. A cgroup that freezes says nothing when it has. */
static int wait_for_events(int fd, struct epoll_event *events, int count, int ms)
{
    const struct timespec soon = { .tv_nsec = 20000 };

    return ms == 0 ? epoll_pwait2(fd, events, count, &soon, NULL)
                   : epoll_wait(fd, events, count, ms);
}

/* Of two waits in milliseconds; -1 is for ever. */
static int shorter(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void serve(struct keeper *k)
{
    while (!k->quit || (k->pooled > 0 && io_now_ms() - k->quit_ms < QUIT_MS)) {
        struct epoll_event events[BATCH];
        int wait =
            shorter(shorter(sandbox_tick(k), ops_tick(k)), shorter(pool_tick(k), host_tick(k)));
        int n;

        if (!k->starting) /* while no create wants the cores for itself */
            host_idle(k);
        if (k->quit)
            wait = shorter(wait, 100);
        n = wait_for_events(k->epoll_fd, events, BATCH, wait);
        for (int i = 0; i < n; i++) {
            struct watch *watch = events[i].data.ptr;

            if (watch->fd >= 0) /* closed by an event before it, perhaps */
                watch->ready(k, watch);
        }
        if (n > 0)
            k->busy_ms = io_now_ms();
    }
}

int main(int argc, char **argv)
{
    static struct keeper k; /* static: zeroed, and larger than a stack frame should be */
    struct options options;
    struct err err;

    log_init("keeper", LOG_INFO);
    if (parse_options(argc, argv, &options, &err) < 0) {
        (void) fprintf(stderr, "cove-keeper: %s\n", err.msg);
        return err_kind_info(err.kind)->exit_code;
    }
    if (options.verbose)
        log_init("keeper", LOG_DEBUG);
    (void) prctl(PR_SET_DUMPABLE, 0); /* its memory holds descriptors to every sandbox */
    /* What the starting program left open: no business of sandboxes, and one of them may have a number of jail/low_fds.h. */
    (void) io_close_from(STDERR_FILENO + 1, false);
    if (kernel_check(&err) < 0 || rights_reduce(&err) < 0 || set_up(&k, &options, &err) < 0) {
        log_line(LOG_ERROR, "cannot start: %s", err.msg);
        return err_kind_info(err.kind)->exit_code;
    }
    log_line(LOG_INFO, "ready state=%s sandboxes=%u", options.state, k.sandbox_count);
    serve(&k);
    host_close(&k);
    return 0;
}
