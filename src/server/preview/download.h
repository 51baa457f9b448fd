/* download.h - the answer to a GET or HEAD for a file of a sandbox, whatever the surface.
 *
 * ETag and Last-Modified; If-None-Match and If-Modified-Since (304); Range and If-Range (206, 416). The content
 * goes through one piece at a time. Header lines that the surface adds go along (exchange_add_header).
 *
 * Callers: v1_data.c, signed URLs, dialects. */
#ifndef COVE_SERVER_PREVIEW_DOWNLOAD_H
#define COVE_SERVER_PREVIEW_DOWNLOAD_H

#include "server/ops/ops.h"
#include "server/serve/exchange.h"

int download_reply(struct exchange *x, const struct ops_file *file, struct err *err);

#endif
