/* save.h - a sandbox into an image.
 *
 * The waiting is done by a process of its own (cove-saver), which depends on no other process: should the keeper die, it finishes, and
 * the next keeper waits for its lock (save_settle.c). save.c has both halves. */
#ifndef COVE_DRIVER_JAIL_SAVE_H
#define COVE_DRIVER_JAIL_SAVE_H

#include "driver/host.h"

#define SAVE_DYING_MS 500 /* how long killed processes may take to die */

/* Begins: the sandbox is PAUSING. The end is announced by ops_saved. */
int save_begin(struct keeper *keeper, struct sandbox *sandbox, const struct keeper_request *request,
               struct err *err);

/* After a crash: a PAUSING sandbox that no worker works on any more becomes what it was, or is gone because its image is
 * whole. False: a worker still does. */
bool save_settle(struct keeper *keeper, struct sandbox *sandbox);

/* What was to be saved could not be put back as confined as it was: it is killed, and the waiting request hears why. */
void save_unconfined(struct keeper *keeper, struct sandbox *sandbox, const struct err *why);

/* The sandbox is an image now: its disk is the image's. */
void save_became(struct keeper *keeper, struct sandbox *sandbox, const struct layers *layers);

#endif
