/* driver.h - the seam between the keeper and what isolates a sandbox.
 *
 * The keeper has requests, states, the journal, adoption, time-outs, the pool. A driver has everything that knows how
 * a sandbox is made: processes, file systems, limits, images. One driver per isolation (wire/isolation.h); drivers.c
 * has the table. The keeper calls a driver by the table below, and a driver calls the keeper back by keeper/create.h,
 * keeper/life.h and keeper/ops.h. This is the only header of src/driver that the keeper includes.
 *
 * What every driver guarantees, whatever it is asked and wherever it is killed:
 *
 *   - one process, sandbox->info.pid, whose death is the sandbox's death, and whom the keeper watches (sandbox->pid)
 *   - all processes of a sandbox are in its cgroups (sandbox->cgroup) and run as ids of its slot alone
 *   - no call waits: work that takes time is a worker's (driver/worker.h), or is done on events
 *   - a failure half-way leaves the sandbox as confined as before, or dead; the keeper hears which
 *   - what a call leaves behind when the keeper is killed in its middle is found by adopt, settle and the sweep
 *   - what a driver cannot do is refused with ERR_UNSUPPORTED and its name, never done in a weaker way
 *
 * docs/architecture.md has the table of guarantees for each call. */
#ifndef COVE_DRIVER_DRIVER_H
#define COVE_DRIVER_DRIVER_H

#include "base/err.h"
#include "wire/keeper.h"

#include <stdbool.h>
#include <stdint.h>

struct keeper;
struct sandbox;
struct image_meta;
struct guest_kind;

struct driver {
    uint32_t isolation; /* enum isolation: its name, and its number in the journal and in images */
    /* how long a start may take: a bound on hanging, not on being slow; 0: the keeper's own */
    uint32_t start_ms;

    bool takes_files; /* begins on the files of an image of another driver that gives them */
    bool gives_files; /* its disks are layers that the host's kernel reads */

    /* of a driver whose sandboxes are guests behind a bridge: how one is saved and loaded (driver/guest) */
    const struct guest_kind *guest;

    /* ---- a beginning ---- */

    /* Whether this template, these limits and volumes can be had, before anything is made. ret_build: of the template. */
    int (*check)(struct keeper *keeper, const struct keeper_request *request, uint64_t *ret_build,
                 struct err *err);
    /* Begins: the slot is taken, the sandbox is NEW. Ends in create_running() or sandbox_fail(). The journal has a record
     * before the first thing is made that outlives the keeper. Killed: the next keeper's adoption clears the sandbox away. */
    void (*create)(struct keeper *keeper, struct sandbox *sandbox);
    /* From disks.c: the disks and volumes that create or load ordered are here. */
    void (*start)(struct keeper *keeper, struct sandbox *sandbox);

    /* ---- a life ---- */

    /* A connection to the sandbox's agent, checked: the peer is the sandbox's own process. Killed: nothing is left. */
    int (*connect)(struct keeper *keeper, const struct sandbox *sandbox, int *ret_fd,
                   struct err *err);
    /* Begins; `frozen` says when it is done: 1, not yet 0, error -1. Killed: adopt says which of the two it is, and never
     * leaves a sandbox half frozen. */
    int (*freeze)(struct keeper *keeper, struct sandbox *sandbox, bool frozen, struct err *err);
    int (*frozen)(struct keeper *keeper, const struct sandbox *sandbox, bool frozen);
    /* `brief`: figures that KEEPER_STATS_BRIEF leaves out may be left as they are. */
    int (*stats)(struct keeper *keeper, struct sandbox *sandbox, bool brief,
                 struct keeper_stats *ret, struct err *err);
    /* It runs again after a save; -1: it must not. */
    int (*resumed)(struct keeper *keeper, struct sandbox *sandbox, struct err *err);

    /* ---- an end ---- */

    /* The process died unasked: sandbox->failure or sandbox_stop() says why, if the driver knows. */
    void (*died)(struct keeper *keeper, struct sandbox *sandbox);
    /* Its disk goes with it: what is left there is not its processes' to write or to clear away. Before the kill. */
    void (*leave_disk)(struct keeper *keeper, const struct sandbox *sandbox);
    /* Gives up what it held for the start. */
    void (*let_go)(struct keeper *keeper, struct sandbox *sandbox);
    /* SIGKILL to everything inside, frozen or not; asked again until the process is dead. late: the first time was not
     * enough. */
    void (*kill)(struct keeper *keeper, struct sandbox *sandbox, bool late);
    /* The same to workers, this keeper's or an earlier one's. */
    void (*kill_workers)(struct keeper *keeper, const struct sandbox *sandbox);
    /* Removes what is not a file, once the process is dead: 1 nothing is left, 0 the kernel holds a part (it is asked
     * again), -1 error. Killed: asked again by the next keeper. */
    int (*remove)(struct keeper *keeper, struct sandbox *sandbox, struct err *err);
    /* The record is gone, so its files go. Killed: found by the sweep. */
    void (*release)(struct keeper *keeper, struct sandbox *sandbox);

    /* ---- another keeper's sandbox ---- */

    /* It lives, and its process is watched: everything that was this driver's is as it was, or the sandbox is stopped. */
    void (*adopt)(struct keeper *keeper, struct sandbox *sandbox);
    /* Why one is dead that was meant to live; a text for the log. */
    const char *(*why_lost)(struct keeper *keeper, const struct sandbox *sandbox);
    /* PAUSING or STARTING, its worker or its keeper died: what became of it, by what is on disk. False: a worker still works
     * on it. */
    bool (*settle)(struct keeper *keeper, struct sandbox *sandbox);

    /* ---- optional: NULL is answered with ERR_UNSUPPORTED and the driver's name ---- */

    /* Begins: the sandbox is PAUSING. Ends in ops_saved(), or sandbox_stop(). Everything or nothing: an image has its name
     * when it is whole. Killed: settle. */
    int (*save)(struct keeper *keeper, struct sandbox *sandbox,
                const struct keeper_request *request, struct err *err);
    /* Begins, by create_slot(); ends as create does. A paused sandbox is its image or its processes, never both or none.
     * Killed: settle. */
    int (*load)(struct keeper *keeper, const struct keeper_request *request,
                const struct image_meta *meta, struct sandbox **ret, struct err *err);
    /* The descriptors of enum keeper_gateway: its only egress. Killed: closed, and so is the egress. */
    int (*network)(struct keeper *keeper, struct sandbox *sandbox, int *ret_fds, struct err *err);
    /* Begins, of a frozen one; ends in ops_reclaimed(). Killed: adopt takes the swap back. */
    int (*reclaim)(struct keeper *keeper, struct sandbox *sandbox, struct err *err);
    /* One of the pool gets a create's host name; without it there is no pool. Killed: it has the name, and is still in
     * the pool, where the next create gives it another. */
    int (*rename)(struct keeper *keeper, struct sandbox *sandbox, const char *name,
                  struct err *err);
    /* Why one of the pool is of no use any more; NULL: it is. Always there where rename is. */
    const char *(*stale)(struct keeper *keeper, const struct sandbox *sandbox);
};

/* ERR_UNSUPPORTED: this host has none for that isolation. */
const struct driver *driver_find(uint32_t isolation, struct err *err);
/* For a record of an isolation that this keeper has no driver for. It only lets a sandbox be, or ends it. */
const struct driver *driver_unknown(void);
/* "isolation 'jail' cannot save" */
int driver_lacks(const struct driver *driver, const char *what, struct err *err);

/* ---- what all drivers share of a host: state on disk, cgroups, ids. host.c, images.c, volume.c ---- */

#define HOST_SLOTS 8192u /* at most so many sandboxes, each with its own range of user ids */

struct host_options {
    const char *state;
    uint64_t reserve;  /* bytes of the host's disk to keep free; 0: the default */
    uint32_t layers;   /* from how many on an image's are merged */
    bool stage_layers; /* mount as kernels before 6.15 need it */
    bool all_pages;    /* no image is restored while its memory still comes */
    bool no_spare;     /* no child is made ahead (driver/jail/spare.h) */
    bool vm_emulated;  /* isolation 'vm-emulated' may be asked for */
};

int host_open(struct keeper *keeper, const struct host_options *options, struct err *err);
void host_close(struct keeper *keeper);
/* Does what it can do by itself, as restarting its helpers. Returns ms until the next call, -1: on an event. */
int host_tick(struct keeper *keeper);
/* No create wants the processors: prepares for the next. */
void host_idle(struct keeper *keeper);
/* Which template a create gets that names none. */
const char *host_default_template(const struct keeper *keeper);
void host_describe(const struct keeper *keeper, struct keeper_hello *ret);
/* One page of the templates that creates may name. */
int host_templates(const struct keeper *keeper, uint32_t from, struct keeper_reply *reply,
                   struct err *err);
/* ERR_NO_TEMPLATE */
int host_template(const struct keeper *keeper, const char *name, struct keeper_template *ret,
                  struct err *err);
/* ERR_DISK_FULL if `bytes` more would take from what is to stay free. */
int host_check_room(const struct keeper *keeper, uint64_t bytes, struct err *err);

/* Slots whose ids this instance has, and more of them. */
uint32_t host_slots(const struct keeper *keeper);
int host_grow_slots(struct keeper *keeper, struct err *err);
uint32_t host_uid_base(const struct keeper *keeper, uint32_t slot);

/* At start: cgroups that no record speaks of. */
void host_clear_strays(struct keeper *keeper);
/* Files that no record speaks of; not while any is being made by a worker: those are not known. */
void host_sweep(struct keeper *keeper);

/* Images. */
bool host_has_image(const struct keeper *keeper, const char *image);
/* Also one whose sandbox was about to run again. */
bool host_has_image_or_retired(const struct keeper *keeper, const char *image);
int host_image(const struct keeper *keeper, const char *image, struct keeper_image *ret,
               struct err *err);
/* KEEPER_LIST_MAX of them, into reply->image. */
void host_images(const struct keeper *keeper, uint32_t cursor, struct keeper_reply *reply);
int host_drop_image(struct keeper *keeper, const char *image, struct err *err);
/* 1: begun, and told by ops_shrunk(); 0: it is compressed already. */
int host_compress_image(struct keeper *keeper, const char *image, struct err *err);
/* A sandbox from an image, by the driver that wrote the image. */
int host_load(struct keeper *keeper, const struct keeper_request *request, struct sandbox **ret,
              struct err *err);

/* Volumes: <state>/volumes is a directory that the keeper may read; who writes there is the disk maker. The orders end in
 * ops_order_done(). */
int host_volumes_fd(const struct keeper *keeper);
int host_volume_make(struct keeper *keeper, const char *volume, const struct limits *size,
                     uint32_t *ret_order, struct err *err);
/* Its name is gone already. */
int host_volume_drop(struct keeper *keeper, const char *volume, uint32_t *ret_order,
                     struct err *err);
struct host_claim {
    const char *sandbox;
    bool writes;
};
/* The next sandbox from *cursor on that is paused to disk and has the volume; false: there are no more. */
bool host_next_claim(const struct keeper *keeper, const char *volume, uint32_t *cursor,
                     struct host_claim *ret);
/* Where it has the volume; false: that is not known. */
bool host_claim_use(const struct keeper *keeper, const char *sandbox, const char *volume,
                    struct volume_use *ret);

#endif
