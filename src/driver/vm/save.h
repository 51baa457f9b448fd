/* save.h - a virtual machine into an image: its state as QEMU writes it, and its disk.
 *
 *   quiesce   the agent closes every connection, stops all commands, and has the disk written     [running]
 *   save      QEMU stops the machine and writes its state into a pipe; the saver writes it to memory/
 *   disk, sync, commit, end   as of a jail (driver/jail/save.c)
 *
 * QEMU never has a file of the image: what comes through the pipe is bounded by the size of the machine. Whatever fails, the machine is
 * allowed to continue, or killed if that fails, too.
 *
 * Callers: vm.c. */
#ifndef COVE_DRIVER_VM_SAVE_H
#define COVE_DRIVER_VM_SAVE_H

#include "driver/worker.h"

#define SAVE_STATE "pages-1.img" /* of memory/: chunks.h has hashes of what is called so */

/* Of struct driver. */
int save_vm(struct keeper *keeper, struct sandbox *sandbox, const struct keeper_request *request,
            struct err *err);

/* The worker that lets one continue whose saver died. */
int save_vm_continue(struct worker *worker, const struct keeper_request *request, struct err *err);

#endif
