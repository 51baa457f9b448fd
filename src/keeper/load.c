/* The order, with processes:
 *
 *   lock      nobody else works on the image; what criu will parse is hashed, and compared with what was signed
 *   stage     root, disk and criu's files are attached in a mount namespace of the worker's own; the id map among the
 *             files is replaced by that of the sandbox's slot
 *   restore   criu makes the processes, all of them stopped
 *   … network its namespace is brought up as soon as there is one: sockets are bound in it later
 *   commit    the pages are compared, too; of a resumed sandbox, the journal says RUNNING and the image loses its name
 *   release   criu has nothing left to do but to let them go: a retired image is spent, a fork's record says RUNNING
 *   resume    the processes run; the agent is told
 *
 * Up to the release nothing has run, and a failure leaves the image as it was, or gives it back its name. Who is killed
 * where is found by load_settle(): an image that is whole, with its name or retired, is the sandbox; else those who run. */
#include "keeper/load.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "keeper/create.h"
#include "jail/creds.h"
#include "jail/gateway.h"
#include "image/outside.h"
#include "jail/mounts.h"
#include "keeper/life.h"
#include "jail/mountfd.h"
#include "keeper/ops.h"
#include "jail/root.h"
#include "keeper/sandbox.h"
#include "keeper/talk.h"
#include "keeper/volume.h"
#include "keeper/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- disks that several read ---- */

static struct base *find_base(struct keeper *k, uint64_t number)
{
    for (size_t i = 0; i < BASES_MAX; i++)
        if (k->bases[i].number == number)
            return &k->bases[i];
    return NULL;
}

static bool base_wanted(const struct keeper *k, uint64_t number)
{
    for (uint32_t i = 0; i < k->slot_count; i++)
        for (uint32_t n = 1; n < k->sandboxes[i].layers.count; n++)
            if (k->sandboxes[i].info.life == LIFE_NEW && k->sandboxes[i].layers.number[n] == number)
                return true;
    return false;
}

/* A free place, or that of one which nobody waits for: sandboxes hold their own clones. */
static struct base *place_for_base(struct keeper *k)
{
    struct base *b = find_base(k, 0);

    for (size_t i = 0; !b && i < BASES_MAX; i++)
        if (k->bases[i].mount_fd >= 0 && !base_wanted(k, k->bases[i].number))
            b = &k->bases[i];
    if (b) {
        own_close(&b->mount_fd);
        b->number = 0;
    }
    return b;
}

int load_bases(struct keeper *k, struct sandbox *s, struct err *err)
{
    bool all = true;

    for (uint32_t i = 1; i < s->layers.count; i++) {
        struct base *b = find_base(k, s->layers.number[i]);

        if (b && b->mount_fd >= 0)
            continue;
        all = false;
        if (b)
            continue;
        b = place_for_base(k);
        if (!b)
            return err_set(err, ERR_TOO_MANY, "too many images are being loaded at once");
        if (disks_open(&k->disks, s->layers.number[i], true, keeper_next_order(k), err) < 0)
            return -1;
        b->number = s->layers.number[i];
    }
    for (uint32_t i = 1; all && i < s->layers.count; i++)
        s->base_fd[i] = find_base(k, s->layers.number[i])->mount_fd; /* borrowed from the table */
    return all ? 1 : 0;
}

void load_got_base(struct keeper *k, uint64_t number, int mount_fd, const struct err *why)
{
    struct base *b = find_base(k, number);

    if (!b) {
        own_close(&mount_fd);
        return;
    }
    b->mount_fd = mount_fd;
    if (mount_fd < 0)
        b->number = 0;
    for (uint32_t i = 0; i < k->slot_count; i++)
        for (uint32_t n = 1; n < k->sandboxes[i].layers.count; n++)
            if (k->sandboxes[i].info.life == LIFE_NEW &&
                k->sandboxes[i].layers.number[n] == number) {
                if (mount_fd < 0)
                    sandbox_fail(k, &k->sandboxes[i], why);
                else
                    create_go_on(k, &k->sandboxes[i]);
                break;
            }
}

void load_lost_bases(struct keeper *k, const struct err *why)
{
    for (size_t i = 0; i < BASES_MAX; i++)
        if (k->bases[i].number && k->bases[i].mount_fd < 0)
            load_got_base(k, k->bases[i].number, -1, why);
}

/* ---- the worker: staging ---- */

/* Steps of a load, for the log: where its microseconds went. */
enum load_step {
    LOAD_BEGUN,
    LOAD_CHECK,
    LOAD_STAGE,
    LOAD_SPACES,
    LOAD_PROCESSES,
    LOAD_COMMIT,
    LOAD_RUN,
    LOAD_AGENT,
    LOAD_STEPS
};

struct loading {
    struct worker *w;
    const struct template *template;
    struct image_meta meta;
    bool same; /* the sandbox that was saved, not another */
    bool committed;
    bool released; /* its processes run, whatever becomes of criu */
    int dir_fd, memory_fd;
    int hashed_fd; /* says whether the pages are as they were */
    pid_t hasher;
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

/* Beside criu, on another core: pages are only copied, so it is enough to know before anything runs. */
static int start_hasher(struct loading *l, struct err *err)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    l->hasher = fork();
    if (l->hasher == 0) {
        unsigned char hash[SHA256_LEN];
        bool good = image_hash(&l->w->keeper->images, l->memory_fd, true, hash, err) == 0 &&
                    same_secret(hash, l->meta.pages, sizeof hash);

        IGNORE(good && write(pair[1], "y", 1) < 0);
        _exit(0);
    }
    (void) close(pair[1]);
    l->hashed_fd = pair[0];
    return l->hasher < 0 ? err_sys(err, errno, "fork") : 0;
}

static int check_hasher(struct loading *l, struct err *err)
{
    char word = 0;

    if (read(l->hashed_fd, &word, 1) != 1 || word != 'y')
        return err_set(err, ERR_DENIED, "image '%s' was changed by somebody else",
                       l->meta.image.id);
    return 0;
}

static int check_small(struct loading *l, struct err *err)
{
    unsigned char hash[SHA256_LEN];

    if (image_hash(&l->w->keeper->images, l->memory_fd, false, hash, err) < 0)
        return -1;
    if (!same_secret(hash, l->meta.small, sizeof hash))
        return err_set(err, ERR_DENIED, "image '%s' was changed by somebody else",
                       l->meta.image.id);
    return 0;
}

/* A user namespace with the sandbox's map, for the mounts: criu makes the processes' own, with the same. */
static int open_map(uint32_t base, struct err *err)
{
    auto_close int fd = -1;
    char path[40], byte;
    int pair[2];
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    pid = fork();
    if (pid == 0) {
        (void) close(pair[0]);
        if (unshare(CLONE_NEWUSER) == 0 && write(pair[1], "1", 1) == 1)
            (void) pause();
        _exit(1);
    }
    (void) close(pair[1]);
    if (pid > 0 && read(pair[0], &byte, 1) == 1 && create_write_maps(pid, base, err) == 0) {
        (void) snprintf(path, sizeof path, "/proc/%d/ns/user", (int) pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            err_sys(err, errno, "open a user namespace");
    } else {
        err_sys(err, errno, "make a user namespace");
    }
    (void) close(pair[0]);
    if (pid > 0) {
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
    }
    return fd < 0 ? -1 : take_fd(&fd);
}

/* A record of two maps, each 0 -> base, in criu's form: two words of magic, the length, protobuf. */
static int write_ids_file(struct loading *l, int fd, struct err *err)
{
    auto_close int old = openat(l->memory_fd, l->meta.ids_file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    uint32_t base = l->w->sandbox.info.uid_base;
    uint8_t map[32], all[96];
    size_t len = 0, at = 8;
    const uint32_t values[] = { 0, base, IDS_PER_SANDBOX };
    uint32_t size;

    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        uint32_t value = values[i];

        map[len++] = (uint8_t) ((i + 1) << 3);
        for (; value > 0x7f; value >>= 7)
            map[len++] = (uint8_t) (value | 0x80);
        map[len++] = (uint8_t) value;
    }
    if (old < 0 || io_read_all(old, all, 8) < 0)
        return err_sys(err, errno, "read the id map");
    size = (uint32_t) (2 * (len + 2));
    memcpy(all + at, &size, sizeof size);
    at += sizeof size;
    for (uint8_t field = 1; field <= 2; field++) {
        all[at++] = (uint8_t) (field << 3 | 2);
        all[at++] = (uint8_t) len;
        memcpy(all + at, map, len);
        at += len;
    }
    return io_write_all(fd, all, at) < 0 ? err_sys(err, errno, "write the id map") : 0;
}

/* criu's files as it is to see them: at /image, with the id map of this slot over the one that was saved. */
static int stage_image(struct loading *l, struct err *err)
{
    auto_close int fd =
        openat(l->w->scratch_fd, "ids", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    auto_close int memory = -1, ids = -1;
    char at[16 + IMAGE_FILE_MAX];

    (void) snprintf(at, sizeof at, "/images/%s/memory", l->meta.image.id);
    memory = mountfd_clone(AT_FDCWD, at, 0);
    if (fd < 0 || write_ids_file(l, fd, err) < 0)
        return fd < 0 ? err_sys(err, errno, "make an id map") : -1;
    if (memory < 0 || mountfd_attach(memory, AT_FDCWD, "/image") < 0)
        return err_sys(err, errno, "attach the image");
    ids = mountfd_clone(l->w->scratch_fd, "ids", 0);
    (void) snprintf(at, sizeof at, "/image/%s", l->meta.ids_file);
    if (ids < 0 || mountfd_attach(ids, AT_FDCWD, at) < 0)
        return err_sys(err, errno, "attach the id map");
    own_close(&l->memory_fd);
    l->memory_fd = open("/image", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return l->memory_fd < 0 ? err_sys(err, errno, "open the image") : 0;
}

static int stage_root(struct loading *l, struct err *err)
{
    struct sandbox *s = &l->w->sandbox;
    auto_close int map = open_map(s->info.uid_base, err), root = -1, shm = -1;
    struct root_layers layers = { .disk_fd = s->disk_fd,
                                  .kind = DISK_IMAGE,
                                  .base_count = s->layers.count - 1 };

    if (map < 0)
        return -1;
    memcpy(layers.base_fd, s->base_fd + 1, layers.base_count * sizeof layers.base_fd[0]);
    if (root_assemble(l->template, &layers, map, s->info.uid_base, &root, &shm, err) < 0 ||
        volumes_map(s, map, err) < 0)
        return -1;
    return jail_stage(root, s->disk_fd, shm, s->volume_fd, err);
}

/* ---- the worker: what criu reaches ---- */

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
    auto_close int pidfd = (int) syscall(__NR_pidfd_open, pid, 0);
    int rc;

    if (pidfd < 0 || check_apart(pid, err) < 0)
        return pidfd < 0 ? err_sys(err, errno, "open the new processes") : -1;
    if (setns(pidfd, CLONE_NEWNET) < 0)
        return err_sys(err, errno, "enter the new network");
    rc = net_prepare(err);
    /* Connections to the outside are bound to addresses that only these routes make its own. */
    if (rc == 0 && l->meta.image.sandbox.flags & KEEPER_FLAG_ROUTED)
        rc = gateway_routes(err);
    nets_leave(&l->w->keeper->nets);
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
    if (jail_mask(pidfd, err) < 0 || check_hasher(l, err) < 0)
        return -1;
    s->info.pid = (int32_t) pid;
    s->info.life = LIFE_RUNNING;
    if (sandbox_pid_started(pid, &s->pid_started, err) < 0)
        return -1;
    if (l->same && (sandbox_record(k, s, err) < 0 ||
                    image_retire(&k->images, l->meta.image.id, err) < 0))
        return -1;
    l->committed = true;
    return 0;
}

/* They are let go even if criu should die now. */
static int on_release(struct loading *l, struct err *err)
{
    if (l->same)
        image_spend(&l->w->keeper->images, l->meta.image.id);
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
    } else if (strcmp(point, "post-restore") == 0) {
        did(l, LOAD_PROCESSES);
        rc = on_restored(l, pid, err);
        did(l, LOAD_COMMIT);
    } else if (strcmp(point, "pre-resume") == 0) {
        rc = on_release(l, err);
    }
    return rc;
}

static int restore(struct loading *l, struct err *err)
{
    struct worker *w = l->w;
    struct cgroup_entry entry = { .v2_fd = -1 };
    struct criu_job job = { .criu = &w->keeper->criu,
                            .restore = true,
                            .owner = w->sandbox.info.uid_base,
                            .images_fd = l->memory_fd,
                            .lock_fd = l->dir_fd,
                            .work_fd = w->scratch_fd,
                            .root = "/new",
                            .cgroup = &entry,
                            .reached = on_point,
                            .arg = l };
    int rc;

    outside_mounts(&job, w->sandbox.view_name, w->sandbox.layers.count > 1, w->sandbox.volumes);
    rc = cgroup_entry_open(&w->keeper->cgroups, w->sandbox.made_as, &entry, err);
    if (rc == 0)
        rc = criu_run(&job, &w->result.pid, err);
    cgroup_entry_close(&entry);
    if (rc < 0 && l->released) { /* it was killed at the very end */
        log_line(LOG_WARNING, "sandbox=%s %s", w->sandbox.info.id, err->msg);
        w->result.pid = w->sandbox.info.pid;
        rc = 0;
    }
    return rc;
}

/* What was given for the restore. Memory that is in use beyond the limit may take the kernel a moment. */
static void take_back(const struct loading *l)
{
    const struct sandbox *s = &l->w->sandbox;
    const struct timespec moment = { .tv_nsec = 5000000 };
    struct err err;

    for (int tries = 0; cgroup_limit(&l->w->keeper->cgroups, s->made_as, &s->info.limits, &err) < 0;
         tries++) {
        if (tries == 20) {
            log_line(LOG_ERROR, "sandbox=%s %s", s->info.id, err.msg);
            return;
        }
        (void) nanosleep(&moment, NULL);
    }
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
    struct images *images = &l->w->keeper->images;
    auto_close int pidfd = -1;

    if (restore(l, err) < 0) {
        /* After the commit the processes are criu's to kill, and it did: the image counts again. */
        if (l->committed && l->same)
            (void) image_unretire(images, l->meta.image.id);
        return -1;
    }
    take_back(l);
    did(l, LOAD_RUN);
    l->w->result.pid_started = l->w->sandbox.pid_started;
    pidfd = (int) syscall(__NR_pidfd_open, l->w->result.pid, 0);
    if (talk_resumed(&l->w->keeper->nets, pidfd, l->w->result.pid,
                     l->same ? TALK_RESUME : TALK_FORK, since_ms(l->meta.image.saved_ms), -1,
                     err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", l->w->sandbox.info.id, err->msg);
    did(l, LOAD_AGENT);
    log_line(LOG_DEBUG,
             "load id=%s us_total=%" PRIu64 " us_check=%" PRIu64 " us_stage=%" PRIu64
             " us_spaces=%" PRIu64 " us_processes=%" PRIu64 " us_commit=%" PRIu64 " us_run=%" PRIu64
             " us_agent=%" PRIu64,
             l->w->sandbox.info.id, l->at_us[LOAD_AGENT] - l->at_us[LOAD_BEGUN],
             took(l, LOAD_CHECK), took(l, LOAD_STAGE), took(l, LOAD_SPACES),
             took(l, LOAD_PROCESSES), took(l, LOAD_COMMIT), took(l, LOAD_RUN), took(l, LOAD_AGENT));
    (void) umount2("/image", MNT_DETACH); /* with the id map, or that file could not go */
    if (l->same)
        image_remove(images, l->meta.image.id, ".old");
    return 0;
}

static int load(struct worker *w, const struct keeper_request *r, struct err *err)
{
    struct loading l = { .w = w, .dir_fd = -1, .memory_fd = -1, .hashed_fd = -1 };
    struct images *images = &w->keeper->images;
    /* By name again: the keeper's descriptor belongs to its own copy of the mounts. */
    auto_close int templates = open("/templates", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct template t;
    int rc = -1;

    did(&l, LOAD_BEGUN);
    l.template = &t;
    l.same = strcmp(r->image, r->sandbox) == 0;
    if (image_lock(images, r->image, l.same, &l.dir_fd, err) < 0 ||
        image_read(images, r->image, &l.meta, err) < 0 ||
        template_open_tree(&t, templates, w->sandbox.info.template, l.meta.template_inode, err) < 0)
        return -1;
    l.memory_fd = openat(l.dir_fd, "memory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l.memory_fd < 0)
        err_sys(err, errno, "open memory");
    else if (check_small(&l, err) == 0 && start_hasher(&l, err) == 0) {
        did(&l, LOAD_CHECK);
        if (stage_root(&l, err) == 0 && stage_image(&l, err) == 0) {
            did(&l, LOAD_STAGE);
            rc = load_staged(&l, err);
        }
    }
    template_close(&t);
    if (l.hasher > 0) {
        (void) kill(l.hasher, SIGKILL);
        (void) waitpid(l.hasher, NULL, 0);
    }
    return rc;
}

/* ---- the keeper's half ---- */

/* Its image is as it was; unless it was to be destroyed meanwhile. */
static void give_up(struct keeper *k, struct sandbox *s, const struct err *err)
{
    if (s->doomed && strcmp(s->image, s->info.id) == 0) {
        image_remove(&k->images, s->image, "");
        images_forget(&k->images, s->image);
    }
    sandbox_fail(k, s, err);
    (void) cgroup_kill(&k->cgroups, s->made_as);
}

static void on_end(struct keeper *k, struct sandbox *s, struct worker_result *r)
{
    struct err err = r->err;
    uint64_t started = 0;
    int pidfd;

    if (err.kind != ERR_NONE) {
        give_up(k, s, &err);
        return;
    }
    s->info.pid = (int32_t) r->pid;
    s->pid_started = r->pid_started;
    pidfd = (int) syscall(__NR_pidfd_open, r->pid, 0);
    if (pidfd < 0 || sandbox_pid_started(r->pid, &started, &err) < 0 || started != r->pid_started) {
        own_close(&pidfd);
        err_set(&err, ERR_UNAVAILABLE, "sandbox '%s' ended as soon as it ran", s->info.id);
        sandbox_fail(k, s, &err);
        return;
    }
    if (keeper_watch(k, &s->pid, pidfd, sandbox_on_death, &err) < 0) {
        sandbox_fail(k, s, &err);
        return;
    }
    if (strcmp(s->image, s->info.id) == 0)
        images_forget(&k->images, s->image);
    s->image[0] = '\0';
    create_running(k, s);
}

int load_processes(struct keeper *k, struct sandbox *s, const struct template *t, struct err *err)
{
    struct keeper_request r;

    (void) t;
    keeper_request_init(&r, KEEPER_LOAD);
    memcpy(r.image, s->image, sizeof r.image);
    memcpy(r.sandbox, s->info.id, sizeof r.sandbox);
    memcpy(s->view_name, s->view->name, sizeof s->view_name);
    if (worker_start(k, s, "cove-loader", load, &r, on_end, err) < 0)
        return -1;
    own_close(&s->disk_fd);
    volumes_let_go(s);
    return 0;
}

static int check_load(struct keeper *k, const struct keeper_request *r,
                      const struct image_meta *meta, struct err *err)
{
    bool same = strcmp(r->image, r->sandbox) == 0;
    struct template t;

    if (strcmp(r->owner, meta->image.owner) != 0)
        return err_set(err, ERR_DENIED, "image '%s' belongs to somebody else", r->image);
    if (same != !!(meta->image.flags & KEEPER_IMAGE_PAUSED))
        return err_set(err, ERR_STATE,
                       same ? "image '%s' is a snapshot: load it under an id of its own"
                            : "image '%s' is a paused sandbox: it can only be resumed",
                       r->image);
    if (template_open_tree(&t, k->templates_fd, meta->image.sandbox.template, meta->template_inode,
                           err) < 0)
        return err_wrap(err, "image '%s'", r->image);
    template_close(&t);
    if (meta->image.flags & KEEPER_IMAGE_MEMORY && !criu_there())
        return err_set(err, ERR_UNSUPPORTED, "there is no criu here: 'cove doctor' says more");
    return 0;
}

int load_begin(struct keeper *k, const struct keeper_request *r, struct sandbox **ret,
               struct err *err)
{
    struct keeper_request create = *r;
    struct image_meta meta;
    bool same = strcmp(r->image, r->sandbox) == 0;

    if (image_read(&k->images, r->image, &meta, err) < 0 || check_load(k, r, &meta, err) < 0)
        return -1;
    create.op = KEEPER_CREATE;
    create.limits = meta.image.sandbox.limits;
    create.flags = meta.image.sandbox.flags & KEEPER_FLAG_ROOT;
    memcpy(create.volumes, meta.volumes, sizeof create.volumes);
    memcpy(create.template, meta.image.sandbox.template, sizeof create.template);
    if (same) { /* it is who it was */
        memcpy(create.name, meta.image.sandbox.name, sizeof create.name);
        memcpy(create.hostname, meta.hostname, sizeof create.hostname);
    }
    return create_from_image(k, &create, &meta, same, ret, err);
}

static bool runs(const struct journal_record *r)
{
    uint64_t started = 0;
    struct err err;

    return r->sandbox.life == LIFE_RUNNING && r->sandbox.pid > 0 &&
           sandbox_pid_started(r->sandbox.pid, &started, &err) == 0 && started == r->pid_started;
}

bool load_settle(struct keeper *k, struct sandbox *s)
{
    uint32_t slot = sandbox_slot(k, s);
    struct journal_record record;
    bool doomed = s->doomed, same = strcmp(s->image, s->info.id) == 0;
    struct err err;

    if (image_busy(&k->images, s->image))
        return false;
    if (!(same && image_unretire(&k->images, s->image)) &&
        journal_read(&k->journal, slot, &record, &err) == 1 && runs(&record)) {
        images_forget(&k->images, record.sandbox.id);
        image_remove(&k->images, record.sandbox.id, ".old");
        sandbox_set_life(k, s, LIFE_STOPPING); /* for adoption to begin anew */
        sandbox_set_life(k, s, LIFE_GONE);
        sysview_drop(&k->views, s->view);
        sandbox_adopt(k, slot, &record, true);
        s->doomed = doomed;
        if (s->info.life == LIFE_RUNNING) {
            worker_tell_continue(k, s);
            ops_sandbox_started(k, s);
        }
        return true;
    }
    err_set(&err, ERR_INTERNAL, "its loading was not finished");
    give_up(k, s, &err);
    return true;
}
