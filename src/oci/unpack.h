/* unpack.h - one layer of an image, as it arrives: decompressed, hashed, read as tar, merged.
 *
 * The compression is told by the first bytes, whatever the manifest says: gzip, zstd or none.
 *
 * Never:   makes more than UNPACK_RATIO times what came in, beyond UNPACK_FREE bytes; uses more than UNPACK_WINDOW of memory for zstd. */
#ifndef COVE_OCI_UNPACK_H
#define COVE_OCI_UNPACK_H

#include "base/err.h"
#include "base/sha256.h"
#include "oci/merge.h"

#include <stddef.h>

#define UNPACK_RATIO      256u
#define UNPACK_FREE       (16ull << 20)
#define UNPACK_WINDOW_LOG 27 /* 128 MiB */

struct unpack;

/* A layer above those that the merge has. NULL: no memory. */
struct unpack *unpack_new(struct merge *merge, struct err *err);
void unpack_free(struct unpack *unpack);

int unpack_feed(struct unpack *unpack, const void *data, size_t len, struct err *err);
/* The layer ended: -1 if that is too early. ret_diff: the digest of the decompressed tar, as hex digits. */
int unpack_end(struct unpack *unpack, char ret_diff[SHA256_HEX], struct err *err);

#endif
