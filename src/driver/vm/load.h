/* load.h - a virtual machine from an image: the one that was saved, or a copy with a disk of its own.
 *
 * The disk of a copy is a copy of the image's, made by a worker before anything else. Without memory the machine starts with that disk;
 * with memory, driver/guest/loader.c brings it back.
 *
 * Callers: vm.c. */
#ifndef COVE_DRIVER_VM_LOAD_H
#define COVE_DRIVER_VM_LOAD_H

#include "driver/guest/guest.h"

/* Of struct driver. */
int load_vm(struct keeper *keeper, const struct keeper_request *request,
            const struct image_meta *meta, struct sandbox **ret, struct err *err);

/* The jail around it; the sandbox has the template that this is of, from then on. */
int load_machine(const struct keeper *keeper, struct sandbox *sandbox, int templates_fd,
                 struct machine *ret, struct err *err);
/* Closes what load_machine() opened, not what else is in it. */
void load_machine_done(struct machine *machine);

/* Of driver->guest. */
extern const struct guest_kind load_vm_kind;

#endif
