/* kvm.h - whether the kernel's KVM runs code, at a speed that a virtual machine can be used with. By running some, not by looking: a device
 * that is there may refuse, or take a millisecond for every instruction.
 *
 * Callers: the driver of virtual machines, and cove doctor. */
#ifndef COVE_BASE_KVM_H
#define COVE_BASE_KVM_H

/* Opens /dev/kvm of the host's /dev and tries it, in a child with an end. The descriptor is for machines; -1: *ret_why says why not. */
int kvm_try(int dev_fd, const char **ret_why);

#endif
