/* layers.h - the file systems of templates that are images: each is mounted once, read-only, at /layers/<place> of the keeper's own root, and every
 * sandbox gets a clone of that mount. One mount is one page cache.
 *
 * The files are made by cove-import alone (src/erofs). No tenant hands the kernel a file system. */
#ifndef COVE_DRIVER_LAYERS_H
#define COVE_DRIVER_LAYERS_H

#include "driver/host.h"

/* Of a template that is an image, template->root_fd, and each of below_fd, becomes the root of its mounted file system; others stay as
 * they are.
 * ERR_UNSUPPORTED: this kernel has no EROFS. */
int layers_mount(struct host *host, struct template *template, struct err *err);

/* Unmounts file systems whose file was removed. Sandboxes that have a clone keep theirs. */
void layers_release(struct host *host);

#endif
