/* load.h - a sandbox from an image: the one that was saved, or a new one.
 *
 * An image without processes is a create whose disk is not blank: create.c does it. With processes a process of its own
 * (cove-loader) sets the stage and lets criu bring them back; loader.c is that process. */
#ifndef COVE_KEEPER_LOAD_H
#define COVE_KEEPER_LOAD_H

#include "jail/template.h"
#include "keeper/keeper.h"

/* What a restore needs beside what it restores; given back before its processes are anybody's to use. */
#define LOAD_EXTRA_PROCESSES 64
#define LOAD_EXTRA_MEMORY    (128ull << 20)

/* Begins; the end is announced by ops_sandbox_started or ops_sandbox_gone. */
int load_begin(struct keeper *keeper, const struct keeper_request *request, struct sandbox **ret,
               struct err *err);

/* From create.c, with cgroups made and all disks there. */
int load_processes(struct keeper *keeper, struct sandbox *sandbox, const struct template *template,
                   struct err *err);

/* An image, or what is unfinished of one, is there no more at once; its files go by load_tick. Whatever the keeper itself removes
 * goes this way: a sandbox of 30,000 processes has more than 100,000 files in its image. */
void load_discard(struct keeper *keeper, const char *image, const char *suffix);

/* Has spent images removed, in a process of its own, when nothing starts, or some seconds later. Returns when to call again, -1: on an event. */
int load_tick(struct keeper *keeper);

/* After a crash: a STARTING sandbox that was being loaded; false: somebody still works on it. */
bool load_settle(struct keeper *keeper, struct sandbox *sandbox);

#endif
