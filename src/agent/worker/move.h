/* move.h - a new path for a file or a whole tree, also on another file system.
 *
 * A rename where the kernel can. Where it cannot (EXDEV: another file system, or a directory of the
 * template's layer under an overlay) files, directories, links and FIFOs are copied beside the
 * target, the copy gets the name in one step, and then the old tree is removed. A failure before
 * that step leaves the old tree whole and no copy. A copy has the modes, times and, where the user
 * may give files away, the owners; names that shared a file no longer do.
 *
 * Callers: worker.c. */
#ifndef COVE_AGENT_WORKER_MOVE_H
#define COVE_AGENT_WORKER_MOVE_H

#include "agent/worker/worker.h"

int move_run(struct worker *w, struct err *err);

#endif
