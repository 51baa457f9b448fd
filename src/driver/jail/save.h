/* save.h - a sandbox into an image.
 *
 * The waiting is done by a process of its own (cove-saver), which depends on no other process: should the keeper die, it finishes, and
 * the next keeper waits for its lock (save_settle.c). save.c has both halves, and save_jail.c what only a jail needs.
 *
 * Callers: jail.c; driver/guest/save.c, which has a way of its own. */
#ifndef COVE_DRIVER_JAIL_SAVE_H
#define COVE_DRIVER_JAIL_SAVE_H

#include "driver/host.h"
#include "driver/worker.h"

#define SAVE_DYING_MS 500 /* how long killed processes may take to die */
#define SAVE_ENDS     (KEEPER_SAVE_STOP | KEEPER_SAVE_SEAL) /* the image takes the sandbox's disk */

struct saving;

/* What drivers do each in their own way. `memory` and `files` have everything stand still and call save_standing(); without SAVE_ENDS
 * they let it continue, and call save_finish(). */
struct save_way {
    const char *disk; /* where the process that is the sandbox has the disk */
    bool kills;       /* with memory and STOP, everything is dead behind it */
    int (*memory)(struct saving *saving, struct err *err);
    int (*files)(struct saving *saving, struct err *err);
    /* memory/ as it is to be signed, and what the image says of it. */
    int (*complete)(struct saving *saving, struct err *err);
};

struct saving {
    struct worker *w;
    const struct save_way *way;
    uint32_t flags;
    int dir_fd, memory_fd;
    uint64_t stood_since_us;
    struct image_meta meta;
    bool committed;
    bool held; /* of a jail: a process has a file of its sysview open (outside.h) */
};

/* Everything stands still: the disk is written, and with SAVE_ENDS the image gets its name. */
int save_standing(struct saving *saving, struct err *err);
/* The image gets its name. */
int save_finish(struct saving *saving, struct err *err);
/* Every process of the sandbox's, by its cgroup; waits, though not for ever. */
int save_freeze(const struct worker *worker, bool frozen, struct err *err);
/* The worker. */
int save_run(struct worker *worker, const struct keeper_request *request,
             const struct save_way *way, struct err *err);

/* A disk's file under another number. Where the host's file system can share blocks it does; elsewhere holes stay holes. */
int save_copy_disk(const struct disks *disks, uint64_t from, uint64_t to, struct err *err);

/* Begins, with that worker: the sandbox is PAUSING. The end is announced by ops_saved. */
int save_begin(struct keeper *keeper, struct sandbox *sandbox, const struct keeper_request *request,
               worker_deed *saver, struct err *err);
/* The same, of a jail. */
int save_jail(struct keeper *keeper, struct sandbox *sandbox, const struct keeper_request *request,
              struct err *err);

/* After a crash: a PAUSING sandbox that no worker works on any more becomes what it was, or is gone because its image is
 * whole. False: a worker still does. put_back: the worker that lets it continue as itself. */
bool save_settle(struct keeper *keeper, struct sandbox *sandbox, worker_deed *put_back);

/* What was to be saved could not be put back as confined as it was: it is killed, and the waiting request hears why. */
void save_unconfined(struct keeper *keeper, struct sandbox *sandbox, const struct err *why);

/* Whether an image with these disks has the sandbox's own, so that one of the two must go. */
bool save_took_disk(const struct sandbox *sandbox, const struct layers *layers);
/* The sandbox is an image now, s->saved: its disk is the image's. */
void save_became(struct keeper *keeper, struct sandbox *sandbox, const struct layers *layers);

#endif
