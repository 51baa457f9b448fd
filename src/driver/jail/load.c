#include "driver/jail/load.h"

#include "base/io.h"
#include "base/own.h"
#include "driver/disks.h"
#include "driver/jail/loader.h"
#include "driver/jail/memory.h"
#include "driver/jail/save.h"
#include "driver/merge.h"
#include "driver/shrink.h"
#include "driver/worker.h"
#include "image/fill.h"
#include "keeper/create.h"
#include "keeper/life.h"
#include "keeper/ops.h"
#include "keeper/pool.h"
#include "keeper/sandbox.h"

#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MiB           (1024u * 1024u)
#define THREAD_MEMORY (32u * 1024u) /* of the kernel's, for each */
#define SPARE_MEMORY  (8u * MiB)    /* page tables, and what a first command takes */

/* Its image is as it was; unless it was to be destroyed meanwhile. */
static void give_up(struct keeper *k, struct sandbox *s, const struct err *err)
{
    if (s->doomed && strcmp(s->image, s->info.id) == 0) {
        host_discard_image(k, s->image, "");
        images_forget(&k->host->images, s->image);
    }
    sandbox_fail(k, s, err);
    (void) cgroup_kill(&k->host->cgroups, s->cgroup);
}

static void on_end(struct keeper *k, struct sandbox *s, struct worker_result *r)
{
    struct err err = r->err;
    uint64_t started = 0;
    char why[FILL_REASON_MAX];
    int pidfd;

    if (err.kind != ERR_NONE) {
        give_up(k, s, &err);
        return;
    }
    s->info.pid = (int32_t) r->pid;
    s->pid_started = r->pid_started;
    s->filter_form = FILTER_QUIET;
    memcpy(s->filter, r->filter, sizeof s->filter);
    pidfd = (int) syscall(__NR_pidfd_open, r->pid, 0);
    if (pidfd < 0 || sandbox_pid_started(r->pid, &started, &err) < 0 || started != r->pid_started) {
        own_close(&pidfd);
        if (fill_reason(&k->host->images, s->info.id, why))
            err_set(&err, ERR_DENIED, "sandbox '%s': %s", s->info.id, why);
        else
            err_set(&err, ERR_UNAVAILABLE, "sandbox '%s' ended as soon as it ran", s->info.id);
        sandbox_fail(k, s, &err);
        return;
    }
    if (keeper_watch(k, &s->pid, pidfd, sandbox_on_death, &err) < 0) {
        sandbox_fail(k, s, &err);
        return;
    }
    if (strcmp(s->image, s->info.id) == 0) {
        images_forget(&k->host->images, s->image);
        host_clear_later(k);
    }
    s->image[0] = '\0';
    create_running(k, s);
    memory_watch(k, s);
}

int load_processes(struct keeper *k, struct sandbox *s, worker_deed *loader, struct err *err)
{
    struct keeper_request r;

    keeper_request_init(&r, KEEPER_LOAD);
    memcpy(r.image, s->image, sizeof r.image);
    memcpy(r.sandbox, s->info.id, sizeof r.sandbox);
    if (worker_start(k, s, "cove-loader", loader, &r, on_end, err) < 0)
        return -1;
    own_close(&s->disk_fd);
    volumes_let_go(s);
    return 0;
}

/* A sandbox that is saved under that id, or ends because it was: its disk may be the image's, and is mounted. */
static bool is_being_saved(struct keeper *k, const char *image)
{
    const struct sandbox *s;

    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));)
        if (strcmp(s->saved.id, image) == 0 ||
            (s->info.life == LIFE_PAUSING && strcmp(s->image, image) == 0))
            return true;
    return false;
}

static int check_load(struct keeper *k, const struct keeper_request *r,
                      const struct image_meta *meta, struct err *err)
{
    bool same = strcmp(r->image, r->sandbox) == 0;
    struct template t;

    if (strcmp(r->owner, meta->image.owner) != 0)
        return err_set(err, ERR_DENIED, "image '%s' belongs to another owner", r->image);
    if (is_being_saved(k, r->image))
        return err_set(err, ERR_STATE, "image '%s' is being worked on", r->image);
    if (same != !!(meta->image.flags & KEEPER_IMAGE_PAUSED))
        return err_set(err, ERR_STATE,
                       same ? "image '%s' is a snapshot: load it under an id of its own"
                            : "image '%s' is a paused sandbox: it can only be resumed",
                       r->image);
    if (template_open_tree(&t, k->host->templates_fd, meta->image.sandbox.template,
                           meta->template_inode, err) < 0)
        return err_wrap(err, "image '%s'", r->image);
    template_close(&t);
    if (same && memcmp(&r->limits, &(struct limits){ 0 }, sizeof r->limits) != 0)
        return err_set(err, ERR_INVALID, "limits: a paused sandbox has its own");
    return 0;
}

/* Processes need the kernel that they ran on; files do not, unless they are in a disk that only a guest reads. */
static int check_as(const struct keeper_request *r, const struct image_meta *meta, bool files_only,
                    struct err *err)
{
    uint32_t own = meta->image.sandbox.isolation;
    const struct driver *driver, *giver;

    if (!(r->flags & KEEPER_LOAD_AS) || r->isolation == own)
        return 0;
    driver = driver_find(r->isolation, err);
    giver = driver ? driver_find(own, err) : NULL;
    if (!giver)
        return -1;
    if (meta->image.flags & KEEPER_IMAGE_MEMORY && !files_only)
        return err_set(err, ERR_UNSUPPORTED,
                       "isolation: the image has processes of a sandbox with isolation '%s'",
                       isolation_name(own));
    return driver->takes_files && giver->gives_files
               ? 0
               : driver_lacks(driver, "begin on the files of another isolation", err);
}

/* In MiB, upwards. */
static uint64_t mib(uint64_t bytes)
{
    return (bytes + MiB - 1) / MiB;
}

/* What processes were made with, and would keep whatever is said now. */
static int check_fixed(const struct limits *limits, const struct limits *own, struct err *err)
{
    static const char *const fixed[] = { "files", "ptys" };

    for (size_t i = 0; i < limit_count; i++)
        for (size_t n = 0; n < ARRAY_LEN(fixed); n++)
            if (strcmp(limit_table[i].name, fixed[n]) == 0 &&
                limit_value(limits, &limit_table[i]) != limit_value(own, &limit_table[i]))
                return err_set(err, ERR_LIMIT,
                               "limit '%s': with its processes an image keeps its own", fixed[n]);
    return 0;
}

/* Whether what was saved fits into other limits than it had. */
int load_check_limits(struct keeper *k, const struct limits *limits, const struct image_meta *meta,
                      bool files_only, struct err *err)
{
    const struct limits *own = &meta->image.sandbox.limits;
    const struct keeper_image *image = &meta->image;
    uint64_t memory = image->memory_bytes + image->threads * THREAD_MEMORY + SPARE_MEMORY;
    uint64_t files = 0;

    for (uint32_t i = 0; i < meta->layers.count; i++)
        files += disk_bytes(&k->host->disks, meta->layers.number[i]);
    if (limits->disk_bytes < own->disk_bytes && limits->disk_bytes < files)
        return err_set(err, ERR_LIMIT, "limit 'disk': the image has files of %" PRIu64 " MiB",
                       mib(files));
    if (files_only || !(image->flags & KEEPER_IMAGE_MEMORY))
        return 0;
    if (limits->memory_bytes < own->memory_bytes && limits->memory_bytes < memory)
        return err_set(err, ERR_LIMIT, "limit 'memory': its processes need %" PRIu64 " MiB",
                       mib(memory));
    if (limits->processes < own->processes && limits->processes < image->threads)
        return err_set(err, ERR_LIMIT, "limit 'pids': the image has %u", image->threads);
    return check_fixed(limits, own, err);
}

static int check(struct keeper *k, const struct limits *limits, const struct image_meta *meta,
                 bool files_only, struct err *err)
{
    if (load_check_limits(k, limits, meta, files_only, err) < 0)
        return -1;
    if (!files_only && meta->image.flags & KEEPER_IMAGE_MEMORY && !criu_there())
        return err_set(err, ERR_UNSUPPORTED,
                       "there is no criu here, or it is too old: 'cove doctor' says more");
    return 0;
}

void load_layers(struct keeper *k, struct sandbox *s, const struct image_meta *meta)
{
    if (strcmp(s->image, s->info.id) != 0 && merge_needed(&meta->layers))
        merge_before(k, s);
    else
        disks_over_image(k, s, meta);
}

/* A slot for it, and its disks. */
static int begin(struct keeper *k, const struct keeper_request *r, const struct image_meta *meta,
                 bool files_only, const struct load_way *way, struct sandbox **ret, struct err *err)
{
    const struct driver *driver = driver_find(r->isolation, err);
    uint64_t build = 0;
    struct sandbox *s;

    if (!driver ||
        create_check(k, driver, r, strcmp(r->sandbox, meta->image.id) == 0, &build, err) < 0)
        return -1;
    s = r->flags & KEEPER_FLAG_TAKE ? pool_take(k, r, build, -1) : NULL;
    if (s) {
        *ret = s;
        return 0;
    }
    s = create_slot(k, driver, r, -1, err);
    if (!s)
        return -1;
    *ret = s;
    s->info.disk_kind = DISK_IMAGE;
    memcpy(s->image, meta->image.id, sizeof s->image);
    if (r->flags & KEEPER_FLAG_POOLED) {
        memcpy(s->origin, meta->image.id, sizeof s->origin);
        s->info.flags |= KEEPER_FLAG_LOADED;
    }
    s->image_memory = meta->image.flags & KEEPER_IMAGE_MEMORY && !files_only;
    s->template_inode = meta->template_inode;
    s->info.flags |= meta->image.sandbox.flags & KEEPER_FLAG_ROUTED;
    way->disks(k, s, meta);
    return 0;
}

int load_begin_by(struct keeper *k, const struct keeper_request *r, const struct image_meta *meta,
                  const struct load_way *way, struct sandbox **ret, struct err *err)
{
    struct keeper_request create = *r;
    bool same = strcmp(r->image, r->sandbox) == 0;

    if (check_load(k, r, meta, err) < 0 || check_as(r, meta, r->flags & KEEPER_LOAD_FILES, err) < 0)
        return -1;
    if (same)
        shrink_cancel(k, r->image);
    create.op = KEEPER_CREATE;
    create.isolation = r->flags & KEEPER_LOAD_AS ? r->isolation : meta->image.sandbox.isolation;
    limits_complete(&create.limits, &meta->image.sandbox.limits);
    if (way->check(k, &create.limits, meta, r->flags & KEEPER_LOAD_FILES, err) < 0)
        return -1;
    create.flags = (meta->image.sandbox.flags & KEEPER_FLAG_ROOT) | (r->flags & KEEPER_LOAD_POOL);
    memcpy(create.volumes, meta->volumes, sizeof create.volumes);
    memcpy(create.template, meta->image.sandbox.template, sizeof create.template);
    if (same) { /* it is who it was */
        memcpy(create.name, meta->image.sandbox.name, sizeof create.name);
        memcpy(create.hostname, meta->hostname, sizeof create.hostname);
    }
    return begin(k, &create, meta, r->flags & KEEPER_LOAD_FILES, way, ret, err);
}

int load_begin(struct keeper *k, const struct keeper_request *r, const struct image_meta *meta,
               struct sandbox **ret, struct err *err)
{
    static const struct load_way way = { check, load_layers };

    return load_begin_by(k, r, meta, &way, ret, err);
}

static bool runs(const struct journal_record *r)
{
    uint64_t started = 0;
    struct err err;

    return r->sandbox.life == LIFE_RUNNING && r->sandbox.pid > 0 &&
           sandbox_pid_started(r->sandbox.pid, &started, &err) == 0 && started == r->pid_started;
}

bool load_settle(struct keeper *k, struct sandbox *s, load_tell *tell)
{
    uint32_t slot = sandbox_slot(k, s);
    struct journal_record record;
    bool doomed = s->doomed, same = strcmp(s->image, s->info.id) == 0;
    struct err err;

    if (image_busy(&k->host->images, s->image))
        return false;
    if (!(same && image_unretire(&k->host->images, s->image)) &&
        journal_read(&k->journal, slot, &record, &err) == 1 && runs(&record)) {
        images_forget(&k->host->images, record.sandbox.id);
        host_discard_image(k, record.sandbox.id, ".old");
        sandbox_set_life(k, s, LIFE_STOPPING); /* for adoption to begin again */
        sandbox_set_life(k, s, LIFE_GONE);
        sysview_drop(&k->host->views, s->view);
        sandbox_adopt(k, slot, &record, true);
        s->doomed = doomed;
        if (s->info.life == LIFE_RUNNING && tell(k, s, same, &err) < 0)
            save_unconfined(k, s, &err);
        if (s->info.life == LIFE_RUNNING)
            ops_sandbox_started(k, s);
        return true;
    }
    err_set(&err, ERR_INTERNAL, "its loading was not finished");
    give_up(k, s, &err);
    return true;
}
