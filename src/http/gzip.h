/* gzip.h - bytes into gzip (RFC 1952), as they go.
 *
 * Owns:    zlib's state, about 260 KiB, from new to free. */
#ifndef COVE_HTTP_GZIP_H
#define COVE_HTTP_GZIP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct gzip;

struct gzip *gzip_new(struct err *err);
void gzip_free(struct gzip *gzip);

/* Where its output goes: -1 ends it. */
typedef int gzip_sink(void *context, const void *data, size_t len, struct err *err);
/* `end`: nothing follows, all that was held back goes out. */
int gzip_write(struct gzip *gzip, const void *data, size_t len, bool end, gzip_sink *sink,
               void *context, struct err *err);

#endif
