/* shrink.h - images that are compressed on request, one at a time, by a process of the lowest priority (cove-shrink).
 *
 * It may be killed at any moment, and is: when the image is needed, or the keeper ends.
 *
 * Owns:    keeper->shrink.
 * Callers: ops_image.c, load.c. */
#ifndef COVE_DRIVER_SHRINK_H
#define COVE_DRIVER_SHRINK_H

#include "driver/host.h"

/* 1: begun, and told by ops_shrunk; 0: it is compressed already. ERR_TOO_MANY: another one is being compressed. */
int shrink_begin(struct keeper *keeper, const char *image, struct err *err);
/* The image is wanted: the process that compresses it ends. */
void shrink_cancel(struct keeper *keeper, const char *image);

#endif
