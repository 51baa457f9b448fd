/* pack.h - a tree as a stream of entries, and a stream of entries as a tree.
 *
 * An entry is an ITEM: path relative to the one of the request, type, mode, size, mtime, target; behind that of a
 * file come its DATA and DATA_END. Files, directories and links go through, with the bits of mode
 * 0777 and their times; FIFOs, sockets and devices are left out. A file with a target is another name of a file
 * that was unpacked before.
 *
 * Unpacking touches nothing outside the directory of the request: names are taken one component at a time, and no link
 * is followed, neither one that was there nor one that came along. A file appears whole or not at all.
 *
 * Callers: worker.c. */
#ifndef COVE_AGENT_WORKER_PACK_H
#define COVE_AGENT_WORKER_PACK_H

#include "agent/worker/worker.h"

int pack_run(struct worker *w, struct err *err);
int unpack_run(struct worker *w, struct err *err);

#endif
