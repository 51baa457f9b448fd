/* load.h - a sandbox from an image: the one that was saved, or a new one.
 *
 * An image without processes is a create whose disk is not blank: launch.c does it. With processes a process of its own
 * (cove-loader) sets the stage and lets criu bring them back; loader.c is that process. */
#ifndef COVE_DRIVER_JAIL_LOAD_H
#define COVE_DRIVER_JAIL_LOAD_H

#include "driver/host.h"
#include "driver/worker.h"

/* What a restore needs beside what it restores; given back before its processes are anybody's to use. */
#define LOAD_EXTRA_PROCESSES 64
#define LOAD_EXTRA_MEMORY    (128ull << 20)

/* What drivers do each in their own way. */
struct load_way {
    /* Whether what was saved can be had with these limits, and on this host. */
    int (*check)(struct keeper *keeper, const struct limits *limits, const struct image_meta *meta,
                 bool files_only, struct err *err);
    /* Orders the disks of sandbox->image; driver->start() follows. */
    void (*disks)(struct keeper *keeper, struct sandbox *sandbox, const struct image_meta *meta);
};

/* Begins; the end is announced by ops_sandbox_started or ops_sandbox_gone. */
int load_begin_by(struct keeper *keeper, const struct keeper_request *request,
                  const struct image_meta *meta, const struct load_way *way, struct sandbox **ret,
                  struct err *err);
/* For struct load_way: what the memory of a jail or of gVisor fits into, and disks that are layers. */
int load_check_limits(struct keeper *keeper, const struct limits *limits,
                      const struct image_meta *meta, bool files_only, struct err *err);
void load_layers(struct keeper *keeper, struct sandbox *sandbox, const struct image_meta *meta);
/* The same, of a jail. */
int load_begin(struct keeper *keeper, const struct keeper_request *request,
               const struct image_meta *meta, struct sandbox **ret, struct err *err);

/* From launch.c, with cgroups made and all disks there: by a worker that brings the processes back. */
int load_processes(struct keeper *keeper, struct sandbox *sandbox, worker_deed *loader,
                   struct err *err);

/* What runs is told that it continues, by a process of its own; same: it is who was saved, not a copy. -1: it must not continue. */
typedef int load_tell(struct keeper *keeper, const struct sandbox *sandbox, bool same,
                      struct err *err);
/* After a crash: a STARTING sandbox that was being loaded; false: a worker still works on it. */
bool load_settle(struct keeper *keeper, struct sandbox *sandbox, load_tell *tell);

#endif
