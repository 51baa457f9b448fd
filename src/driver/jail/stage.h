/* stage.h - what criu is to find in a loader's mount namespace: a sandbox's root at /new, its own files at /image.
 *
 * Owns:    nothing: the mounts go with the loader.
 * Callers: loader.c. */
#ifndef COVE_DRIVER_JAIL_STAGE_H
#define COVE_DRIVER_JAIL_STAGE_H

#include "driver/worker.h"

/* The root with the sandbox's disks and volumes, by the id map of its slot. */
int stage_root(struct worker *worker, const struct template *template, struct err *err);

/* criu's files (memory_fd, replaced by a descriptor of the place), with the id map of this slot over the one saved. */
int stage_image(const struct worker *worker, const struct image_meta *meta, int *memory_fd,
                struct err *err);

#endif
