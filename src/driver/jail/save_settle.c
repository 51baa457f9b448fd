/* What became of a save whose worker, or whose keeper, died. The image's name says how far it came: whole or not; criu
 * and the worker hold its lock for as long as they are at it. */
#include "driver/jail/save.h"

#include "base/io.h"
#include "base/log.h"
#include "driver/jail/load.h"
#include "driver/jail/posture.h"
#include "driver/worker.h"
#include "keeper/life.h"
#include "keeper/ops.h"
#include "keeper/sandbox.h"

#include <poll.h>
#include <string.h>

/* A keeper that was started since has it in its table, too, with the disk that is the sandbox's. */
static void discard(struct keeper *k, const char *image)
{
    host_discard_image(k, image, "");
    images_forget(&k->host->images, image);
}

bool save_took_disk(const struct sandbox *s, const struct layers *layers)
{
    return layers->number[0] == s->layers.number[0];
}

void save_became(struct keeper *k, struct sandbox *s, const struct layers *layers)
{
    bool paused = s->saved.flags & KEEPER_IMAGE_PAUSED;

    if (s->doomed) { /* it was to be destroyed, not to be kept */
        discard(k, s->saved.id);
        s->saved.id[0] = '\0';
        sandbox_stop(k, s, "destroyed");
        return;
    }
    (void) images_add(&k->host->images, s->saved.id, layers, paused ? s->volumes : NULL);
    s->layers.number[0] = 0;
    s->image[0] = '\0';
    sandbox_stop(k, s, paused ? "paused to disk" : "sealed");
}

/* Whether its image, which is whole, is the sandbox; -1: not clear yet. criu is gone. A guest stands still from before the image has its
 * name until it is told to continue, and then there is no such image. */
static int image_counts(struct sandbox *s)
{
    struct pollfd pid = { .fd = s->pid.fd, .events = POLLIN };

    /* The last for one that died meanwhile, of which the loop has not heard yet. */
    if (s->pid.fd < 0 || s->driver->guest || sandbox_pid_dying(s->info.pid) ||
        poll(&pid, 1, 0) == 1)
        return 1;
    if (!s->settle_ms)
        s->settle_ms = io_now_ms();
    /* Killed ones are seen to die by now; those that criu let go when it lost whom it worked for are ahead of the image. */
    return io_now_ms() < s->settle_ms + SAVE_DYING_MS ? -1 : 0;
}

#define PUT_BACKS_MOST 5u /* a worker that dies each time would be started for ever */

static void resume(struct keeper *k, struct sandbox *s)
{
    struct keeper_image image = s->saved;
    struct err err;

    memset(&s->saved, 0, sizeof s->saved);
    s->put_backs = 0;
    sandbox_back(k, s);
    err_set(&err, ERR_INTERNAL, "the process that saved it died");
    ops_saved(k, s, image.id[0] ? &image : NULL, image.id[0] ? NULL : &err);
}

void save_unconfined(struct keeper *k, struct sandbox *s, const struct err *why)
{
    log_line(LOG_ERROR, "unconfined sandbox=%s %s", s->info.id, why->msg);
    err_set(&s->failure, ERR_NO_SANDBOX,
            "sandbox '%s' was ended, because its confinement was in doubt: %.200s", s->info.id,
            why->msg);
    s->image[0] = '\0';
    sandbox_stop(k, s, "its confinement was in doubt");
    (void) cgroup_kill(&k->host->cgroups, s->cgroup);
}

static void on_continued(struct keeper *k, struct sandbox *s, struct worker_result *r)
{
    if (r->err.kind != ERR_NONE) {
        save_unconfined(k, s, &r->err);
        return;
    }
    if (s->filter_form == FILTER_UNKNOWN)
        s->filter_form = FILTER_QUIET; /* or it would not be here */
    resume(k, s);
}

/* No worker is left: its agent is put back as it was, and it stays PAUSING until that is so. */
static void put_back(struct keeper *k, struct sandbox *s, worker_deed *deed)
{
    struct err err;

    if (s->pid.fd < 0) { /* it died: sandbox_back says so */
        resume(k, s);
        return;
    }
    if (++s->put_backs > PUT_BACKS_MOST) {
        err_set(&err, ERR_UNAVAILABLE, "%u processes that were to put its agent back died",
                PUT_BACKS_MOST);
        save_unconfined(k, s, &err);
        return;
    }
    if (s->listener < 0)
        s->listener = posture_listener(s);
    if (s->listener >= 0)
        s->filter_form = FILTER_LISTENS;
    if (s->filter_form == FILTER_LISTENS && s->listener < 0) {
        err_set(&err, ERR_UNAVAILABLE, "its listener of refused calls is lost");
        save_unconfined(k, s, &err);
        return;
    }
    /* One that was frozen freezes again, but not before its agent knows that the sandbox continues. */
    if (cgroup_freeze(&k->host->cgroups, s->cgroup, false, &err) < 0 ||
        worker_start(k, s, "cove-saver", deed, NULL, on_continued, &err) < 0)
        save_unconfined(k, s, &err);
}

/* It was destroyed while it was saved: what it was to become goes, too. A snapshot that is whole is not the sandbox, and stays. */
static void settle_doomed(struct keeper *k, struct sandbox *s, const char *image, bool stop)
{
    struct image_meta meta;
    struct err err;

    memset(&s->saved, 0, sizeof s->saved);
    if (stop) {
        discard(k, image);
    } else if (image_read(&k->host->images, image, &meta, &err) == 0) {
        (void) images_add(&k->host->images, image, &meta.layers, NULL);
        s->saved = meta.image;
    }
    host_discard_image(k, image, ".new");
    k->sweep = true; /* a copy of its disk may be there */
    s->image[0] = '\0';
}

bool save_settle(struct keeper *k, struct sandbox *s, worker_deed *deed)
{
    const char *image = s->image[0] ? s->image : s->info.id;
    bool stop = strcmp(image, s->info.id) == 0, whole;
    struct image_meta meta;
    struct err err;
    int counts;

    if (image_busy(&k->host->images, image))
        return false;
    whole = image_read(&k->host->images, image, &meta, &err) == 0;
    stop = stop || (whole && save_took_disk(s, &meta.layers)); /* sealed */
    if (s->doomed) {
        settle_doomed(k, s, image, stop);
        return true;
    }
    counts = whole && stop ? image_counts(s) : 0;
    if (counts < 0)
        return false;
    k->sweep = true; /* a copy of its disk may be there */
    if (counts) {
        s->saved = meta.image;
        save_became(k, s, &meta.layers);
        return true;
    }
    if (whole && stop)
        discard(k, image);
    else if (whole)
        (void) images_add(&k->host->images, image, &meta.layers, NULL);
    host_discard_image(k, image, ".new");
    memset(&s->saved, 0, sizeof s->saved);
    if (whole && !stop)
        s->saved = meta.image;
    put_back(k, s, deed);
    return true;
}
