/* Volumes as drivers have them: mounts of a sandbox that begins, orders to the disk maker, and claims of those that are
 * paused to disk. Who may have which is the keeper's (keeper/volume.h). */
#include "base/own.h"
#include "driver/host.h"
#include "jail/mountfd.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

int volumes_order(struct keeper *k, struct sandbox *s, struct err *err)
{
    size_t count = volume_use_count(s->volumes);

    for (size_t i = 0; i < count; i++) {
        struct disk_order order = { .job = DISK_VOLUME_ATTACH, .tag = host_next_order(k->host) };

        memcpy(order.volume, s->volumes[i].volume, sizeof order.volume);
        s->volume_order[i] = order.tag;
        if (disks_order(&k->host->disks, &order, err) < 0)
            return -1;
    }
    return 0;
}

bool volumes_take(struct sandbox *s, uint32_t order, int mount_fd)
{
    size_t count = volume_use_count(s->volumes);

    for (size_t i = 0; i < count; i++) {
        if (s->volume_order[i] != order)
            continue;
        s->volume_order[i] = 0;
        s->volume_fd[i] = mount_fd;
        return true;
    }
    return false;
}

bool volumes_here(const struct sandbox *s)
{
    size_t count = volume_use_count(s->volumes);

    for (size_t i = 0; i < count; i++)
        if (s->volume_fd[i] < 0)
            return false;
    return true;
}

int volumes_map(const struct sandbox *s, int userns_fd, struct err *err)
{
    size_t count = volume_use_count(s->volumes);

    for (size_t i = 0; i < count; i++) {
        uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_IDMAP;

        if (s->volumes[i].flags & VOLUME_READ_ONLY)
            attributes |= MOUNT_ATTR_RDONLY;
        if (mountfd_set(s->volume_fd[i], attributes, (uint64_t) userns_fd) < 0)
            return err_sys(err, errno, "map the ids of volume '%s'", s->volumes[i].volume);
    }
    return 0;
}

void volumes_let_go(struct sandbox *s)
{
    for (size_t i = 0; i < VOLUMES_MAX; i++) {
        own_close(&s->volume_fd[i]);
        s->volume_order[i] = 0;
    }
}

int host_volumes_fd(const struct keeper *k)
{
    return k->host->disks.volumes_fd;
}

static int send_order(struct keeper *k, struct disk_order *order, const char *volume,
                      uint32_t *ret_order, struct err *err)
{
    (void) snprintf(order->volume, sizeof order->volume, "%s", volume);
    *ret_order = order->tag = host_next_order(k->host);
    return disks_order(&k->host->disks, order, err);
}

int host_volume_make(struct keeper *k, const char *volume, const struct limits *size,
                     uint32_t *ret_order, struct err *err)
{
    struct disk_order order = { .job = DISK_VOLUME_MAKE,
                                .bytes = size->disk_bytes,
                                .inodes = size->disk_inodes };

    return send_order(k, &order, volume, ret_order, err);
}

int host_volume_drop(struct keeper *k, const char *volume, uint32_t *ret_order, struct err *err)
{
    struct disk_order order = { .job = DISK_VOLUME_DROP };

    return send_order(k, &order, volume, ret_order, err);
}

/* What one image claims; NULL: not this volume. */
static const struct image_claim *claim_of(const struct image_entry *entry, const char *volume)
{
    for (size_t i = 0; entry->id[0] && i < VOLUMES_MAX && entry->claims[i].volume[0]; i++)
        if (strcmp(entry->claims[i].volume, volume) == 0)
            return &entry->claims[i];
    return NULL;
}

bool host_next_claim(const struct keeper *k, const char *volume, uint32_t *cursor,
                     struct host_claim *ret)
{
    const struct images *images = &k->host->images;

    while (images->count > 0 && *cursor < IMAGES_MAX) {
        const struct image_entry *entry = &images->entry[(*cursor)++];
        const struct image_claim *claim = claim_of(entry, volume);

        if (!claim)
            continue;
        *ret = (struct host_claim){ .sandbox = entry->id, .writes = claim->writes };
        return true;
    }
    return false;
}

bool host_claim_use(const struct keeper *k, const char *sandbox, const char *volume,
                    struct volume_use *ret)
{
    struct image_meta meta;
    struct err ignored;

    if (image_read(&k->host->images, sandbox, &meta, &ignored) < 0)
        return false;
    for (size_t i = 0; i < volume_use_count(meta.volumes); i++)
        if (strcmp(meta.volumes[i].volume, volume) == 0) {
            *ret = meta.volumes[i];
            return true;
        }
    return false;
}
