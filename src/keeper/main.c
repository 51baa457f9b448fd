/* cove-keeper: makes, pauses and removes sandboxes, and hands out connections to them. Runs as root, has
 * no network, reads no paths and no JSON. `cove up` starts it. */
#include "base/io.h"
#include "base/kernel.h"
#include "base/log.h"
#include "base/own.h"
#include "base/parse.h"
#include "image/fill.h"
#include "keeper/adopt.h"
#include "keeper/create.h"
#include "jail/home.h"
#include "keeper/keeper.h"
#include "keeper/life.h"
#include "keeper/bases.h"
#include "keeper/load.h"
#include "keeper/merge.h"
#include "keeper/ops.h"
#include "keeper/pool.h"
#include "keeper/rights.h"
#include "jail/root.h"
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

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u /* Linux 6.3 */
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

#define BATCH        64
#define LOCK_WAIT_MS 2000
#define NO_MAKER_MS  100  /* until the next try to start a disk maker */
#define QUIT_MS      5000 /* for the pool to end */

struct options {
    const char *state;
    const char *group;
    uint64_t sandboxes_max;
    uint64_t slots;
    bool verbose;
    bool all_pages;
};

/* ---- start ---- */

static void usage(FILE *out)
{
    (void) fprintf(out,
                   "usage: cove-keeper --state DIR [--group NAME|GID] [--max-sandboxes N]"
                   " [--slots N] [--verbose]\n\n"
                   "  --state DIR        sockets, journal, templates and sandboxes\n"
                   "  --group NAME|GID   who, besides root, may talk to it\n"
                   "  --max-sandboxes N  refuse more than N at once (default %u)\n"
                   "  --slots N          user id ranges to use, at most %u\n"
                   "  --stage-layers     mount layers as Linux before 6.15 needs it\n"
                   "  --layers N         merge an image's layers from N on (2 to %d, which is the preset)\n"
                   "  --all-pages        no large image is restored while its memory still comes\n"
                   "  --verbose          log every create with its timings\n"
                   "  --version, --help\n",
                   IDS_SLOTS, IDS_SLOTS, LAYERS_MAX);
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
        { "layers", required_argument, NULL, 'y' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { NULL, 0, NULL, 0 },
    };
    uint64_t layers;
    int c;

    *o = (struct options){ .sandboxes_max = IDS_SLOTS, .slots = IDS_SLOTS };
    while ((c = getopt_long(argc, argv, "", names, NULL)) >= 0) {
        switch (c) {
        case 's':
            o->state = optarg;
            break;
        case 'g':
            o->group = optarg;
            break;
        case 'l':
            root_stage_layers();
            break;
        case 'a':
            o->all_pages = true;
            break;
        case 'v':
            o->verbose = true;
            break;
        case 'm':
            if (parse_count(optarg, "max-sandboxes", 1, IDS_SLOTS, &o->sandboxes_max, err) < 0)
                return -1;
            break;
        case 'n':
            if (parse_count(optarg, "slots", 1, IDS_SLOTS, &o->slots, err) < 0)
                return -1;
            break;
        case 'y':
            if (parse_count(optarg, "layers", 2, LAYERS_MAX, &layers, err) < 0)
                return -1;
            merge_from((uint32_t) layers);
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

static int open_dir(int at, const char *name, mode_t mode, int *ret, struct err *err)
{
    if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make %s", name);
    *ret = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret < 0 ? err_sys(err, errno, "open %s", name) : 0;
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

    if (open_dir(AT_FDCWD, o->state, 0711, &k->state_fd, err) < 0)
        return -1;
    if (fstat(k->state_fd, &st) < 0 || st.st_uid != 0 || (st.st_mode & 022))
        return err_set(err, ERR_DENIED, "%s: must be root's and writable by nobody else", o->state);
    if (lock_state(k->state_fd, err) < 0 ||
        open_dir(k->state_fd, "templates", 0755, &k->templates_fd, err) < 0)
        return -1;
    own_close(&k->templates_fd); /* opened again behind the keeper's own root */
    return journal_open(&k->journal, k->state_fd, err);
}

/* A file that is found beside our own program. */
static int open_beside(const char *name, struct err *err)
{
    char path[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
    int fd;

    if (n < 0)
        return err_sys(err, errno, "find our own program");
    path[n] = '\0';
    (void) strcpy(strrchr(path, '/') + 1, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(err, errno, "open %s", path) : fd;
}

static int find_ids_file(struct keeper *k, bool all_pages, struct err *err)
{
    k->criu.ids_fd = open_beside("cove-criu.so", err);
    k->criu.uffd_fd = all_pages ? -1 : open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    if (!fill_possible(k->criu.uffd_fd))
        own_close(&k->criu.uffd_fd);
    return k->criu.ids_fd < 0 ? -1 : 0;
}

static int load_agent(struct keeper *k, struct err *err)
{
    auto_close int fd = open_beside("cove-agent", err);

    return fd < 0 ? -1 : agents_open(&k->agents, k->state_fd, fd, err);
}

/* Short, stable, and different for every state directory of the host. */
static void instance_name(int state_fd, char *out, size_t size)
{
    struct stat st;

    if (fstat(state_fd, &st) < 0)
        memset(&st, 0, sizeof st);
    (void) snprintf(out, size, "cove-%" PRIx64 "-%" PRIx64, (uint64_t) st.st_dev,
                    (uint64_t) st.st_ino);
}

static int claim_ids(struct keeper *k, struct err *err)
{
    auto_close int dir = -1;

    (void) mkdir("/run/cove", 0755);
    if (open_dir(AT_FDCWD, "/run/cove/ids", 0700, &dir, err) < 0)
        return -1;
    return ids_claim(dir, k->cgroups.hierarchy[k->cgroups.of[CG_PIDS]].root_fd, k->cgroups.instance,
                     &k->id_block, &k->id_lock_fd, err);
}

static void on_signal(struct keeper *k, struct watch *watch)
{
    struct signalfd_siginfo info;

    if (read(watch->fd, &info, sizeof info) == (ssize_t) sizeof info) {
        log_line(LOG_INFO, "ending signal=%u sandboxes=%u: they go on", info.ssi_signo,
                 k->sandbox_count - k->pooled);
        /* For nobody yet: without us nobody would know of them. */
        pool_clear(k, "the keeper ends");
        k->quit_ms = io_now_ms();
        k->quit = true;
    }
}

static void on_disk(struct keeper *k, struct watch *watch)
{
    struct disk_answer answer;
    int fd = -1, rc;
    struct err err;

    (void) watch;
    rc = disks_receive(&k->disks, &answer, &fd, &err);
    if (rc > 0 && answer.job == DISK_BASE) {
        bases_got(k, answer.number, fd, &answer.err);
        return;
    }
    if (rc > 0 && answer.job == DISK_MERGE) {
        merge_got(k, &answer);
        return;
    }
    /* It may have been stopped, and its slot even taken again, while the disk was made. */
    if (rc > 0 && !ops_order_done(k, answer.tag, &answer.err) &&
        !create_got_disk(k, answer.tag, fd, &answer.err)) {
        own_close(&fd);
        if (answer.job == DISK_NEW)
            disks_remove(&k->disks, answer.number);
    }
    if (rc < 0) {
        /* Its orders died with it. The old descriptor left epoll when it was closed. */
        k->disks_watch.fd = -1;
        ops_orders_lost(k, &err);
        bases_lost(k, &err);
        merge_lost(k);
        for (uint32_t i = 0; i < k->slot_count; i++)
            if (k->sandboxes[i].info.life == LIFE_NEW)
                sandbox_fail(k, &k->sandboxes[i], &err);
    }
}

/* Keeps a maker at work; what fails is tried again after a pause. */
static void tend_disks(struct keeper *k)
{
    struct err err;

    if (k->disks.sock < 0 && disks_restart(&k->disks, &err) == 0 &&
        keeper_watch(k, &k->disks_watch, k->disks.sock, on_disk, &err) < 0)
        k->disks.sock = -1;
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

static int set_up(struct keeper *k, const struct options *o, struct err *err)
{
    char instance[64];
    int gid = -1;

    k->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (k->epoll_fd < 0)
        return err_sys(err, errno, "epoll");
    measure_host(k);
    if (o->group && find_group(o->group, &gid, err) < 0)
        return -1;
    if (open_state(k, o, err) < 0 || load_agent(k, err) < 0 || find_ids_file(k, o->all_pages, err) < 0 ||
        images_open(&k->images, k->state_fd, err) < 0)
        return -1;
    for (size_t i = 0; i < BASES_MAX; i++)
        k->bases[i].mount_fd = -1;
    k->shrink.watch.fd = -1;
    instance_name(k->state_fd, instance, sizeof instance);
    if (cgroups_open(&k->cgroups, instance, err) < 0 || claim_ids(k, err) < 0 ||
        watch_signals(k, err) < 0 || disks_start(&k->disks, k->state_fd, err) < 0 ||
        keeper_watch(k, &k->disks_watch, k->disks.sock, on_disk, err) < 0)
        return -1;
    if (nets_open(&k->nets, err) < 0 || home_enter(o->state, err) < 0 || root_learn(err) < 0 ||
        agents_place(&k->agents, err) < 0)
        return -1;
    if (open_dir(AT_FDCWD, "/templates", 0755, &k->templates_fd, err) < 0)
        return -1;
    if (sysviews_open(&k->views, IDS_SLOTS, err) < 0)
        return -1;
    seccomp_compile(&k->filter_notify, true);
    seccomp_compile(&k->filter_quiet, false);
    seccomp_name(k->filter_notify.code, k->filter_notify.len, k->filter_name);
    k->sandboxes_max = (uint32_t) o->sandboxes_max;
    k->slot_count = IDS_SLOTS;
    k->slot_limit = (uint32_t) o->slots;
    k->sandboxes = map_table(k->slot_count * sizeof *k->sandboxes, err);
    if (!k->sandboxes)
        return -1;
    for (uint32_t i = 0; i < k->slot_count; i++)
        sandbox_reset(&k->sandboxes[i]);
    if (pool_open(k, err) < 0 || adopt_all(k, err) < 0)
        return -1;
    return ops_listen(k, gid, err);
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
        int wait = shorter(shorter(sandbox_tick(k), ops_tick(k)), shorter(pool_tick(k), load_tick(k)));
        int n;

        if (!k->starting) { /* while no create wants the cores for itself */
            disks_refill(&k->disks);
            gateways_refill(&k->gateways);
        }
        if (k->disks.sock < 0)
            wait = shorter(wait, NO_MAKER_MS);
        if (k->quit)
            wait = shorter(wait, 100);
        n = wait_for_events(k->epoll_fd, events, BATCH, wait);
        for (int i = 0; i < n; i++) {
            struct watch *watch = events[i].data.ptr;

            if (watch->fd >= 0) /* closed by an event before it, perhaps */
                watch->ready(k, watch);
        }
        tend_disks(k);
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
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        k.connections[i].watch.fd = -1;
    gateways_init(&k.gateways);
    if (kernel_check(&err) < 0 || rights_reduce(&err) < 0 || set_up(&k, &options, &err) < 0) {
        log_line(LOG_ERROR, "cannot start: %s", err.msg);
        return err_kind_info(err.kind)->exit_code;
    }
    log_line(LOG_INFO, "ready state=%s sandboxes=%u", options.state, k.sandbox_count);
    serve(&k);
    disks_stop(&k.disks);
    gateways_close(&k.gateways);
    nets_close(&k.nets);
    cgroups_close(&k.cgroups);
    return 0;
}
