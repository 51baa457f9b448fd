/* The disks of sandboxes: which are whose, and the answers of the process that makes them (disk/disk_maker.h).
 *
 * A sandbox that is NEW waits for its own disk, for the disks below it (bases.c) and for its volumes. When all are there
 * its driver starts it. */
#include "driver/disks.h"

#include "base/io.h"
#include "base/own.h"
#include "driver/bases.h"
#include "driver/merge.h"
#include "keeper/create.h"
#include "keeper/life.h"
#include "keeper/ops.h"

#include <string.h>

/* ---- which are whose ---- */

static bool has_layer(const struct layers *layers, uint64_t number)
{
    for (uint32_t i = 0; i < layers->count; i++)
        if (layers->number[i] == number)
            return true;
    return false;
}

static bool image_has_disk(const struct keeper *k, uint64_t number)
{
    size_t left = k->host->images.count; /* the table is long, and mostly empty */

    for (size_t i = 0; i < IMAGES_MAX && left > 0; i++) {
        if (!k->host->images.entry[i].id[0])
            continue;
        if (has_layer(&k->host->images.entry[i].layers, number))
            return true;
        left--;
    }
    return false;
}

bool host_disk_used(const struct keeper *k, uint64_t number, const struct sandbox *but)
{
    const struct sandbox *s;

    if (k->host->merging.order && k->host->merging.number == number)
        return true;
    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));)
        if (s != but && has_layer(&s->layers, number))
            return true;
    return image_has_disk(k, number);
}

void host_release_disks(struct keeper *k, const struct layers *layers, const struct sandbox *but)
{
    for (uint32_t n = 0; n < layers->count; n++) {
        uint64_t number = layers->number[n];

        if (!number || host_disk_used(k, number, but))
            continue;
        bases_drop(k, number);
        disks_remove(&k->host->disks, number);
    }
}

/* Whether a disk below its own counts for an image (images.charged), or for a sandbox before it. */
bool host_disk_counts_elsewhere(const struct keeper *k, const struct sandbox *s, uint64_t number)
{
    const struct sandbox *other;

    if (image_has_disk(k, number))
        return true;
    for (uint32_t at = 0; (other = keeper_next_alive(k, &at)) && other < s;)
        if (has_layer(&other->layers, number))
            return true;
    return false;
}

/* ---- of a sandbox that begins ---- */

/* Loaded from the image that it is, without its processes. */
static bool is_resumed(const struct sandbox *s)
{
    return s->image[0] && strcmp(s->image, s->info.id) == 0;
}

/* Takes the descriptor. NULL: no create waits for it any more. */
static struct sandbox *give_to_who_ordered(struct keeper *k, uint32_t order, int mount_fd)
{
    struct sandbox *s;

    for (uint32_t at = 0; (s = keeper_next_attended(k, &at));) {
        if (s->info.life != LIFE_NEW)
            continue;
        if (s->disk_order == order) {
            s->disk_fd = mount_fd;
            return s;
        }
        if (volumes_take(s, order, mount_fd))
            return s;
    }
    return NULL;
}

/* Its disk and its volumes are here. */
static bool complete(const struct sandbox *s)
{
    return (s->info.disk_kind == DISK_MEMORY || s->disk_fd >= 0) && volumes_here(s);
}

static bool disks_got(struct keeper *k, uint32_t order, int mount_fd, const struct err *why)
{
    struct sandbox *s = give_to_who_ordered(k, order, mount_fd);

    if (!s)
        return false;
    if (mount_fd < 0) {
        sandbox_fail(k, s, why);
        return true;
    }
    disks_continue(k, s);
    return true;
}

void disks_continue(struct keeper *k, struct sandbox *s)
{
    struct err err;
    int bases;

    if (!complete(s))
        return;
    bases = bases_open(k, s, &err);
    if (bases == 0)
        return;
    create_end_step(s, STEP_DISK);
    if (bases < 0)
        sandbox_fail(k, s, &err);
    else
        s->driver->start(k, s);
}

static void order(struct keeper *k, struct sandbox *s, int have_disk, struct err *err)
{
    if (have_disk < 0 || volumes_order(k, s, err) < 0)
        sandbox_fail(k, s, err);
    else
        disks_continue(k, s);
}

void disks_begin(struct keeper *k, struct sandbox *s)
{
    int have_disk = 1;
    struct err err;

    s->layers.count = 1;
    s->disk_order = host_next_order(k->host);
    if (s->info.disk_kind == DISK_IMAGE)
        have_disk = disks_take(&k->host->disks, &s->info.limits, s->disk_order,
                               &s->layers.number[0], &s->disk_fd, &err);
    order(k, s, have_disk, &err);
}

void disks_open_own(struct keeper *k, struct sandbox *s)
{
    struct err err;

    s->disk_order = host_next_order(k->host);
    order(k, s, disks_open(&k->host->disks, s->layers.number[0], false, s->disk_order, &err), &err);
}

void disks_over_image(struct keeper *k, struct sandbox *s, const struct image_meta *meta)
{
    struct err err;
    int have_disk;

    s->disk_order = host_next_order(k->host);
    if (is_resumed(s)) {
        s->info.created_ms = meta->image.sandbox.created_ms;
        s->layers = meta->layers;
        have_disk = disks_open(&k->host->disks, s->layers.number[0], false, s->disk_order, &err);
    } else { /* a disk of its own, over those of the image */
        s->layers.count = meta->layers.count + 1;
        memcpy(s->layers.number + 1, meta->layers.number,
               meta->layers.count * sizeof meta->layers.number[0]);
        have_disk = disks_take(&k->host->disks, &s->info.limits, s->disk_order,
                               &s->layers.number[0], &s->disk_fd, &err);
    }
    order(k, s, have_disk, &err);
}

/* ---- the maker ---- */

static void on_disk(struct keeper *k, struct watch *watch)
{
    struct disk_answer answer;
    struct sandbox *s;
    int fd = -1, rc;
    struct err err;

    (void) watch;
    rc = disks_receive(&k->host->disks, &answer, &fd, &err);
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
        !disks_got(k, answer.tag, fd, &answer.err)) {
        own_close(&fd);
        if (answer.job == DISK_NEW)
            disks_remove(&k->host->disks, answer.number);
    }
    if (rc < 0) {
        /* Its orders died with it. The old descriptor left epoll when it was closed. */
        k->host->disks_watch.fd = -1;
        ops_orders_lost(k, &err);
        bases_lost(k, &err);
        merge_lost(k);
        for (uint32_t at = 0; (s = keeper_next_attended(k, &at));)
            if (s->info.life == LIFE_NEW)
                sandbox_fail(k, s, &err);
    }
}

/* Keeps a maker at work; what fails is tried again after a pause. */
void disks_tend(struct keeper *k)
{
    struct err err;

    if (k->host->disks.sock < 0 && disks_restart(&k->host->disks, &err) == 0 &&
        keeper_watch(k, &k->host->disks_watch, k->host->disks.sock, on_disk, &err) < 0)
        k->host->disks.sock = -1;
}

int disks_open_watch(struct keeper *k, struct err *err)
{
    return keeper_watch(k, &k->host->disks_watch, k->host->disks.sock, on_disk, err);
}
