/* disks.h - the disks of sandboxes that begin, and the answers of the process that makes them.
 *
 * Callers: drivers, bases.c, merge.c, host.c. */
#ifndef COVE_DRIVER_DISKS_H
#define COVE_DRIVER_DISKS_H

#include "driver/host.h"

/* Orders a blank disk of sandbox->info.disk_kind, and its volumes. When all are there: driver->start(). */
void disks_begin(struct keeper *keeper, struct sandbox *sandbox);
/* The same over those of sandbox->image: the disk that is the image's, or a blank one over it. */
void disks_over_image(struct keeper *keeper, struct sandbox *sandbox,
                      const struct image_meta *meta);
/* The same with the disk that is there already: the first of sandbox->layers. */
void disks_open_own(struct keeper *keeper, struct sandbox *sandbox);
/* Starts the sandbox, if everything it waited for is there. */
void disks_continue(struct keeper *keeper, struct sandbox *sandbox);

/* Whether any sandbox, but one, or any image has that disk. */
bool host_disk_used(const struct keeper *keeper, uint64_t number, const struct sandbox *but);
/* Whether a disk below a sandbox's own counts for an image (images.charged), or for a sandbox before it. */
bool host_disk_counts_elsewhere(const struct keeper *keeper, const struct sandbox *sandbox,
                                uint64_t number);
/* The disks of a sandbox or image that goes, unless another sandbox or image has them. */
void host_release_disks(struct keeper *keeper, const struct layers *layers,
                        const struct sandbox *but);

/* Watches the disk maker, and starts another when it is gone. */
int disks_open_watch(struct keeper *keeper, struct err *err);
void disks_tend(struct keeper *keeper);

#endif
