/* save.h - a guest into an image: its state as its program (QEMU, runsc) writes it, and its disk.
 *
 *   quiesce   the agent closes every connection, stops all commands, and has the disk written     [running]
 *   save      the guest's state is written into a pipe; the saver writes it to memory/
 *   disk, sync, commit, end   as of a jail (driver/jail/save.c)
 *
 * The program never has a file of the image: what comes through the pipe is bounded by the size of the guest. A virtual machine stands
 * still behind the save. In gVisor the commands stand still, as the agent stopped them. Whatever fails, the guest is
 * allowed to continue, or killed if that fails, too.
 *
 * Callers: guest.c. */
#ifndef COVE_DRIVER_GUEST_SAVE_H
#define COVE_DRIVER_GUEST_SAVE_H

#include "driver/worker.h"

#define SAVE_STATE "pages-1.img" /* of memory/: chunks.h has hashes of what is called so */

/* The worker that lets one continue whose saver died. */
int save_continue(struct worker *worker, const struct keeper_request *request, struct err *err);

#endif
