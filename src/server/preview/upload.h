/* upload.h - the body of a request into a file of a sandbox, whatever the surface.
 *
 * One piece at a time, at most UPLOAD_PIECE bytes of memory. A body of a known length on a plain connection goes from the client's
 * connection to the agent's by way of a pipe, and no byte is copied here.
 *
 * Callers: v1_data.c, dialects. */
#ifndef COVE_SERVER_PREVIEW_UPLOAD_H
#define COVE_SERVER_PREVIEW_UPLOAD_H

#include "server/ops/ops.h"
#include "server/serve/exchange.h"

#define UPLOAD_PIECE 65536

/* What is left of the body, to its end. The stream is one of files_write_open. */
int upload_body(struct exchange *x, struct stream *stream, struct err *err);

#endif
