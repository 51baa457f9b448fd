/* How many are merged: at least half of them, and from there on as long as the next one is smaller than all above it together. A
 * first layer of gigabytes under many small ones is not copied each time; what is copied has doubled since it
 * was copied last, so that of n bytes each is copied log n times at most. */
#include "driver/merge.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "driver/disks.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"

#include <string.h>

static uint32_t merge_layers = LAYERS_MAX;

void merge_from(uint32_t layers)
{
    merge_layers = layers;
}

bool merge_needed(const struct layers *layers)
{
    return layers->count >= merge_layers;
}

static uint32_t choose_count(const struct keeper *k, const struct layers *layers)
{
    uint32_t count = 0;
    uint64_t above = 0;

    while (count < layers->count) {
        uint64_t bytes = disk_bytes(&k->host->disks, layers->number[count]);

        if (count > layers->count / 2 && bytes > above)
            break;
        above += bytes;
        count++;
    }
    return count;
}

/* The image as it will be, with the new disk in the place of the first `count`. */
static void relayer(struct layers *layers, uint32_t count, uint64_t number)
{
    struct layers old = *layers;

    *layers = (struct layers){ .number = { number }, .count = old.count - count + 1 };
    memcpy(layers->number + 1, old.number + count, (old.count - count) * sizeof old.number[0]);
}

static int order(struct keeper *k, const char *image, struct err *err)
{
    struct disk_order order = { .job = DISK_MERGE, .tag = host_next_order(k->host) };
    struct image_meta meta;
    uint32_t all;

    if (image_read(&k->host->images, image, &meta, err) < 0 ||
        disk_new_number(&order.number, err) < 0)
        return -1;
    all = meta.layers.count;
    order.layers.count = choose_count(k, &meta.layers);
    memcpy(order.layers.number, meta.layers.number,
           order.layers.count * sizeof meta.layers.number[0]);
    for (uint32_t i = 1; i < order.layers.count; i++) /* as large as they are, at most */
        meta.image.bytes += disk_bytes(&k->host->disks, order.layers.number[i]);
    relayer(&meta.layers, order.layers.count, order.number);
    if (image_prepare(&k->host->images, image, &meta, err) < 0 ||
        disks_order(&k->host->disks, &order, err) < 0)
        return -1;
    k->host->merging = (struct merging){ .order = order.tag, .number = order.number };
    memcpy(k->host->merging.image, meta.image.id, sizeof k->host->merging.image);
    log_line(LOG_INFO, "merging image=%s layers=%u of=%u", image, order.layers.count, all);
    return 0;
}

/* Everybody who waits for this image. */
static void resume(struct keeper *k, const char *image, const struct image_meta *meta,
                   const struct err *err)
{
    struct sandbox *s;

    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));) {
        if (s->info.life != LIFE_NEW || !s->merging || strcmp(s->image, image) != 0)
            continue;
        s->merging = false;
        s->begun_us = io_now_us();
        if (meta)
            disks_over_image(k, s, meta);
        else
            sandbox_fail(k, s, err);
    }
}

/* The next with a waiting caller. */
static void next(struct keeper *k)
{
    struct sandbox *s;

    for (uint32_t at = 0; !k->host->merging.order && (s = keeper_next_alive(k, &at));) {
        char image[KEEPER_NAME_MAX];
        struct err err;

        if (s->info.life != LIFE_NEW || !s->merging)
            continue;
        memcpy(image, s->image, sizeof image);
        if (order(k, image, &err) < 0)
            resume(k, image, NULL, &err);
    }
}

void merge_before(struct keeper *k, struct sandbox *s)
{
    s->merging = true;
    next(k);
}

static int use(struct keeper *k, const char *image, struct image_meta *ret, struct err *err)
{
    struct image_meta old;

    if (image_read(&k->host->images, image, &old, err) < 0 ||
        image_swap(&k->host->images, image, err) < 0 ||
        image_read(&k->host->images, image, ret, err) < 0)
        return -1;
    (void) images_add(&k->host->images, image, &ret->layers, NULL);
    host_release_disks(k, &old.layers, NULL);
    return 0;
}

void merge_got(struct keeper *k, const struct disk_answer *answer)
{
    char image[KEEPER_NAME_MAX];
    struct err err = answer->err;
    struct image_meta meta;
    bool merged;

    if (answer->tag != k->host->merging.order) {
        disks_remove(&k->host->disks, answer->number);
        return;
    }
    memcpy(image, k->host->merging.image, sizeof image);
    merged = err.kind == ERR_NONE && use(k, image, &meta, &err) == 0;
    k->host->merging.order = 0;
    if (!merged) {
        log_line(LOG_WARNING, "image=%s %s", image, err.msg);
        disks_remove(&k->host->disks, answer->number);
    }
    resume(k, image, merged ? &meta : NULL, &err);
    next(k);
}

void merge_lost(struct keeper *k)
{
    if (k->host->merging.order)
        disks_remove(&k->host->disks, k->host->merging.number);
    k->host->merging.order = 0;
}
