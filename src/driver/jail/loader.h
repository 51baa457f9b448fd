/* loader.h - the process that brings a sandbox's processes back: a worker of load.c's, named cove-loader.
 *
 * Owns:    while it runs, the lock on the image. Wherever a process is killed, load_settle() finds out what is left.
 * Callers: load.c, by worker_start(). */
#ifndef COVE_DRIVER_JAIL_LOADER_H
#define COVE_DRIVER_JAIL_LOADER_H

#include "driver/worker.h"

/* The request says which image becomes which sandbox; if they are one, the image is used up. */
int loader_run(struct worker *worker, const struct keeper_request *request, struct err *err);

#endif
