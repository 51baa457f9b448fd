/* gunzip.h - gzip bodies (RFC 1952), decoded as they arrive; one member or several, nothing behind them.
 *
 * Owns:    zlib's state, about 40 KiB, from new to free.
 * Never:   makes more than GUNZIP_RATIO times what came in, once the output is beyond GUNZIP_FREE: a
 *          body of a kilobyte must not cost a gigabyte. How large a body may be otherwise is
 *          the caller's to say. */
#ifndef COVE_HTTP_GUNZIP_H
#define COVE_HTTP_GUNZIP_H

#include "base/err.h"

#include <stddef.h>

#define GUNZIP_RATIO 256u                /* deflate itself ends at 1032 */
#define GUNZIP_FREE  (16u * 1024 * 1024) /* bytes of output without a look at the ratio */

struct gunzip;

struct gunzip *gunzip_new(struct err *err);
void gunzip_free(struct gunzip *gunzip);

/* Reads on: from `in` into `out`, both as far as there is room. 0; or -1: ERR_INVALID when it is no gzip or
 * a damaged one, ERR_TOO_BIG beyond the ratio. ret_made 0 with all of the input used: more is needed. */
int gunzip_read(struct gunzip *gunzip, const void *in, size_t len, size_t *ret_used, void *out,
                size_t size, size_t *ret_made, struct err *err);
/* The input ended: 0 if that is where it may. */
int gunzip_end(const struct gunzip *gunzip, struct err *err);

#endif
