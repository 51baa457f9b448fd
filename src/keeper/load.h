/* load.h - a sandbox from an image: the one that was saved, or a new one.
 *
 * An image without processes is a create whose disk is not blank: create.c does it. With processes a process of its own
 * (cove-loader) sets the stage and lets criu bring them back; load.c has both halves. */
#ifndef COVE_KEEPER_LOAD_H
#define COVE_KEEPER_LOAD_H

#include "keeper/keeper.h"
#include "jail/template.h"

/* What a restore needs beside what it restores; given back before its processes are anybody's to use. */
#define LOAD_EXTRA_PROCESSES 64
#define LOAD_EXTRA_MEMORY    (128ull << 20)

/* Begins; the end is announced by ops_sandbox_started or ops_sandbox_gone. */
int load_begin(struct keeper *keeper, const struct keeper_request *request, struct sandbox **ret,
               struct err *err);

/* A read-only disk arrived (mount_fd, or -1 and why); sandboxes may wait for it. */
void load_got_base(struct keeper *keeper, uint64_t number, int mount_fd, const struct err *why);
/* The maker is gone, and what it was to mount with it. */
void load_lost_bases(struct keeper *keeper, const struct err *why);

/* 1 every disk below it is there, 0 on order, -1 error. */
int load_bases(struct keeper *keeper, struct sandbox *sandbox, struct err *err);

/* From create.c, with cgroups made and all disks there. */
int load_processes(struct keeper *keeper, struct sandbox *sandbox, const struct template *template,
                   struct err *err);

/* After a crash: a STARTING sandbox that was being loaded; false: somebody still works on it. */
bool load_settle(struct keeper *keeper, struct sandbox *sandbox);

#endif
