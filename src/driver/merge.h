/* merge.h - images whose layers became too many.
 *
 * A fork stands on the layers of its image, and its own image has one more: a chain of forks grows. An image with as many
 * as can be is made shorter before the next one is loaded from it: the disk maker merges its upper layers into a new
 * one, and the image has that in their place. What is merged is never written, so no sandbox stands still for it; who
 * runs on the old layers keeps them. One merge at a time; who needs another waits.
 *
 * Callers: disks.c, main.c (what the maker answers). */
#ifndef COVE_DRIVER_MERGE_H
#define COVE_DRIVER_MERGE_H

#include "driver/host.h"

/* From how many layers on; LAYERS_MAX, if not said otherwise. */
void merge_from(uint32_t layers);
/* Whether a disk over these would be one too many. */
bool merge_needed(const struct layers *layers);

/* The sandbox is NEW and of sandbox->image: it continues with disks_over_image, or fails. */
void merge_before(struct keeper *keeper, struct sandbox *sandbox);

void merge_got(struct keeper *keeper, const struct disk_answer *answer);
/* The maker is gone; orders that are NEW fail with it. */
void merge_lost(struct keeper *keeper);

#endif
