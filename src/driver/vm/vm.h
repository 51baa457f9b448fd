/* vm.h - the drivers `vm` and `vm-emulated`: a jail in which QEMU makes a virtual machine, with a kernel of its own.
 *
 * PID 1 of the jail is cove-bridge, which starts QEMU and is the sandbox's process to the keeper, as of `gvisor`. The two drivers differ in
 * who runs the machine's code: the processor, by KVM; or QEMU itself, which is slow and no boundary that QEMU's authors promise, so
 * that an operator must allow it by name (--allow-vm-emulated of the keeper).
 *
 * They cannot move memory to swap. */
#ifndef COVE_DRIVER_VM_VM_H
#define COVE_DRIVER_VM_VM_H

#include "driver/driver.h"

extern const struct driver vm_driver, vm_emulated_driver;

#endif
