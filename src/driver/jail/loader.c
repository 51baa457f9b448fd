/* The order, with processes:
 *
 *   lock      no other process works on the image; what criu will parse is hashed, and compared with what was signed;
 *             every thread has a filter that refuses by itself (image/filters.h)
 *   fill      of a large image, who brings its pages later is started, before anything is mounted (image/fill.h)
 *   stage     root, disk and criu's files are attached in a mount namespace of the worker's own; the id map among the
 *             files is replaced by that of the sandbox's slot
 *   restore   criu makes the processes, all of them stopped
 *   … network its namespace is brought up as soon as there is one: sockets are bound in it later
 *   commit    the pages that criu copied are compared, too; of a resumed sandbox, the journal says RUNNING and the image loses its name
 *   release   criu has nothing left to do but to let them go: a retired image is spent, a fork's record says RUNNING
 *   resume    the processes run; the agent is told
 *
 * Up to the release nothing has run, and a failure leaves the image as it was, or gives it back its name. Who is killed
 * where is found by load_settle(): an image that is whole, with its name or retired, is the sandbox; else those who run. */
#include "driver/jail/loader.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "driver/jail/connect.h"
#include "driver/jail/posture.h"
#include "driver/jail/stage.h"
#include "driver/layers.h"
#include "image/compress.h"
#include "image/fill.h"
#include "image/filters.h"
#include "image/outside.h"
#include "jail/mountfd.h"
#include "jail/mounts.h"
#include "jail/spaces.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"
#include "keeper/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Steps of a load, for the log: where its microseconds went. */
enum load_step {
    LOAD_BEGUN,
    LOAD_CHECK,
    LOAD_STAGE,
    LOAD_SPACES,
    LOAD_PAGES, /* of one that is compressed */
    LOAD_PROCESSES,
    LOAD_COMMIT,
    LOAD_RUN,
    LOAD_AGENT,
    LOAD_STEPS
};

struct loading {
    struct worker *w;
    struct image_meta meta;
    bool same; /* the sandbox that was saved, not another */
    bool committed;
    bool released; /* its processes run, whatever becomes of criu */
    int dir_fd, memory_fd;
    struct criu_process criu;
    int hashed_fd; /* says whether the pages are as they were */
    pid_t hasher;
    struct chunks *chunks;
    bool lazy; /* pages that can come later do */
    struct fill fill;
    struct decompress plain;    /* instead of the hasher, of one that is compressed */
    uint64_t at_us[LOAD_STEPS]; /* when each step was done, for the log */
};

static void did(struct loading *l, enum load_step step)
{
    l->at_us[step] = io_now_us();
}

static uint64_t took(const struct loading *l, enum load_step step)
{
    return l->at_us[step] - l->at_us[step - 1];
}

static bool is_compressed(const struct loading *l)
{
    return l->meta.image.flags & KEEPER_IMAGE_COMPRESSED;
}

/* Beside all that comes before criu has namespaces; then it wants pages. */
static int start_decompress(struct loading *l, struct err *err)
{
    char dir[16 + KEEPER_NAME_MAX];
    const struct decompress_place place = { .dir = dir, .at = "/image" };

    (void) snprintf(dir, sizeof dir, "/images/%s", l->meta.image.id);
    return decompress_begin(&l->plain, &l->w->keeper->host->images, &l->meta, l->dir_fd, &place,
                            err);
}

static int check_hasher(struct loading *l, struct err *err)
{
    char word = 0;

    if (is_compressed(l)) /* every chunk was compared */
        return 0;
    if (read(l->hashed_fd, &word, 1) != 1 || word != 'y')
        return err_set(err, ERR_DENIED, "image '%s' was changed by another process",
                       l->meta.image.id);
    return 0;
}

static int check_small(struct loading *l, struct err *err)
{
    unsigned char hash[SHA256_LEN];

    if (image_hash(&l->w->keeper->host->images, l->memory_fd,
                   is_compressed(l) ? IMAGE_PARSED_BESIDE_PACK : IMAGE_PARSED, hash, err) < 0)
        return -1;
    if (!same_secret(hash, l->meta.small, sizeof hash))
        return err_set(err, ERR_DENIED, "image '%s' was changed by another process",
                       l->meta.image.id);
    return 0;
}

/* Authenticated, but perhaps by a version that did not look. */
static int check_filters(struct loading *l, struct err *err)
{
    struct sandbox *s = &l->w->sandbox;

    if (filters_check(l->memory_fd, s->filter, err) < 0)
        return err_wrap(err, "image '%s'", l->meta.image.id);
    memcpy(l->w->result.filter, s->filter, sizeof l->w->result.filter);
    return 0;
}

/* Only of what is large enough; what cannot be so is restored at once. */
static void plan_fill(struct loading *l)
{
    const struct fill_box box = { .images = &l->w->keeper->host->images,
                                  .cgroups = &l->w->keeper->host->cgroups,
                                  .id = l->w->sandbox.info.id,
                                  .cgroup = l->w->sandbox.cgroup,
                                  .work_fd = l->w->scratch_fd };
    const uint64_t limit = l->w->sandbox.info.limits.memory_bytes;
    struct err err;
    int rc;

    /* A copy may have a lower limit than what it is made of, which take_back() finds out by what is in use. */
    if (!l->same && l->meta.image.memory_bytes > limit / 4 * 3)
        return;
    rc = fill_plan(l->memory_fd, l->chunks, l->w->keeper->host->criu.uffd_fd, &l->fill, &err);
    if (rc == 1 && fill_start(&l->fill, &box, &err) < 0)
        rc = -1;
    if (rc < 0) {
        log_line(LOG_WARNING, "sandbox=%s all pages at once: %s", box.id, err.msg);
        fill_done(&l->fill);
    }
    l->lazy = rc == 1;
}

/* Who brings the pages may know better than criu why it failed. */
static void end_fill(struct loading *l, bool failed, struct err *err)
{
    char why[FILL_REASON_MAX];

    fill_done(&l->fill);
    chunks_free(l->chunks);
    if (failed && l->lazy && fill_reason(&l->w->keeper->host->images, l->w->sandbox.info.id, why))
        (void) err_set(err, ERR_DENIED, "image '%s': %s", l->meta.image.id, why);
}

/* Beside criu, on another core: pages are only copied, so it is enough to know before anything runs. */
static int start_hasher(struct loading *l, struct err *err)
{
    int pair[2];

    if (chunks_read(l->memory_fd, &l->chunks, err) < 0)
        return err_set(err, ERR_DENIED, "image '%s' was changed by another process",
                       l->meta.image.id);
    plan_fill(l);
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    l->hasher = fork();
    if (l->hasher == 0) {
        bool good = chunks_check(l->memory_fd, l->chunks, l->fill.later, err) == 0;

        IGNORE(good && write(pair[1], "y", 1) < 0);
        _exit(0);
    }
    (void) close(pair[1]);
    l->hashed_fd = pair[0];
    return l->hasher < 0 ? err_sys(err, errno, "fork") : 0;
}

/* ---- what criu reaches ---- */

/* That restored processes are in namespaces of their own is for criu to do and for us to know: one that an image did
 * not ask for would be the host's. */
static int check_apart(pid_t pid, struct err *err)
{
    static const char *const spaces[] = { "cgroup", "ipc", "mnt", "net", "pid", "user", "uts" };

    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        char own[40], theirs[40];
        struct stat a, b;

        (void) snprintf(own, sizeof own, "/proc/self/ns/%s", spaces[i]);
        (void) snprintf(theirs, sizeof theirs, "/proc/%d/ns/%s", (int) pid, spaces[i]);
        if (stat(own, &a) < 0 || stat(theirs, &b) < 0)
            return err_sys(err, errno, "look at the %s namespace", spaces[i]);
        if (a.st_ino == b.st_ino && a.st_dev == b.st_dev)
            return err_set(err, ERR_INTERNAL, "it would share the host's %s namespace", spaces[i]);
    }
    return 0;
}

static int on_network(struct loading *l, pid_t pid, struct err *err)
{
    auto_close int pidfd = (int) syscall(__NR_pidfd_open, pid, 0), proc = -1;
    int rc;

    if (pidfd < 0 || check_apart(pid, err) < 0)
        return pidfd < 0 ? err_sys(err, errno, "open the new processes") : -1;
    proc = mountfd_proc(err);
    if (proc < 0)
        return -1;
    if (setns(pidfd, CLONE_NEWNET) < 0)
        return err_sys(err, errno, "enter the new network");
    rc = net_prepare(proc, err);
    /* Connections to the outside are bound to addresses that only these routes make its own. */
    if (rc == 0 && l->meta.image.sandbox.flags & KEEPER_FLAG_ROUTED)
        rc = gateway_routes(err);
    nets_leave(&l->w->keeper->host->nets);
    return rc;
}

static int on_restored(struct loading *l, pid_t pid, struct err *err)
{
    struct sandbox *s = &l->w->sandbox;
    struct keeper *k = l->w->keeper;
    auto_close int pidfd = (int) syscall(__NR_pidfd_open, pid, 0);

    if (pidfd < 0 || setns(pidfd, CLONE_NEWUTS) < 0 ||
        sethostname(s->hostname, strlen(s->hostname)) < 0)
        return err_sys(err, errno, "set the host name");
    if (jail_mask(pidfd, s->view_name, err) < 0 || spaces_forbid_in(pidfd, err) < 0 ||
        check_hasher(l, err) < 0)
        return -1;
    s->info.pid = (int32_t) pid;
    s->info.life = LIFE_RUNNING;
    s->filter_form = FILTER_QUIET;
    if (sandbox_pid_started(pid, &s->pid_started, err) < 0)
        return -1;
    if (l->same && (sandbox_record(k, s, err) < 0 ||
                    image_retire(&k->host->images, l->meta.image.id, err) < 0))
        return -1;
    l->committed = true;
    /* What runs from here on changes the disk: after a power cut its image must not be there. */
    return l->same ? image_sync_name(&k->host->images, err) : 0;
}

struct nproc {
    rlim_t was, is;
    bool *failed;
};

/* The second line to the limit of processes: what was as the old limit is as the new one; what a program made stricter for
 * itself stays. */
static void set_nproc(pid_t pid, const void *arg)
{
    const struct nproc *n = arg;
    struct rlimit limit = { n->is, n->is }, had;

    /* Of those that criu leaves until the end, too: they have none. */
    if (prlimit(pid, RLIMIT_NPROC, NULL, &had) == 0) {
        if (had.rlim_max != n->was)
            return;
        limit.rlim_cur = had.rlim_cur == n->was || had.rlim_cur > n->is ? n->is : had.rlim_cur;
    }
    if (prlimit(pid, RLIMIT_NPROC, &limit, NULL) < 0 && errno == EPERM)
        *n->failed = true;
}

/* More than they had is for those to give who may raise limits; less is in the cgroup's, too. */
static int set_processes(const struct loading *l, struct err *err)
{
    const struct sandbox *s = &l->w->sandbox;
    bool failed = false;
    const struct nproc nproc = { .was = l->meta.image.sandbox.limits.processes,
                                 .is = s->info.limits.processes,
                                 .failed = &failed };

    if (nproc.was != nproc.is)
        cgroup_each_process(&l->w->keeper->host->cgroups, s->cgroup, set_nproc, &nproc);
    return failed && nproc.is > nproc.was
               ? err_set(err, ERR_LIMIT,
                         "limit 'pids': more than the image had needs CAP_SYS_RESOURCE")
               : 0;
}

/* They are let go even if criu should die now. */
static int on_release(struct loading *l, struct err *err)
{
    if (set_processes(l, err) < 0)
        return -1;
    if (l->same)
        image_spend(&l->w->keeper->host->images, l->meta.image.id);
    else if (sandbox_record(l->w->keeper, &l->w->sandbox, err) < 0) /* the keeper will, too */
        log_line(LOG_WARNING, "sandbox=%s %s", l->w->sandbox.info.id, err->msg);
    l->released = true;
    return 0;
}

static int on_point(void *arg, const char *point, pid_t pid, struct err *err)
{
    struct loading *l = arg;

    int rc = 0;

    if (strcmp(point, "setup-namespaces") == 0) {
        rc = on_network(l, pid, err);
        did(l, LOAD_SPACES);
        did(l, LOAD_PAGES);
    } else if (strcmp(point, "post-setup-namespaces") == 0 && is_compressed(l)) {
        rc = decompress_wait(&l->plain, err);
        did(l, LOAD_PAGES);
    } else if (strcmp(point, "post-restore") == 0) {
        did(l, LOAD_PROCESSES);
        rc = on_restored(l, pid, err);
        did(l, LOAD_COMMIT);
    } else if (strcmp(point, "pre-resume") == 0) {
        rc = on_release(l, err);
    }
    return rc;
}

/* It makes itself ready beside all that comes before it. It shares our mounts, also those that are yet to come. */
static int start_criu(struct loading *l, struct err *err)
{
    struct worker *w = l->w;
    struct cgroup_entry entry = { .v2_fd = -1 };
    struct criu_job job = { .criu = &w->keeper->host->criu,
                            .owner = w->sandbox.info.uid_base,
                            .lock_fd = l->dir_fd,
                            .cgroup = &entry };
    int rc = cgroup_entry_open(&w->keeper->host->cgroups, w->sandbox.cgroup, &entry, err);

    if (rc == 0)
        rc = criu_start(&job, &l->criu, err);
    cgroup_entry_close(&entry);
    return rc;
}

static int restore(struct loading *l, struct err *err)
{
    struct worker *w = l->w;
    struct criu_job job = { .criu = &w->keeper->host->criu,
                            .process = &l->criu,
                            .restore = true,
                            .lazy = l->lazy,
                            .images_fd = l->memory_fd,
                            .work_fd = w->scratch_fd,
                            .root = "/new",
                            .reached = on_point,
                            .arg = l };
    int rc;

    outside_mounts(&job, w->sandbox.view_name, w->sandbox.layers.count > 1, w->sandbox.volumes);
    rc = criu_run(&job, &w->result.pid, err);
    if (rc < 0 && l->released) { /* it was killed at the very end */
        log_line(LOG_WARNING, "sandbox=%s %s", w->sandbox.info.id, err->msg);
        w->result.pid = w->sandbox.info.pid;
        rc = 0;
    }
    return rc;
}

/* What was given for the restore. Memory that is in use beyond the limit may take the kernel a moment. A copy may have
 * less than what it was made of: it does not run with more than it was given. */
static int take_back(const struct loading *l, struct err *err)
{
    const struct sandbox *s = &l->w->sandbox;
    const struct timespec moment = { .tv_nsec = 5000000 };
    struct err why;

    for (int tries = 0;
         cgroup_limit(&l->w->keeper->host->cgroups, s->cgroup, &s->info.limits, &why) < 0;
         tries++) {
        if (tries == 20) {
            log_line(LOG_ERROR, "sandbox=%s %s", s->info.id, why.msg);
            return l->same ? 0 : err_set(err, ERR_LIMIT, "limit 'memory': its processes need more");
        }
        (void) nanosleep(&moment, NULL);
    }
    return 0;
}

static uint64_t since_ms(uint64_t then)
{
    struct timespec now;
    uint64_t now_ms;

    (void) clock_gettime(CLOCK_REALTIME, &now);
    now_ms = (uint64_t) now.tv_sec * 1000u + (uint64_t) now.tv_nsec / 1000000u;
    return now_ms > then ? now_ms - then : 0;
}

static int load_staged(struct loading *l, struct err *err)
{
    struct images *images = &l->w->keeper->host->images;
    auto_close int pidfd = -1;

    if (restore(l, err) < 0) {
        /* After the commit the processes are criu's to kill, and it did: the image counts again. */
        if (l->committed && l->same)
            (void) image_unretire(images, l->meta.image.id);
        return -1;
    }
    if (take_back(l, err) < 0)
        return -1;
    did(l, LOAD_RUN);
    l->w->result.pid_started = l->w->sandbox.pid_started;
    pidfd = (int) syscall(__NR_pidfd_open, l->w->result.pid, 0);
    if (connect_resumed(&l->w->keeper->host->nets, pidfd, l->w->result.pid,
                        l->same ? TALK_RESUME : TALK_FORK, since_ms(l->meta.image.saved_ms), -1,
                        err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", l->w->sandbox.info.id, err->msg);
    if (posture_check(&l->w->sandbox, err) < 0)
        return -1;
    did(l, LOAD_AGENT);
    log_line(LOG_DEBUG,
             "load id=%s us_total=%" PRIu64 " us_check=%" PRIu64 " us_stage=%" PRIu64
             " us_spaces=%" PRIu64 " us_pages=%" PRIu64 " us_processes=%" PRIu64
             " us_commit=%" PRIu64 " us_run=%" PRIu64 " us_agent=%" PRIu64,
             l->w->sandbox.info.id, l->at_us[LOAD_AGENT] - l->at_us[LOAD_BEGUN],
             took(l, LOAD_CHECK), took(l, LOAD_STAGE), took(l, LOAD_SPACES), took(l, LOAD_PAGES),
             took(l, LOAD_PROCESSES), took(l, LOAD_COMMIT), took(l, LOAD_RUN), took(l, LOAD_AGENT));
    if (l->same)
        image_discard(images, l->meta.image.id, ".old");
    else
        image_use(l->dir_fd);
    return 0;
}

/* What is authenticated is what criu gets: it is asked for nothing before the stage is set. */
static int check_and_load(struct loading *l, const struct keeper_request *r, struct err *err)
{
    struct worker *w = l->w;
    /* By name again: the keeper's descriptor belongs to its own copy of the mounts. */
    auto_close int templates = open("/templates", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct template t;
    int rc = -1;

    if (image_read(&w->keeper->host->images, r->image, &l->meta, err) < 0 ||
        template_open_tree(&t, templates, w->sandbox.info.template, l->meta.template_inode, err) <
            0)
        return -1;
    if (layers_mount(w->keeper->host, &t, err) < 0) {
        template_close(&t);
        return -1;
    }
    l->memory_fd = openat(l->dir_fd, "memory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->memory_fd < 0)
        err_sys(err, errno, "open memory");
    else if (check_small(l, err) == 0 && check_filters(l, err) == 0 &&
             (is_compressed(l) || start_hasher(l, err) == 0)) {
        did(l, LOAD_CHECK);
        if (stage_image(w, &l->meta, &l->memory_fd, err) == 0 &&
            (!is_compressed(l) || start_decompress(l, err) == 0) && stage_root(w, &t, err) == 0) {
            did(l, LOAD_STAGE);
            rc = load_staged(l, err);
        }
    }
    template_close(&t);
    return rc;
}

int loader_run(struct worker *w, const struct keeper_request *r, struct err *err)
{
    struct loading l = { .w = w,
                         .dir_fd = -1,
                         .memory_fd = -1,
                         .hashed_fd = -1,
                         .criu = CRIU_NONE,
                         .fill = FILL_NONE,
                         .plain = { .from_fd = -1 } };
    int rc;

    did(&l, LOAD_BEGUN);
    l.same = strcmp(r->image, r->sandbox) == 0;
    if (image_lock(&w->keeper->host->images, r->image, l.same, &l.dir_fd, err) < 0 ||
        start_criu(&l, err) < 0)
        return -1;
    rc = check_and_load(&l, r, err);
    criu_stop(&l.criu); /* one that was never asked */
    decompress_done(&l.plain);
    end_fill(&l, rc < 0, err);
    if (l.hasher > 0) {
        (void) kill(l.hasher, SIGKILL);
        (void) waitpid(l.hasher, NULL, 0);
    }
    return rc;
}
