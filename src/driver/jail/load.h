/* load.h - a sandbox from an image: the one that was saved, or a new one.
 *
 * An image without processes is a create whose disk is not blank: launch.c does it. With processes a process of its own
 * (cove-loader) sets the stage and lets criu bring them back; loader.c is that process. */
#ifndef COVE_DRIVER_JAIL_LOAD_H
#define COVE_DRIVER_JAIL_LOAD_H

#include "driver/host.h"

/* What a restore needs beside what it restores; given back before its processes are anybody's to use. */
#define LOAD_EXTRA_PROCESSES 64
#define LOAD_EXTRA_MEMORY    (128ull << 20)

/* Begins; the end is announced by ops_sandbox_started or ops_sandbox_gone. */
int load_begin(struct keeper *keeper, const struct keeper_request *request,
               const struct image_meta *meta, struct sandbox **ret, struct err *err);

/* From launch.c, with cgroups made and all disks there. */
int load_processes(struct keeper *keeper, struct sandbox *sandbox, const struct template *template,
                   struct err *err);

/* After a crash: a STARTING sandbox that was being loaded; false: a worker still works on it. */
bool load_settle(struct keeper *keeper, struct sandbox *sandbox);

#endif
