/* vm.h - what virtual machines need of the host: the directory that tools/vm fills, and which QEMU of it can be used. Pure: the keeper and
 * 'cove doctor' look for themselves. */
#ifndef COVE_WIRE_VM_H
#define COVE_WIRE_VM_H

#include <stddef.h>
#include <stdint.h>

#define VM_PREFIX    "/usr/local/lib/cove/vm"
#define VM_QEMU      "/qemu"
#define VM_LOADER    "/lib/ld.so"
#define VM_LIBRARIES "/lib"
#define VM_KERNEL    "/vmlinuz"
#define VM_MODULES   "/modules"
#define VM_VERSION   "/version"
#define VM_OWN                                                                                     \
    "/own" /* a kernel that was built (tools/guest-kernel), with modules and a version: taken where it is there */
#define VM_QEMU_OLDEST 10u /* takes KVM as a descriptor, and memory of a template read-only */

/* How long a machine with KVM may take to start: a bound on hanging, not on being slow. Where KVM itself is emulated, as for `make test-kvm`,
 * the programs are built with more. */
#ifndef VM_START_MS
#define VM_START_MS 60000u
#endif

/* What the guest's kernel takes of its memory: it is given beside what the sandbox may have. */
#define VM_KERNEL_MEMORY ((uint64_t) 48 << 20)
#define VM_OWN_MEMORY    ((uint64_t) 24 << 20) /* one of VM_OWN: it leaves the rest alone */

/* Threads of QEMU: one for each processor, and those that read and write the disk. QEMU ends where it cannot make one that it wants. */
#define VM_CPUS_MOST  64u
#define VM_IO_THREADS 64u /* QEMU's own bound */

/* The first number in what `qemu --version` says: "QEMU emulator version 10.0.2 (Debian …)"; 0: there is none. */
uint32_t vm_parse_qemu_version(const char *text);

/* Of a file VM_VERSION, which has lines such as "qemu 10.0.13": the word behind `name`; "": there is none. */
void vm_parse_parts(const char *text, const char *name, char *out, size_t size);

#endif
