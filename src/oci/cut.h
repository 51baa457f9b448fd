/* cut.h - an image as several files, one over the other: images with the same layers at the bottom have the same files there.
 *
 * Where an image is cut depends on nothing but the layers below the cut. A file above a cut has what its layers changed, in the form of
 * overlayfs: directories that lead to changes, with the owner and mode that they have now, and a character device with the number 0
 * for a name that is gone. A file with several names is written with all of them if one changed, content included, so that no name
 * of it is another file than the rest.
 *
 * Callers: src/importer. */
#ifndef COVE_OCI_CUT_H
#define COVE_OCI_CUT_H

#include "base/err.h"
#include "oci/merge.h"

#include <stdbool.h>
#include <stdint.h>

#define CUT_BYTES (32ull << 20) /* of content, at least, in a file that others stand on */

/* Whether an image is cut above a layer: `cuts` are below, `bytes` arrived since the last one; `last`: no layer follows. An image that is
 * not cut below its last layer stays one file. Pure. */
bool cut_above(unsigned cuts, uint64_t bytes, bool last);

/* Writes what changed since the last cut, and finishes the file: as erofs_finish(). */
int cut_finish(struct merge *merge, const unsigned char uuid[16], struct erofs_size *ret,
               struct err *err);
/* What comes from now on goes into this file, over those that are finished, whose descriptors must stay open. */
int cut_next(struct merge *merge, int image_fd, struct err *err);

/* Of merge_done(). */
void cut_done(struct merge *merge);

#endif
