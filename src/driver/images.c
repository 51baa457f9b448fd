/* Images as all drivers share them: requests about them, and the removal of those that are spent. An image says by which
 * driver it was written; that one loads it. */
#include "base/io.h"
#include "driver/disks.h"
#include "driver/host.h"
#include "driver/shrink.h"
#include "driver/worker.h"
#include "keeper/sandbox.h"

#include <string.h>

#define CLEAR_MS      500   /* who waited for a sandbox has used it by then */
#define CLEAR_MOST_MS 10000 /* where something always starts */

bool host_has_image(const struct keeper *k, const char *image)
{
    return images_have(&k->host->images, image);
}

bool host_has_image_or_retired(const struct keeper *k, const char *image)
{
    return images_have(&k->host->images, image) || image_retired(&k->host->images, image);
}

/* As it is now: with the layers of others that are there only for it. */
static void complete(const struct keeper *k, struct keeper_image *image)
{
    const struct image_entry *entry = images_entry(&k->host->images, image->id);

    image->used_s = image_used(&k->host->images, image->id);
    if (k->host->shrink.pid && strcmp(k->host->shrink.image, image->id) == 0)
        image->flags |= KEEPER_IMAGE_SHRINKING;
    for (uint32_t i = 1; entry && i < entry->layers.count; i++)
        if (entry->charged & 1u << i)
            image->bytes += disk_bytes(&k->host->disks, entry->layers.number[i]);
}

int host_image(const struct keeper *k, const char *image, struct keeper_image *ret, struct err *err)
{
    struct image_meta meta;

    if (image_read(&k->host->images, image, &meta, err) < 0)
        return -1;
    *ret = meta.image;
    complete(k, ret);
    return 0;
}

void host_images(const struct keeper *k, uint32_t cursor, struct keeper_reply *reply)
{
    for (uint32_t i = cursor; i < IMAGES_MAX; i++) {
        struct err gone;

        if (!k->host->images.entry[i].id[0])
            continue;
        if (reply->count == KEEPER_LIST_MAX) {
            reply->next = i;
            return;
        }
        if (host_image(k, k->host->images.entry[i].id, &reply->image[reply->count], &gone) == 0)
            reply->count++;
    }
}

int host_drop_image(struct keeper *k, const char *image, struct err *err)
{
    struct image_meta meta;
    /* One that was tampered with goes, too; what it was made of is found by the sweep at the next start. */
    bool whole = image_read(&k->host->images, image, &meta, err) == 0;

    if (!whole && err->kind == ERR_NO_IMAGE)
        return -1;
    if (image_busy(&k->host->images, image) || sandbox_of_image(k, image))
        return err_set(err, ERR_STATE, "image '%s' is being worked on", image);
    err->kind = ERR_NONE;
    shrink_cancel(k, image);
    host_discard_image(k, image, "");
    images_forget(&k->host->images, image);
    if (whole)
        host_release_disks(k, &meta.layers, NULL);
    return 0;
}

int host_compress_image(struct keeper *k, const char *image, struct err *err)
{
    return shrink_begin(k, image, err);
}

int host_load(struct keeper *k, const struct keeper_request *r, struct sandbox **ret,
              struct err *err)
{
    const struct driver *driver;
    struct image_meta meta;

    if (image_read(&k->host->images, r->image, &meta, err) < 0)
        return -1;
    driver = driver_find(meta.image.sandbox.isolation, err);
    if (!driver)
        return err_wrap(err, "image '%s'", r->image);
    return driver->load ? driver->load(k, r, &meta, ret, err) : driver_lacks(driver, "load", err);
}

void host_discard_image(struct keeper *k, const char *image, const char *suffix)
{
    image_discard(&k->host->images, image, suffix);
    k->host->clear_ms = io_now_ms();
}

void host_clear_later(struct keeper *k)
{
    if (!k->host
             ->clear_ms) /* or resumes that follow each other closely would put it off for ever */
        k->host->clear_ms = io_now_ms() + CLEAR_MS;
}

int images_tick(struct keeper *k)
{
    uint64_t clear_ms = k->host->clear_ms, now;

    if (!clear_ms)
        return -1;
    now = io_now_ms();
    if (now < clear_ms)
        return (int) (clear_ms - now);
    if (k->starting && now < clear_ms + CLEAR_MOST_MS)
        return (int) (clear_ms + CLEAR_MOST_MS - now); /* or at the end of what starts, an event */
    k->host->clear_ms = 0;
    worker_clear_images(k);
    return -1;
}
