/* machine.h - the jail around a machine: what a bridge and the program that makes a guest (runsc, QEMU) see and may do. No command of the
 * tenant's runs here; who breaks out of the guest arrives here.
 *
 *   /bundle/rootfs   the sandbox's file system, layers and disk as in a jail
 *   /agent           the agent's program, for the guest
 *   /machine         the program that makes the guest; of a virtual machine, the directory with all that it needs (wire/vm.h)
 *   /disk            of a virtual machine: the sandbox's disk, for the image that is the guest's. Around gVisor: an empty directory of it,
 *                    read-only, by which the keeper has the disk written
 *   /proc /dev       a jail's; /plain is a /proc without masks, for runsc, because the kernel lets no process mount another one where none is in
 *                    full sight
 *   /volumes/N       the sandbox's volumes, as far as there are any (volumes.h)
 *   /bundle /run     scratch
 *
 * It has the sandbox's ids, cgroups and namespaces, no file of the host but these, and no network. Around runsc it has more rights than a
 * jail: the capabilities and calls that make namespaces and mounts of its own. All of them are about its own user namespace. Around a
 * virtual machine it has less: a jail's filter (and KVM's commands, for `vm`), and two capabilities, or eight with volumes, of which
 * QEMU gets none.
 *
 * Callers: child.c, between clone and exec. */
#ifndef COVE_JAIL_MACHINE_H
#define COVE_JAIL_MACHINE_H

#include "base/err.h"
#include "jail/seccomp.h"
#include "jail/template.h"
#include "wire/boot.h"
#include "wire/limits.h"

#include <stdbool.h>

#define MACHINE_ROOT    "/bundle/rootfs"
#define MACHINE_AGENT   "/agent"
#define MACHINE_PROGRAM "/machine"
#define MACHINE_DISK    "/disk"
#define MACHINE_VOLUMES "/volumes"

struct machine {
    const char *isolation; /* by name: the bridge's first argument */
    const char *program;   /* a file or, of a virtual machine, a directory below /usr */
    int bridge_fd;         /* cove-bridge, open for reading */
    bool vm;
    int kvm_fd; /* of a virtual machine: /dev/kvm, or -1 */
    /* of a virtual machine: the files that its template is, the nearest first, and a letter for each (wire/boot.h); "": a tree */
    int root_fd[BOOT_ROOTS_MAX];
    char roots[BOOT_ROOTS_MAX + 1];
    /* of a virtual machine: files with the memory and the state of one that has just started, to be made or to be had; or -1 */
    int memory_fd, state_fd;
    const char *way; /* how the guest begins: argv[6] of the bridge (wire/boot.h) */
};

/* What jail_mounts is for a jail. Takes the descriptors. */
int machine_mounts(const struct machine *machine, const struct template *t, const char *view,
                   int root_fd, int disk_fd, int proc_fd, struct err *err);

/* Limits, capabilities, no_new_privs, the filter; in this order. */
int machine_confine(const struct machine *machine, const struct limits *limits, bool volumes,
                    const struct seccomp_filter *filter, struct err *err);

/* What the guest's kernel needs beside what the sandbox may have. */
void machine_allow(bool vm, struct limits *limits);

#endif
