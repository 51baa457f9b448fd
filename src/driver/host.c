#include "driver/host.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "driver/disks.h"
#include "driver/full.h"
#include "driver/gvisor/runsc.h"
#include "driver/jail/spare.h"
#include "driver/layers.h"
#include "driver/merge.h"
#include "driver/vm/parts.h"
#include "driver/worker.h"
#include "image/fill.h"
#include "jail/confine.h"
#include "jail/home.h"
#include "jail/root.h"
#include "keeper/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STRAY_MS    2000
#define NO_MAKER_MS 100 /* until the next try to start a disk maker */

_Static_assert(HOST_SLOTS == IDS_SLOTS_MAX, "a range of ids for each slot");

/* ---- start ---- */

static int open_dir(int at, const char *name, mode_t mode, int *ret, struct err *err)
{
    if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make %s", name);
    *ret = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret < 0 ? err_sys(err, errno, "open %s", name) : 0;
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
    k->host->criu.ids_fd = open_beside("cove-criu.so", err);
    k->host->criu.uffd_fd = all_pages ? -1 : open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    if (!fill_possible(k->host->criu.uffd_fd))
        own_close(&k->host->criu.uffd_fd);
    return k->host->criu.ids_fd < 0 ? -1 : 0;
}

static int load_agent(struct keeper *k, struct err *err)
{
    auto_close int fd = open_beside("cove-agent", err);

    return fd < 0 ? -1 : agents_open(&k->host->agents, k->state_fd, fd, err);
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
    const struct cgroups *cgroups = &k->host->cgroups;
    int dir = -1;

    (void) mkdir("/run/cove", 0755);
    if (open_dir(AT_FDCWD, "/run/cove/ids", 0700, &dir, err) < 0)
        return -1;
    return ids_open(&k->host->ids, dir, cgroups->hierarchy[cgroups->of[CG_PIDS]].root_fd,
                    cgroups->instance, err);
}

static int open_files(struct keeper *k, bool all_pages, struct err *err)
{
    auto_close int templates = -1;

    if (open_dir(k->state_fd, "templates", 0755, &templates, err) <
        0) /* opened again behind the keeper's own root */
        return -1;
    k->host->bridge_fd = open_beside("cove-bridge", err);
    if (k->host->bridge_fd < 0)
        return -1;
    return load_agent(k, err) < 0 || find_ids_file(k, all_pages, err) < 0 ||
                   images_open(&k->host->images, k->state_fd, err) < 0
               ? -1
               : 0;
}

/* The keeper leaves the host's mounts. */
static int enter_home(struct keeper *k, const char *state, struct err *err)
{
    struct host *host = k->host;

    if (nets_open(&host->nets, err) < 0 || home_enter(state, err) < 0 || root_learn(err) < 0 ||
        agents_place(&host->agents, err) < 0 || mount_parent_open(&host->mount_parent, err) < 0)
        return -1;
    return open_dir(AT_FDCWD, "/templates", 0755, &host->templates_fd, err);
}

static void compile_filters(struct host *host)
{
    seccomp_compile(&host->filter_notify, true);
    seccomp_compile(&host->filter_quiet, false);
    seccomp_compile_machine(&host->filter_machine);
    seccomp_compile_kvm(&host->filter_kvm);
    seccomp_name(host->filter_notify.code, host->filter_notify.len, host->filter_name);
}

static void init(struct host *host)
{
    host->kvm_fd = -1;
    host->disks_watch.fd = host->shrink.watch.fd = host->room.fd = -1;
    host->spare.pidfd = host->spare.control = host->spare.ready = -1;
    for (size_t i = 0; i < BASES_MAX; i++)
        host->bases[i].mount_fd = -1;
    for (size_t i = 0; i < LAYERS_PLACES; i++)
        host->layers[i].file_fd = -1;
    gateways_init(&host->gateways);
}

static int open_rest(struct keeper *k, const struct host_options *o, struct err *err)
{
    struct host *host = k->host;

    io_limits_open(&host->io, &host->cgroups);
    if (claim_ids(k, err) < 0 || disks_start(&host->disks, k->state_fd, err) < 0 ||
        disks_open_watch(k, err) < 0 || full_start(k, o->reserve, err) < 0)
        return -1;
    if (enter_home(k, o->state, err) < 0 || sysviews_open(&host->views, IDS_SLOTS_MAX, err) < 0)
        return -1;
    compile_filters(host);
    (void) runsc_text(); /* asked now, so that no create waits for it */
    (void) parts_text();
    low_fds_open(&host->low_fds);
    host->uts_fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
    return host->uts_fd < 0 ? err_sys(err, errno, "open our UTS namespace") : 0;
}

int host_open(struct keeper *k, const struct host_options *o, struct err *err)
{
    static struct host host; /* static: zeroed, and larger than a stack frame should be */
    char instance[64];

    k->host = &host;
    init(&host);
    merge_from(o->layers);
    if (o->stage_layers)
        root_stage_layers();
    host.layers_by_loop = o->stage_layers;
    host.dev_fd = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    host.vm_emulated = o->vm_emulated;
    host.spare.off = o->no_spare;
    if (open_files(k, o->all_pages, err) < 0)
        return -1;
    instance_name(k->state_fd, instance, sizeof instance);
    if (cgroups_open(&host.cgroups, instance, err) == 0 && open_rest(k, o, err) == 0)
        return 0;
    cgroups_close(&host.cgroups);
    return -1;
}

void host_close(struct keeper *k)
{
    spare_close(k);
    disks_stop(&k->host->disks);
    gateways_close(&k->host->gateways);
    nets_close(&k->host->nets);
    cgroups_close(&k->host->cgroups);
}

/* ---- by time ---- */

/* Of two waits in milliseconds; -1 is for ever. */
static int shorter(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

int host_tick(struct keeper *k)
{
    int wait = shorter(shorter(full_tend(k), images_tick(k)), spare_tick(k));

    disks_tend(k);
    return k->host->disks.sock < 0 ? shorter(wait, NO_MAKER_MS) : wait;
}

void host_idle(struct keeper *k)
{
    disks_refill(&k->host->disks);
    layers_release(k->host);
    gateways_refill(&k->host->gateways);
}

/* ---- what it is ---- */

const char *host_default_template(const struct keeper *k)
{
    return template_exists(k->host->templates_fd, "base") ? "base" : "host";
}

void host_describe(const struct keeper *k, struct keeper_hello *ret)
{
    const struct cgroups *cgroups = &k->host->cgroups;
    struct full full;

    full_now(k, &full);
    ret->disk_free = full.free;
    ret->disk_reserve = full.reserve;
    ret->disk_full = full.full;
    (void) snprintf(ret->default_template, sizeof ret->default_template, "%s",
                    host_default_template(k));
    (void) snprintf(
        ret->isolation, sizeof ret->isolation,
        "jail: namespaces, cgroup v%d, seccomp, %sid range per sandbox; gvisor: %s; vm: %s",
        cgroups->hierarchy[cgroups->of[CG_MEMORY]].version,
        confine_has_landlock() ? "Landlock, " : "", runsc_text(), parts_text());
}

int host_templates(const struct keeper *k, uint32_t from, struct keeper_reply *reply,
                   struct err *err)
{
    int fd = openat(k->host->templates_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        err_sys(err, errno, "list templates");
        own_close(&fd);
        return -1;
    }
    for (uint32_t i = 0; (entry = readdir(dir)); i++) {
        if (i < from || !name_ok(entry->d_name) ||
            !template_exists(k->host->templates_fd, entry->d_name))
            continue;
        if (reply->count == KEEPER_LIST_MAX) {
            reply->next = i;
            break;
        }
        memcpy(reply->template[reply->count++], entry -> d_name, strlen(entry->d_name));
    }
    (void) closedir(dir);
    return 0;
}

int host_template(const struct keeper *k, const char *name, struct keeper_template *ret,
                  struct err *err)
{
    struct template t;

    if (template_open(&t, k->host->templates_fd, name, err) < 0)
        return -1;
    ret->build = t.build;
    (void) snprintf(ret->name, sizeof ret->name, "%s", name);
    (void) snprintf(ret->layer, sizeof ret->layer, "%s", t.layer);
    (void) snprintf(ret->digest, sizeof ret->digest, "%s", t.digest);
    (void) snprintf(ret->named, sizeof ret->named, "%s", t.named);
    template_close(&t);
    return 0;
}

int host_check_room(const struct keeper *k, uint64_t bytes, struct err *err)
{
    return full_check(k, bytes, err);
}

uint32_t host_slots(const struct keeper *k)
{
    return k->host->ids.count * IDS_SLOTS;
}

int host_grow_slots(struct keeper *k, struct err *err)
{
    if (ids_grow(&k->host->ids, err) < 0)
        return -1;
    log_line(LOG_INFO, "user ids: blocks=%u", k->host->ids.count);
    return 0;
}

uint32_t host_uid_base(const struct keeper *k, uint32_t slot)
{
    return ids_base(&k->host->ids, slot);
}

/* ---- what no record speaks of ---- */

/* A cgroup that no record speaks of: of the spare child, of a create that had not written its record, or of a journal that
 * was lost. Rare, so waiting for it here is fine. */
static void clear_stray_cgroup(const char *name, void *arg)
{
    struct keeper *k = arg;
    uint64_t until = io_now_ms() + STRAY_MS;
    const struct timespec moment = { .tv_nsec = 1000000 };
    char of[KEEPER_NAME_MAX];
    struct err err;

    if (sandbox_has_cgroup(k, name) || (cgroup_is_work(name, of) && sandbox_has_cgroup(k, of)))
        return;
    log_line(spare_is_name(name) ? LOG_DEBUG : LOG_WARNING,
             "stray cgroup=%s processes=%zu: cleared away", name,
             cgroup_kill(&k->host->cgroups, name));
    while (cgroup_remove(&k->host->cgroups, name, &err) == 0 && io_now_ms() < until) {
        (void) cgroup_kill(&k->host->cgroups, name);
        (void) nanosleep(&moment, NULL);
    }
}

void host_clear_strays(struct keeper *k)
{
    cgroup_each(&k->host->cgroups, clear_stray_cgroup, k);
}

static bool disk_used(const void *arg, uint64_t number)
{
    return host_disk_used(arg, number, NULL);
}

void host_sweep(struct keeper *k)
{
    images_sweep(&k->host->images);
    worker_clear_images(k);
    if (k->host->images.unread) {
        log_line(LOG_WARNING, "disks are not swept: %zu images do not say which are theirs",
                 k->host->images.unread);
        return;
    }
    disks_sweep(&k->host->disks, disk_used, k);
}
