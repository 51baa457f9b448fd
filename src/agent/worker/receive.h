/* receive.h - the content of a file, from the caller's DATA frames into the file.
 *
 * Bytes are gathered before they are written. A write each time that some come would be an event each time for
 * those who watch the file: 300 kB came in 30 pieces. A caller that sends now and then finds in the file, a second
 * later, what was sent.
 *
 * Large frames are gathered in a pipe, by splice: the pages that came over the connection are copied once, into the
 * file. Small frames, files that are appended to, and kernels and file systems that cannot do it take the way through
 * the memory of the worker. Either has something or the other, never both: the order of the bytes.
 *
 * Callers: file.c, unpack.c. */
#ifndef COVE_AGENT_WORKER_RECEIVE_H
#define COVE_AGENT_WORKER_RECEIVE_H

#include "agent/worker/worker.h"

/* DATA frames of the caller into fd until DATA_END. `path` is for messages. ret_bytes is always set. */
int receive_file(struct worker *w, int fd, const char *path, uint64_t *ret_bytes, struct err *err);

#endif
