/* load.h - a virtual machine from an image: the one that was saved, or a copy with a disk of its own.
 *
 * The disk of a copy is a copy of the image's, made by a worker before anything else. Without memory the machine starts with that disk;
 * with memory, loader.c brings it back.
 *
 * Callers: vm.c. */
#ifndef COVE_DRIVER_VM_LOAD_H
#define COVE_DRIVER_VM_LOAD_H

#include "driver/worker.h"
#include "jail/machine.h"

/* Of struct driver. */
int load_vm(struct keeper *keeper, const struct keeper_request *request,
            const struct image_meta *meta, struct sandbox **ret, struct err *err);

/* One whose loader died, and which is the sandbox: it runs, and hears why. In a process of its own. */
int load_vm_tell(struct keeper *keeper, const struct sandbox *sandbox, bool same, struct err *err);

/* The jail around it; the sandbox has the template that this is of, from then on. */
int load_machine(const struct keeper *keeper, struct sandbox *sandbox, int templates_fd,
                 struct machine *ret, struct err *err);
/* Closes what load_machine() opened, not what else is in it. */
void load_machine_done(struct machine *machine);

/* The worker of one with memory; loader.c. */
int loader_vm(struct worker *worker, const struct keeper_request *request, struct err *err);

#endif
