/* watch.h - what happens to a file, to a directory, or to all below it.
 *
 * Callers: worker.c. */
#ifndef COVE_AGENT_WORKER_WATCH_H
#define COVE_AGENT_WORKER_WATCH_H

#include "agent/worker/worker.h"

int watch_run(struct worker *w, struct err *err);

#endif
