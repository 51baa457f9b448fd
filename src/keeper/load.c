#include "keeper/load.h"

#include "base/own.h"
#include "keeper/create.h"
#include "keeper/life.h"
#include "keeper/loader.h"
#include "keeper/ops.h"
#include "keeper/sandbox.h"
#include "keeper/shrink.h"
#include "keeper/volume.h"
#include "keeper/worker.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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
    if (worker_start(k, s, "cove-loader", loader_run, &r, on_end, err) < 0)
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
    if (same)
        shrink_cancel(k, r->image);
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
